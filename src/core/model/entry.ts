// The journal's entries. An entry says what happened to a run, once; it never changes. `name` is the identity of the call
// that it belongs to (`charge`, `charge#2`, `eu/charge`), `meta` holds the fields that the engine itself reads, `data` the
// user's payload after the codec. A store keeps all three without interpreting them.

import type { Crowded, Ended, MessageKind, Refused, BroadcastMeta, ReplyMeta, SignalMeta } from './message.ts'
import type { PauseReason } from './run.ts'
import type { RecordedCondition } from './wait-condition.ts'

/** What a transition appends: an entry that does not yet have its place and time. */
export type Draft =
  /** The run exists. `data` is its input. */
  | { readonly kind: 'started'; readonly name: null; readonly meta: StartedMeta | null; readonly data: string }
  /** The run continues as new under the same id. `data` is the input; no entry before this one is read again. */
  | { readonly kind: 'continued'; readonly name: null; readonly meta: ContinuedMeta; readonly data: string }
  /** A step returned. `data` is its result, and the only one that this step will ever have. */
  | { readonly kind: 'step-succeeded'; readonly name: string; readonly meta: StepMeta; readonly data: string }
  /** A step gave up. `data` is the error of its last attempt. */
  | { readonly kind: 'step-failed'; readonly name: string; readonly meta: StepMeta; readonly data: string }
  /**
   * An attempt of a step that can be undone is about to begin; it does not begin before this entry is durable. Should its
   * process die during the attempt, the journal still says that the step may have happened, whichever path its body takes
   * and however the run ends.
   */
  | { readonly kind: 'begun'; readonly name: string; readonly meta: null; readonly data: null }
  /**
   * The outcome of an attempt is unknown: it outlived its bound, or was aborted and threw, and its step can be undone. Or a
   * `begun` entry named it and it did not begin, because its run was about to stop: then there is no `undo`.
   */
  | { readonly kind: 'abandoned'; readonly name: string; readonly meta: StepMeta; readonly data: null }
  /** An attempt of a step or effect, or of the body when `name` is null, failed and will be repeated after `delayMs`. */
  | { readonly kind: 'attempt-failed'; readonly name: string | null; readonly meta: RetryMeta; readonly data: string }
  /** A value that must be the same on replay: the time, a random number, an id. */
  | { readonly kind: 'recorded'; readonly name: string; readonly meta: null; readonly data: string }
  /** The code that came with a change took effect in this run: `name` is the id of the change. */
  | { readonly kind: 'patched'; readonly name: string; readonly meta: null; readonly data: null }
  /** The body waits, or has made a wait that it may await later. Relative times count from the time of this entry. */
  | { readonly kind: 'waiting'; readonly name: string; readonly meta: WaitingMeta; readonly data: null }
  /** A wait is over. `data` is the payload of the message that ended it; null if it was time. */
  | { readonly kind: 'woken'; readonly name: string; readonly meta: WokenMeta; readonly data: string | null }
  /**
   * A decider decided on an input; the result comes next, in the same transition. `name` is the input's type, `data` the
   * input; null if the run was started with it, or if it cannot be read.
   */
  | { readonly kind: 'input'; readonly name: string | null; readonly meta: InputMeta; readonly data: string | null }
  /** The input before it was rejected. `data` is the rejection. */
  | { readonly kind: 'input-rejected'; readonly name: null; readonly meta: null; readonly data: string }
  /** The input before it could not be decided, and changed nothing. `data` is the error. */
  | { readonly kind: 'input-failed'; readonly name: null; readonly meta: null; readonly data: string }
  /** An event of a decider: its state is the fold of these. `name` is the type of the event. */
  | { readonly kind: 'event'; readonly name: string; readonly meta: EventMeta | null; readonly data: string }
  /** A decider asks for a side effect. `name` is its type and the number of this entry: `charge#17`. `data` is the effect. */
  | { readonly kind: 'effect'; readonly name: string; readonly meta: null; readonly data: string }
  /** A side effect was performed. Its return value is the input that follows; there is none if it returned nothing. */
  | { readonly kind: 'effect-succeeded'; readonly name: string; readonly meta: AttemptMeta; readonly data: null }
  /** A side effect gave up. `data` is the error of its last attempt. */
  | { readonly kind: 'effect-failed'; readonly name: string; readonly meta: AttemptMeta; readonly data: string }
  /**
   * An input is due later: `data`. `name` is the key of the timer, and it replaces the one that has that key; a timer without
   * a key has `#` and the number of this entry.
   */
  | { readonly kind: 'timer'; readonly name: string; readonly meta: TimerMeta; readonly data: string }
  /** The timer of that key will not fire. */
  | { readonly kind: 'timer-cancelled'; readonly name: string; readonly meta: null; readonly data: null }
  /** The input of a timer could not be decided, as often as it was tried. `data` is the error of the last attempt. */
  | { readonly kind: 'timer-failed'; readonly name: string; readonly meta: AttemptMeta; readonly data: string }
  /** A decider started another run: `name` is its type. Its input is in its own journal. */
  | { readonly kind: 'start-sent'; readonly name: string; readonly meta: null; readonly data: null }
  /**
   * A signal was sent with this entry. `name` is the identity of the call, or the name of the signal if a decider sent it;
   * `data` is its payload. Both others are null if there was no run to send it to.
   */
  | {
      readonly kind: 'signal-sent'
      readonly name: string
      readonly meta: SignalMeta | null
      readonly data: string | null
    }
  /** The same of a broadcast to a topic. */
  | { readonly kind: 'broadcast-sent'; readonly name: string; readonly meta: BroadcastMeta; readonly data: string }
  /** A message that the run has taken was answered: `data` is the answer, or the error with which it was refused. */
  | { readonly kind: 'replied'; readonly name: string; readonly meta: ReplyMeta; readonly data: string }
  /** The fold of all entries before it: `data`. Nothing depends on it: without it the journal is read from its beginning. */
  | { readonly kind: 'snapshot'; readonly name: null; readonly meta: SnapshotMeta; readonly data: string }
  /** A line of the run's own log. */
  | { readonly kind: 'logged'; readonly name: string; readonly meta: null; readonly data: string }
  /** `data` is the hash of a secret with which an outside caller can complete a wait. */
  | { readonly kind: 'issued'; readonly name: string; readonly meta: null; readonly data: string }
  /** A value that the run exposes to queries under `name`: `data`. The last one counts. */
  | { readonly kind: 'exposed'; readonly name: string; readonly meta: ExposedMeta; readonly data: string }
  /** The progress that the run reports. `data` is its text, if any. */
  | { readonly kind: 'progressed'; readonly name: string; readonly meta: ProgressMeta; readonly data: string | null }
  /** Its holder died, or held it past its deadline, and lost the run. */
  | { readonly kind: 'crashed'; readonly name: null; readonly meta: CrashedMeta; readonly data: null }
  /** The run was stopped until an operator acts. `data` is the operator's note, if a codec has encrypted it. */
  | { readonly kind: 'paused'; readonly name: null; readonly meta: PausedMeta; readonly data: string | null }
  /**
   * An operator resumed a paused run. `data` is their note, as with a pause. Or a live process that was declared dead took
   * its crash back, whether the run was paused for it or not: the engine's own note says so.
   */
  | { readonly kind: 'resumed'; readonly name: null; readonly meta: NoteMeta; readonly data: string | null }
  /**
   * An operator retried a failed run: its attempts are counted from zero from here on. `data` is their note, as with a
   * pause.
   */
  | { readonly kind: 'retried'; readonly name: null; readonly meta: NoteMeta; readonly data: string | null }
  /** An operator repaired the journal: an earlier outcome is dropped, or `data` replaces its result. */
  | { readonly kind: 'amended'; readonly name: string | null; readonly meta: AmendedMeta; readonly data: string | null }
  /** The run will fail, but has something to undo first. `data` is the error. */
  | { readonly kind: 'failing'; readonly name: null; readonly meta: FailedMeta | null; readonly data: string }
  /** The run will be cancelled, but has something to undo first. */
  | { readonly kind: 'cancelling'; readonly name: null; readonly meta: CancelMeta; readonly data: null }
  /** A step was undone. */
  | { readonly kind: 'undone'; readonly name: string; readonly meta: AttemptMeta; readonly data: null }
  /** An attempt to undo a step failed and will be repeated after `delayMs`. */
  | { readonly kind: 'undo-attempt-failed'; readonly name: string; readonly meta: RetryMeta; readonly data: string }
  /** A step could not be undone. `data` is the error of the last attempt. */
  | { readonly kind: 'undo-failed'; readonly name: string; readonly meta: AttemptMeta; readonly data: string }
  /** The body returned. `data` is the output. */
  | { readonly kind: 'succeeded'; readonly name: null; readonly meta: null; readonly data: string }
  /** The run gave up. `data` is the error. */
  | { readonly kind: 'failed'; readonly name: null; readonly meta: FailedMeta | null; readonly data: string }
  /** The run was cancelled. */
  | { readonly kind: 'cancelled'; readonly name: null; readonly meta: CancelledMeta; readonly data: null }

