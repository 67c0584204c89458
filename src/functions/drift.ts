// When code and journal disagree: what the journal has, what the body asks for instead, and a text that says so.

import type { PausedMeta } from '../core/entry.ts'
import type { Call } from './call.ts'
import type { Outcome } from './history.ts'

/** How long a body may be silent, with nothing else to move it, before code and journal are said to disagree. */
export const driftGraceMs = 1_000

export function describeDrift(recorded: Outcome, calls: Iterable<Call>): PausedMeta {
  const found = Array.from(calls, ({ kind, name }): PausedMeta['found'][number] => ({ kind, name }))
  const { seq, kind, name } = recorded
  const instead =
    found.length === 0
      ? 'ended without it'
      : `asks for ${found.map((call) => `${call.kind} "${call.name}"`).join(', ')}`
  const message =
    `Entry ${seq} of the journal is ${kind} "${name}", but the code ${instead}. ` +
    'The code changed under a live run: deploy the version that it began with, or repair the run.'
  return { reason: 'drift', recorded: { seq, kind, name }, found, message }
}
