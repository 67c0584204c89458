// When code and journal disagree: the recorded entry, the call that the body makes instead and its place in the code, and a
// text that shows both.

import { leftToOthers } from '../../core/errors/left-to-others.ts'
import type { HoldfastError } from '../../core/errors/error.ts'
import type { Drift, Entry, FoundCall } from '../../core/model/entry.ts'
import { visible } from '../../core/text/printable.ts'
import type { Call } from '../frame/body-call.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Outcome, RecordedEntry } from './history.ts'

/** How long a body that has not asked for all recorded calls may be silent before a warning says so. */
export const silenceMs = 1_000
/** How long before drift is declared, if the body makes a call that it cannot have made then. */
export const driftGraceMs = 5_000
/** How long before a pause takes effect in the middle of the replay: longer than a dry replay, which asks for one, waits. */
export const pauseGraceMs = 30_000
/**
 * How long before drift is declared, if the body makes a call that the journal has no trace of. It may have been under way when a
 * process died. But a step that was renamed since then looks the same, and its run must not keep its slot for ever.
 */
export const untracedGraceMs = 5 * 60_000
/**
 * For so long after a run has gone on with a change of the code (`ctx.patched`), and after this worker has met it, it is left to
 * workers that know the change: a deployment replaces them one by one, and the run may have waited for most of that time. After
 * that, the worker that does not know it pauses the run: the change was taken back.
 */
const deploymentMs = 15 * 60_000
/** How often the warning is repeated if it does not: the call may still come, so nothing is declared. */
export const repeatMs = 60 * 60_000

/**
 * Whether one of these calls of a body cannot have been made before that outcome was recorded: then its code is another
 * now, because it went on without asking for that.
 */
export function hasChanged(entries: readonly Entry[], missing: Outcome, calls: Iterable<Call>): boolean {
  for (const call of calls) if (!mayPrecede(entries, missing, call)) return true
  return false
}

/** Whether the journal knows nothing of one of these calls. */
export function hasUntraced(entries: readonly Entry[], calls: Iterable<Call>): boolean {
  for (const call of calls) if (tracesOf(entries, call).length === 0) return true
  return false
}

function tracesOf(entries: readonly Entry[], call: Call): readonly Entry[] {
  return entries.filter((one) => one.name === call.name && isOf(one, call.kind))
}

function mayPrecede(entries: readonly Entry[], { seq, entry }: Outcome, call: Call): boolean {
  const traces = tracesOf(entries, call)
  // A step was called before its first attempt began, and a wait before its entry.
  const isBefore = (one: Entry): boolean => one.seq < seq || (call.kind === 'step' && one.at - msOf(one) < entry.at)
  if (traces.some(isBefore)) return true
  // Attempts that were under way when a process died have left no entry.
  const first = traces[0]?.seq ?? Infinity
  return entries.some((one) => one.kind === 'crashed' && one.seq > seq && one.seq < first)
}

const stepKinds = new Set<Entry['kind']>(['step-succeeded', 'step-failed', 'attempt-failed', 'begun', 'abandoned'])

const sendKinds = new Set<Entry['kind']>(['signal-sent', 'broadcast-sent', 'replied'])

function isOf({ kind }: Entry, callKind: Call['kind']): boolean {
  if (callKind === 'step') return stepKinds.has(kind)
  return callKind === 'send' ? sendKinds.has(kind) : kind === 'waiting'
}

/** How long the attempt of the entry took. */
function msOf({ meta }: Entry): number {
  return meta !== null && 'ms' in meta ? meta.ms : 0
}

export function foundCalls(calls: Iterable<Call>): readonly FoundCall[] {
  return Array.from(calls, ({ kind, name, place }): FoundCall => ({ kind, name, place }))
}

/** A replay cannot distinguish code that has changed from code that awaits a promise of its own for longer than the last time. */
const ownWork =
  'If the code is the same, it awaits something outside of its steps that took longer this time: do that inside a step.'

/** Why a run is to be left to workers with newer code; null if it is not. */
export function newerCode(
  { history, host, run, controlRequest }: FrameState,
  unrequested: RecordedEntry,
): HoldfastError | null {
  const patch = history.unknownPatch(unrequested.seq)
  // A run that is to be paused is paused, whichever worker has it.
  if (patch === undefined || controlRequest?.kind === 'pause') return null
  const since = Math.max(patch.at, host.firstMet?.(run) ?? patch.at)
  if (host.now() - since > deploymentMs) return null
  const message =
    `newer code has continued it with the change ${quoted(patch.name)}, which the code here does not ask for. It goes on where ` +
    `ctx.patched(${quoted(patch.name)}) is deployed; if that is nowhere ${deploymentMs / 60_000} minutes after this worker first ` +
    `met the run, it is paused as drift.`
  return leftToOthers('DRIFT', message, { change: patch.name })
}

/** Gives a run up here that is to be left to workers with newer code; false if it is not. */
export function leavesToNewerCode(state: FrameState, unrequested: RecordedEntry): boolean {
  const newer = newerCode(state, unrequested)
  if (newer !== null) state.writer.lose(newer)
  return newer !== null
}

export function describeDrift(
  { seq, kind, name }: RecordedEntry,
  found: readonly FoundCall[],
  unknownPatch: string | null = null,
): Drift {
  const calls = found.map(({ kind, name, place }) => `${kind} ${quoted(name)}${place === null ? '' : `, at ${place}`}`)
  const message = [
    'The code changed under a live run: its journal has an entry that the code does not ask for.',
    ...(unknownPatch === null
      ? []
      : [`Newer code has continued it with the change ${quoted(unknownPatch)}: deploy that.`]),
    `- entry ${seq} of the journal: ${kind} ${quoted(name)}`,
    ...(calls.length === 0 ? ['+ the code ends without it'] : calls.map((call) => `+ the code asks for: ${call}`)),
    ...(calls.length === 0 ? [] : [ownWork]),
    unknownPatch === null
      ? 'Let live runs go the old way with ctx.patched, or deploy the version that the run began with, and resume it; or repair ' +
        'its journal with resume({ amend }).'
      : 'Deploy the code that knows the change and resume it, or repair its journal with resume({ amend }).',
  ].join('\n')
  return { reason: 'drift', recorded: { seq, kind, name }, found, message }
}

/** A name from a journal may contain line breaks: each name stays on its line. */
function quoted(name: string | null): string {
  return `"${visible(String(name))}"`
}