export type EntryKind = Draft['kind'] | Damaged['kind']

const kinds: Readonly<Record<Draft['kind'], true>> = {
  started: true,
  continued: true,
  'step-succeeded': true,
  'step-failed': true,
  begun: true,
  abandoned: true,
  'attempt-failed': true,
  recorded: true,
  patched: true,
  waiting: true,
  woken: true,
  input: true,
  'input-rejected': true,
  'input-failed': true,
  event: true,
  effect: true,
  'effect-succeeded': true,
  'effect-failed': true,
  timer: true,
  'timer-cancelled': true,
  'timer-failed': true,
  'start-sent': true,
  'signal-sent': true,
  'broadcast-sent': true,
  replied: true,
  snapshot: true,
  logged: true,
  issued: true,
  exposed: true,
  progressed: true,
  crashed: true,
  paused: true,
  resumed: true,
  retried: true,
  amended: true,
  failing: true,
  cancelling: true,
  undone: true,
  'undo-attempt-failed': true,
  'undo-failed': true,
  succeeded: true,
  failed: true,
  cancelled: true,
}

/** The kinds of entries that transitions append. */
export const entryKinds = Object.keys(kinds) as readonly Draft['kind'][]

/** Whether a text is the kind of an entry that a transition can have appended. */
export function isEntryKind(text: string): text is Draft['kind'] {
  return Object.hasOwn(kinds, text)
}

