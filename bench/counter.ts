// The decider that is measured: it counts. And callers that have its inputs decided, so many at once.

import { decider, decision, type Holdfast } from 'holdfast'

export const counter = decider('bench.counter', {
  initial: () => ({ count: 0 }),
  evolve: ({ count }, _event: { type: 'Counted' }) => ({ count: count + 1 }),
  decide: (_state, _input: { type: 'Count'; id: string }) => decision({ type: 'Counted' }),
  id: 'id',
})

/** So many inputs by so many callers, each of which waits for its answer. The instance of each follows from its number. */
export async function executeAll(
  holdfast: Holdfast,
  { inputs, callers, idOf }: { inputs: number; callers: number; idOf: (nth: number) => string },
): Promise<void> {
  let next = 0
  const call = async (): Promise<void> => {
    while (next < inputs) {
      const nth = next
      next += 1
      await holdfast.execute(counter, { type: 'Count', id: idOf(nth) })
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
}
