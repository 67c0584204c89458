// Which runs a process can read, as far as the key is known that they were last written with.

import type { Run } from '../../model/run.ts'

/** Whether a run may be leased to a process with these keys; without a list of keys, any run may. */
export function isReadable({ keyId }: Pick<Run, 'keyId'>, { keys }: { readonly keys?: readonly string[] }): boolean {
  return keyId === null || keys === undefined || keys.includes(keyId)
}

/** Why the payloads of a run cannot be rewritten by a caller who has read it at that `seq`; null if they can. */
export function rewriteObjection(
  run: Pick<Run, 'session' | 'seq'> | undefined,
  seq: number,
): 'held' | 'changed' | 'not-found' | null {
  if (run === undefined) return 'not-found'
  // Its holder has read the journal, and may be about to read the mailbox: it is not disturbed.
  if (run.session !== null) return 'held'
  return run.seq === seq ? null : 'changed'
}

/** The keys of live runs other than these, with how many there are: in the order of the keys. */
export function countKeys(
  runs: Iterable<Pick<Run, 'keyId' | 'endedAt' | 'deletedAt'>>,
  keys: readonly string[],
  atMost: number,
): readonly { readonly key: string; readonly runs: number }[] {
  const counts = new Map<string, number>()
  let all = 0
  for (const { keyId, endedAt, deletedAt } of runs) {
    if (keyId === null || endedAt !== null || deletedAt !== null || keys.includes(keyId) || all === atMost) continue
    all += 1
    counts.set(keyId, (counts.get(keyId) ?? 0) + 1)
  }
  const order = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
  return Array.from(counts, ([key, runs]) => ({ key, runs })).toSorted((a, b) => order(a.key, b.key))
}
