// Every way in which a held run ends. The effects of an end on other runs must not depend on the way.

import type { TerminalStatus } from '../../core/model/run.ts'
import type { NewRun } from '../../store.ts'
import { failsAfter, failures, type ContractBench, type Held } from './bench.ts'
import { ending } from './drafts.ts'
import * as ask from './requests.ts'

export interface WayToEnd {
  /** The way, as the end of a sentence about the run. */
  readonly name: string
  /** How it must have been started. */
  readonly changes?: Partial<NewRun>
  readonly end: (bench: ContractBench, held: Held) => Promise<unknown>
  readonly status: TerminalStatus
  /** The payload of its last entry. */
  readonly data: string | null
  /** Why it was cancelled, if the request gave a reason. */
  readonly reason: string | null
}

export const endPaths: readonly WayToEnd[] = [
  {
    name: 'succeeds',
    end: ({ commit }, held) => commit(held, { append: [ending('succeeded')], status: 'succeeded' }),
    status: 'succeeded',
    data: '"succeeded"',
    reason: null,
  },
  {
    name: 'succeeds with an outdated idea of its mailbox',
    end: async ({ commit, run }, held) => {
      const { inbox } = await run(held.runId)
      return commit(held, { append: [ending('succeeded')], status: 'succeeded', emptyAt: inbox - 1 })
    },
    status: 'succeeded',
    data: '"succeeded"',
    reason: null,
  },
  {
    name: 'fails',
    end: ({ commit }, held) => commit(held, { append: [ending('failed')], status: 'failed' }),
    status: 'failed',
    data: '"failed"',
    reason: null,
  },
  {
    name: 'ends as cancelled by its holder',
    end: ({ commit }, held) => commit(held, { append: [ending('cancelled')], status: 'cancelled' }),
    status: 'cancelled',
    data: null,
    reason: 'enough',
  },
  {
    name: 'is cancelled without a holder',
    async end(bench, held) {
      await parkAgain(bench, held)
      return bench.control(held.runId, ask.cancel)
    },
    status: 'cancelled',
    data: null,
    reason: 'enough',
  },
  {
    name: 'is cancelled at once, although it is held',
    end: ({ control }, held) => control(held.runId, ask.cancelNow),
    status: 'cancelled',
    data: null,
    reason: 'at once',
  },
  {
    name: 'has cost too many holders their lives',
    // A session without any heartbeat counts as dead.
    end: ({ rescue, selector }) => rescue({ workflows: [failsAfter(selector, 1)] }),
    status: 'failed',
    data: failures.crashed,
    reason: null,
  },
  {
    name: 'is over time',
    changes: { timeoutMs: 5_000 },
    async end(bench, held) {
      await parkAgain(bench, held)
      await bench.clock.advance(5_000)
      return bench.rescue()
    },
    status: 'failed',
    data: failures['timed-out'],
    reason: null,
  },
  {
    name: 'is being cancelled and loses its holder',
    async end({ control, rescue }, held) {
      await control(held.runId, ask.cancel)
      return rescue()
    },
    status: 'cancelled',
    data: null,
    reason: 'enough',
  },
  {
    name: 'is being cancelled and is given back',
    async end({ control, store }, held) {
      await control(held.runId, ask.cancel)
      return store.release([{ runId: held.runId, ...held.lease }])
    },
    status: 'cancelled',
    data: null,
    reason: 'enough',
  },
]

/** Parks a run, regardless of its messages. */
async function parkAgain({ park, run }: ContractBench, held: Held): Promise<void> {
  const { inbox } = await run(held.runId)
  await park(held, { parkIf: { inbox } })
}
