// The decider that is measured: it counts, also what an effect has done. And callers that have its inputs
// decided, so many at once.

import { EventEmitter } from 'node:events'
import { decider, decision, type Holdfast } from 'holdfast'

/** Says `performed` when an effect was. */
export const charges = new EventEmitter()

type CounterInput =
  | { type: 'Count'; id: string }
  /** As many events as that follow: a long history in few commits. */
  | { type: 'Fill'; id: string; events: number }
  | { type: 'Charge'; id: string }
  | { type: 'Charged' }

export const counter = decider('bench.counter', {
  initial: () => ({ count: 0 }),
  evolve: ({ count }, _event: { type: 'Counted' }) => ({ count: count + 1 }),
  decide: (_state, input: CounterInput) => {
    switch (input.type) {
      case 'Count':
      case 'Charged':
        return decision({ type: 'Counted' })
      case 'Fill':
        return decision(...fill(input.events))
      case 'Charge':
        return decision({ type: 'Counted' }).effect({ type: 'charge' })
    }
  },
  id: { '*': 'id', Charged: null },
  effects: {
    charge: () => {
      charges.emit('performed')
      return { type: 'Charged' }
    },
  },
})

function fill(events: number): [{ type: 'Counted' }, ...{ type: 'Counted' }[]] {
  return [{ type: 'Counted' }, ...Array.from({ length: events - 1 }, () => ({ type: 'Counted' }) as const)]
}

interface Calls {
  readonly inputs: number
  readonly callers: number
  /** The instance of each follows from its number. */
  readonly idOf: (nth: number) => string
  /** Where to put how long each took, in ms. */
  readonly times?: number[]
}

/** So many inputs by so many callers, each of which waits for its answer. */
export async function executeAll(holdfast: Holdfast, { inputs, callers, idOf, times }: Calls): Promise<void> {
  let next = 0
  const call = async (): Promise<void> => {
    while (next < inputs) {
      const nth = next
      next += 1
      const began = performance.now()
      await holdfast.execute(counter, { type: 'Count', id: idOf(nth) })
      times?.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
}