/**
 * A row of a journal that is not a valid entry: the engine did not write it, or it was changed since. No transition appends
 * one; a store returns it in its place, so that it harms only its own run.
 */
export interface Damaged {
  readonly kind: 'damaged'
  readonly name: string | null
  readonly meta: DamagedMeta
  readonly data: null
}

export interface DamagedMeta {
  /** The kind that the row has. */
  readonly kind: string
  /** The defect of the row. */
  readonly why: string
}

export type Entry = (Draft | Damaged) & {
  /** 1, 2, 3 … without a gap. */
  readonly seq: number
  /** Store time of the commit. */
  readonly at: number
  /** The id of the transition that appended it, on the first entry of that transition. */
  readonly transition: string | null
}

export interface StartedMeta {
  /** The number of attempts of the body; overrides the workflow's policy. */
  readonly maxAttempts: number
}

export interface ContinuedMeta {
  /** The type and version of the run from here on. */
  readonly type: string
  readonly version: number
}

export interface AttemptMeta {
  /** 1 for the first. */
  readonly attempt: number
  /** How long that attempt took. */
  readonly ms: number
}

export interface StepMeta extends AttemptMeta {
  /** The step has an undo, and may have happened: it succeeded, or its outcome is unknown. */
  readonly undo?: true
  /** The event with which a step of a graph has ended. */
  readonly event?: string
}

export interface InputMeta {
  readonly from: InputSource
  /**
   * `failed`: deciding it threw. `already-completed`: the instance was over before. `duplicate`: its command was decided
   * before. Of the others, `input-rejected` has the rejection and `event` entries have the events.
   */
  readonly outcome: 'accepted' | 'rejected' | 'failed' | 'already-completed' | 'duplicate'
  /** The id of the command: its repetition gets this outcome again. Left out if its sender gave none. */
  readonly command?: string
}

export type InputSource =
  /** The run was started with it: it is the data of its first entry. */
  | { readonly kind: 'start' }
  /** A client had it decided at once. */
  | { readonly kind: 'call' }
  /** It came from the mailbox: this is the id of that message. */
  | { readonly kind: 'message'; readonly id: string }
  /** A side effect returned it, or gave up. */
  | { readonly kind: 'effect'; readonly name: string }
  /** A timer of that key was due, at that time. */
  | { readonly kind: 'timer'; readonly name: string; readonly dueAt: number }

