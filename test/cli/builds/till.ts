// The deployed build of a decider: a till, in cents, that is closed for good one day.

import { decider, decision } from '../../../src/index.ts'

export const till = decider('shop.till', {
  initial: () => ({ cents: 0, isClosed: false }),
  evolve: (state, event: { type: 'Paid'; cents: number } | { type: 'Closed' }) =>
    event.type === 'Paid' ? { ...state, cents: state.cents + event.cents } : { ...state, isClosed: true },
  decide: (_state, { cents }: { type: 'Pay'; id: string; cents: number }) =>
    cents === 0 ? decision({ type: 'Closed' }) : decision({ type: 'Paid', cents }),
  id: 'id',
  isTerminal: ({ isClosed }) => isClosed,
  snapshotEvery: 4,
})
