// Order in tests without sleeping: a gate that code under test waits at, and a pause that lets everything else go first.

export interface Gate {
  readonly passed: Promise<void>
  readonly open: () => void
}

export function gate(): Gate {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open: () => open() }
}

/** Lets whatever can happen without further time happen. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Turns until something is so; the test's own timeout is the limit. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 1))
}