export interface EventMeta {
  /** The version of the form of its data. */
  readonly version: number
}

export interface SnapshotMeta {
  /** Of the code that folded it: code with another fingerprint passes it over, unless it brings older states up to date. */
  readonly fingerprint: string
  /** The `stateVersion` of that code; left out by code that did not write it. */
  readonly stateVersion?: number
}

/** When a timer is due: at a point in time, or this long after the commit of its entry. */
export interface TimerMeta {
  readonly at: number | null
  readonly afterMs: number | null
}

export interface RetryMeta extends AttemptMeta {
  readonly delayMs: number
  /**
   * How many attempts so far failed only because of conflicts with other transactions: they do not count. Left out if none.
   */
  readonly conflicts?: number
}

export interface WaitingMeta {
  readonly conditions: readonly RecordedCondition[]
  /** The body had made it and did not await it, or not yet. */
  readonly unawaited?: true
  /** Runs that were started with it, by their ids. */
  readonly started?: Readonly<Record<string, StartedChild>>
}

export interface StartedChild {
  readonly type: string
  /** The run does not end before this one has. */
  readonly outlasted?: true
}

export interface ExposedMeta {
  /** The identity of the call. */
  readonly call: string
}

export interface WokenMeta {
  /** The tag of the condition that came true first. */
  readonly winner: string
  /** When it came true. */
  readonly trueAt: number
  /** When the holder saw it. */
  readonly seenAt: number
  /** The message that ended it; left out if it was time. */
  readonly by?: WokenBy
}

/** The message that ended a wait. Its payload, encoded again for the entry, is the entry's data. */
export interface WokenBy {
  readonly id: string
  readonly kind: MessageKind
  readonly name: string
  /** How that run has ended, if its end was waited for; its last payload is the data. */
  readonly ended?: { readonly status: Ended['status']; readonly reason: string | null }
  /** Why that run could not be started. */
  readonly refused?: Refused
  /** Why the run could not subscribe to that topic. */
  readonly crowded?: Crowded
}

export interface ProgressMeta {
  readonly fraction: number
}

export interface CrashedMeta {
  /** The session that held the run. */
  readonly session: string
  /** How many holders in a row died before they committed anything, this one included. */
  readonly crashes: number
}

export interface NoteMeta {
  readonly note: string | null
}

export interface AmendedMeta {
  /** The entry that is repaired. */
  readonly seq: number
  /** True if the outcome is dropped; otherwise `data` is its new result. */
  readonly dropped: boolean
}

export interface FailedMeta {
  /** The `step-failed` entry whose error ended the body; null if it was something else. */
  readonly cause: number | null
  /** Steps with an `undo` that did not take place. */
  readonly notUndone: readonly string[]
}

export interface CancelMeta {
  readonly reason: string | null
}

export interface CancelledMeta extends CancelMeta {
  /** Steps with an `undo` that did not take place. */
  readonly notUndone: readonly string[]
}

export type PausedMeta = Drift | Unreadable | StoppedMeta

export interface StoppedMeta extends NoteMeta {
  readonly reason: PauseReason
  /** The number for which the note was encrypted, if that is not the number of this entry: see `Note`. */
  readonly sealedFor?: number
}

/** A payload that the run needs cannot be read: its key is missing, or the text is damaged. Nothing was undone. */
export interface Unreadable {
  readonly reason: 'unreadable'
  /** The entry whose payload it is. */
  readonly entry: { readonly seq: number; readonly name: string | null }
  /** The id of the key that is missing; null if another reason keeps the payload from being read. */
  readonly key: string | null
  /** Why it cannot be read. */
  readonly why: string
  /** The row that the engine cannot have written; left out if it is the payload of the entry. */
  readonly damaged?: string
  readonly note: string
}

export interface Drift {
  readonly reason: 'drift'
  /** The recorded call that the body did not make. */
  readonly recorded: { readonly seq: number; readonly kind: EntryKind; readonly name: string | null }
  /** The calls that the body made instead. */
  readonly found: readonly FoundCall[]
  readonly message: string
}

export interface FoundCall {
  readonly kind: 'step' | 'wait' | 'send'
  readonly name: string
  /** The file, line and column of the call; null if they are not known. */
  readonly place: string | null
}
