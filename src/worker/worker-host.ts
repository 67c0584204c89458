// What the worker provides to the frames of runs: the engine behind it, and the worker's own notes.

import type { Acknowledged, Host } from '../core/definition/definition.ts'
import type { Transition } from '../core/model/transition.ts'
import { commitWithLeases } from '../engine/deciders/effect-leases.ts'
import type { Engine } from '../engine/engine.ts'
import { loadEntries } from '../engine/store/journal-pages.ts'

/** Has no getter: each object that is made with one is a table of its own, and its properties are looked up in it. */
export interface WorkerHost extends Host {
  tokenKey: string | null
}

export interface WorkerHostOptions extends Pick<Host, 'services' | 'inlineRetryMs' | 'abortGraceMs' | 'heartbeat'> {
  readonly firstMet: NonNullable<Host['firstMet']>
  readonly attemptFailed: NonNullable<Host['attemptFailed']>
  /** A commit of a run is on its way. */
  readonly sent: (transition: Transition, committed: Promise<Acknowledged>) => void
}

export function workerHost(engine: Engine, options: WorkerHostOptions): WorkerHost {
  const { services, inlineRetryMs, abortGraceMs, heartbeat, firstMet, attemptFailed, sent } = options
  const sending = (transition: Transition, committed: Promise<Acknowledged>): Promise<Acknowledged> => {
    sent(transition, committed)
    return committed
  }
  return {
    ports: engine.ports,
    payloads: engine.payloads,
    services,
    inlineRetryMs,
    abortGraceMs,
    heartbeat,
    now: () => engine.clock.now(),
    firstMet,
    attemptFailed,
    untilIntervalMs: engine.untilIntervalMs,
    mailbox: engine.mailbox,
    ...engine.outgoing,
    journal: async (runId, upTo) => (await loadEntries(engine.store, runId)).slice(0, upTo),
    transitionId: engine.transitionId,
    commit: (transition) => {
      const { outbound = null } = transition
      const hasStarts = outbound !== null && outbound.starts.length > 0
      return sending(transition, hasStarts ? commitWithLeases(engine, transition) : engine.commit(transition))
    },
    settle: (outcome, end) => sending(end, engine.instances.settle(outcome, end)),
    transact: engine.transact,
    tokenKey: engine.tokenKey,
  }
}
