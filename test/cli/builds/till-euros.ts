// Builds of the till that count in euros: one that reads what was counted in cents, and those that forgot something.

import { decider, decision } from '../../../src/index.ts'

type Paid = { type: 'Paid'; euros: number }
type State = { euros: number; isClosed: boolean }

const base = {
  initial: (): State => ({ euros: 0, isClosed: false }),
  evolve: (state: State, event: Paid | { type: 'Closed' }): State =>
    event.type === 'Paid' ? { ...state, euros: state.euros + event.euros } : { ...state, isClosed: true },
  decide: (_state: State, { euros }: { type: 'Pay'; id: string; euros: number }) => decision({ type: 'Paid', euros }),
  id: 'id',
  isTerminal: ({ isClosed }: State) => isClosed,
  stateVersion: 2,
} as const
const upcast = { Paid: { 1: ({ cents }: { cents: number }): Paid => ({ type: 'Paid', euros: cents / 100 }) } }
const before = ({ cents, isClosed }: { cents: number; isClosed: boolean }): State => ({ euros: cents / 100, isClosed })

export const compatible = decider('shop.till', { ...base, upcast, upcastState: { 1: before } })

export const withoutUpcasters = decider('shop.till', {
  ...base,
  upcast: {
    Paid: {
      1: (old: { amount: { cents: number } }): Paid => ({ type: 'Paid', euros: old.amount.cents / 100 }),
    },
  },
})

export const wrongState = decider('shop.till', {
  ...base,
  upcast,
  upcastState: { 1: (old: { cents: number; isClosed: boolean }): State => ({ ...before(old), euros: old.cents }) },
})

export const failingState = decider('shop.till', {
  ...base,
  upcast,
  upcastState: {
    1: (): State => {
      throw new RangeError('no rate')
    },
  },
})
