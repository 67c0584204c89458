// When code and journal disagree: what the journal has, what the body asks for instead and where in the code it does, and
// a text that shows the two against each other.

import type { Drift, Entry, FoundCall } from '../../core/model/entry.ts'
import { visible } from '../../core/text/printable.ts'
import type { Call } from '../frame/body-call.ts'
import type { Outcome, RecordedEntry } from './history.ts'

/** How long a body that has not asked for all that was recorded may be silent before that is said. */
export const silenceMs = 1_000
/** How long before code and journal are said to disagree, if the body asks for something that it cannot have asked for then. */
export const driftGraceMs = 5_000
/**
 * How long if it does not. Most likely it awaits something of its own, which no journal knows of, and asks for the rest then. But a
 * call that was made beside others and has been removed looks the same, and such a run must not keep its slot for ever.
 */
export const ownWorkMs = 5 * 60_000

/**
 * Tells whether one of these calls of a body cannot have been made before that outcome was recorded: then its code is another now,
 * because it went on without asking for that.
 */
export function hasChanged(entries: readonly Entry[], missing: Outcome, calls: Iterable<Call>): boolean {
  for (const call of calls) if (!mayPrecede(entries, missing, call)) return true
  return false
}

function mayPrecede(entries: readonly Entry[], { seq, entry }: Outcome, call: Call): boolean {
  const traces = entries.filter((one) => one.name === call.name && isOf(one, call.kind))
  // A step was called before its first attempt began, and a wait before its entry.
  const isBefore = (one: Entry): boolean => one.seq < seq || (call.kind === 'step' && one.at - msOf(one) < entry.at)
  if (traces.some(isBefore)) return true
  // What was under way when a process died has left no trace.
  const first = traces[0]?.seq ?? Infinity
  return entries.some((one) => one.kind === 'crashed' && one.seq > seq && one.seq < first)
}

const stepKinds = new Set<Entry['kind']>(['step-succeeded', 'step-failed', 'attempt-failed', 'begun', 'abandoned'])

function isOf({ kind }: Entry, callKind: Call['kind']): boolean {
  return callKind === 'step' ? stepKinds.has(kind) : kind === 'waiting'
}

/** How long the attempt took that the entry tells of. */
function msOf({ meta }: Entry): number {
  return meta !== null && 'ms' in meta ? meta.ms : 0
}

export function foundCalls(calls: Iterable<Call>): readonly FoundCall[] {
  return Array.from(calls, ({ kind, name, place }): FoundCall => ({ kind, name, place }))
}

/** A replay cannot tell code that has changed from code that awaits something of its own for longer than the last time. */
const ownWork =
  'If the code is the same, it awaits something outside of its steps that took longer this time: do that inside a step.'

export function describeDrift({ seq, kind, name }: RecordedEntry, found: readonly FoundCall[]): Drift {
  const asked = found.map(({ kind, name, place }) => `${kind} ${quoted(name)}${place === null ? '' : `, at ${place}`}`)
  const message = [
    'The code changed under a live run: its journal has what the code does not ask for.',
    `- entry ${seq} of the journal: ${kind} ${quoted(name)}`,
    ...(asked.length === 0 ? ['+ the code ends without it'] : asked.map((call) => `+ the code asks for: ${call}`)),
    ...(asked.length === 0 ? [] : [ownWork]),
    'Deploy the version that the run began with and resume it, or repair its journal with resume({ amend }).',
  ].join('\n')
  return { reason: 'drift', recorded: { seq, kind, name }, found, message }
}

/** A name from a journal may be anything: each stays on its line. */
function quoted(name: string | null): string {
  return `"${visible(String(name))}"`
}
