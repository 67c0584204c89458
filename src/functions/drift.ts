// When code and journal disagree: what the journal has, what the body asks for instead and where in the code it does, and
// a text that shows the two against each other.

import type { Drift, FoundCall } from '../core/entry.ts'
import type { Call } from './call.ts'
import type { RecordedEntry } from './history.ts'

/** How long a body may be silent, with nothing else to move it, before code and journal are said to disagree. */
export const driftGraceMs = 1_000

export function foundCalls(calls: Iterable<Call>): readonly FoundCall[] {
  return Array.from(calls, ({ kind, name, place }): FoundCall => ({ kind, name, place }))
}

export function describeDrift({ seq, kind, name }: RecordedEntry, found: readonly FoundCall[]): Drift {
  const asked = found.map(({ kind, name, place }) => `${kind} "${name}"${place === null ? '' : `, at ${place}`}`)
  const message = [
    'The code changed under a live run: its journal has what the code does not ask for.',
    `- entry ${seq} of the journal: ${kind} "${name}"`,
    ...(asked.length === 0 ? ['+ the code ends without it'] : asked.map((call) => `+ the code asks for: ${call}`)),
    'Deploy the version that the run began with and resume it, or repair its journal with resume({ amend }).',
  ].join('\n')
  return { reason: 'drift', recorded: { seq, kind, name }, found, message }
}
