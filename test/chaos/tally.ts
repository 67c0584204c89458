// The decider of races between processes: it counts inputs by their senders, and may ask for an effect that dies or hangs.

import { appendFileSync } from 'node:fs'
import { decider, decision, type Duration } from '../../src/index.ts'

export interface DeciderTask {
  readonly store: string
  readonly name: string
  /** Where performed effects are written. */
  readonly log: string
  /** `dies`: at the end of its first effect, before anything can be recorded. `hangs`: its effects never end. */
  readonly effects: 'end' | 'dies' | 'hangs'
}

/** Inputs for instances, by many writers at once. */
export interface WriteRequest {
  readonly kind: 'write'
  readonly writers: number
  /** The instances of each writer, in order. */
  readonly targets: readonly (readonly string[])[]
}

export type DeciderRequest = WriteRequest | { readonly kind: 'work'; readonly lease: Duration }

export const tally = (task: Pick<DeciderTask, 'log' | 'effects'>) =>
  decider('tally', {
    initial: () => ({ sum: 0, by: {} as Readonly<Record<string, number>>, mails: 0 }),
    evolve: (state, event: { type: 'Added'; by: string } | { type: 'Mailed' }) =>
      event.type === 'Mailed'
        ? { ...state, mails: state.mails + 1 }
        : { ...state, sum: state.sum + 1, by: { ...state.by, [event.by]: (state.by[event.by] ?? 0) + 1 } },
    decide: (_state, input: { type: 'Add' | 'Mail'; id: string; by: string } | { type: 'Done' }) => {
      if (input.type === 'Done') return decision({ type: 'Mailed' })
      const added = decision({ type: 'Added', by: input.by })
      return input.type === 'Add' ? added : added.effect({ type: 'mail' })
    },
    id: { '*': 'id', Done: null },
    snapshotEvery: 50,
    effects: {
      mail: async (_effect, { idempotencyKey }) => {
        appendFileSync(task.log, `${process.pid} ${idempotencyKey}\n`)
        if (task.effects === 'hangs') await new Promise(() => undefined)
        if (task.effects === 'dies') process.kill(process.pid, 'SIGKILL')
        return { type: 'Done' }
      },
    },
  })
