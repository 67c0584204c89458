// A module with a decider, as a user would name it.

import { decider, decision, reject } from '../../src/index.ts'

export { greet } from './workflows.ts'

/** Lives on, and is counted up until it is five. */
export const tally = decider('demo.tally', {
  initial: () => 0,
  evolve: (count, _event: { type: 'Counted' }) => count + 1,
  decide: (count, _input: { type: 'Count'; tallyId: string }) =>
    count === 5 ? reject('full') : decision({ type: 'Counted' }).effect({ type: 'note' }),
  id: 'tallyId',
  effects: { note: () => undefined },
  view: {
    stateInfo: (count) => ({ status: count === 5 ? 'full' : count === 0 ? 'empty' : 'counting', fields: { count } }),
    definition: {
      initial: 'empty',
      transitions: [
        { from: 'empty', input: 'Count', to: 'counting', effects: ['note'] },
        { from: 'counting', input: 'Count', to: 'full', effects: ['note'] },
      ],
    },
  },
})
