// A host for a body that is only observed: it provides time, and payloads that the journal keeps elsewhere. Nothing is begun,
// written or sent through it, because it never answers a request of a body.

import { defaultLimits } from '../definition/limits.ts'
import type { DepartureListener, Host } from '../definition/definition.ts'

export type Lender = Pick<
  Host,
  | 'ports'
  | 'payloads'
  | 'services'
  | 'inlineRetryMs'
  | 'abortGraceMs'
  | 'now'
  | 'untilIntervalMs'
  | 'transact'
  | 'tokenKey'
>

/** Listens to a departure that concerns no code. */
export const silentListener: DepartureListener = { departed: () => undefined }

export function silentHost(lender: Lender): Host {
  const silent = (): void => undefined
  const unanswered = (): Promise<never> => new Promise(() => undefined)
  return {
    ports: { ...lender.ports, logger: { debug: silent, info: silent, warn: silent, error: silent } },
    payloads: lender.payloads.reading(),
    services: lender.services,
    inlineRetryMs: lender.inlineRetryMs,
    abortGraceMs: lender.abortGraceMs,
    heartbeat: silent,
    now: () => lender.now(),
    untilIntervalMs: lender.untilIntervalMs,
    mailbox: unanswered,
    // A child that its workflow refuses is refused at every replay.
    prepare: ({ workflow, input }) => {
      if (typeof workflow === 'string') return unanswered()
      const checked = workflow.validate(input)
      return checked instanceof Promise ? checked.then(unanswered) : unanswered()
    },
    receiver: unanswered,
    limits: defaultLimits,
    transitionId: () => '',
    commit: unanswered,
    transact: lender.transact === null ? null : unanswered,
    tokenKey: lender.tokenKey ?? null,
  }
}
