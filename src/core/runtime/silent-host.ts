// A host for a body that is only looked at: it lends time, and what the journal keeps elsewhere. Nothing is begun, written
// or sent through it, because nothing that a body asks of it is ever answered.

import type { Host } from '../definition/definition.ts'

export type Lender = Pick<
  Host,
  | 'ports'
  | 'payloads'
  | 'services'
  | 'inlineRetryMs'
  | 'abortGraceMs'
  | 'now'
  | 'pauseCheckMs'
  | 'transact'
  | 'tokenKey'
>

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
    pauseCheckMs: lender.pauseCheckMs,
    mailbox: unanswered,
    // What its workflow refuses, it refuses at every replay.
    prepare: ({ workflow, input }) => {
      const checked = workflow.validate(input)
      return checked instanceof Promise ? checked.then(unanswered) : unanswered()
    },
    transitionId: () => '',
    commit: unanswered,
    transact: lender.transact === null ? null : unanswered,
    tokenKey: lender.tokenKey ?? null,
  }
}
