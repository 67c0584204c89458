// The journal's entries. An entry says what happened to a run, once; it never changes.
// `name` is the identity of the call that it belongs to (`charge`, `charge#2`, `eu/charge`), `meta` what the engine
// itself must be able to read, `data` the user's payload after the codec. A store keeps all three without looking in.

import type { Condition } from './wait.ts'

/** What a transition appends: an entry that does not yet have its place and time. */
export type Draft =
  /** The run exists. `data` is its input. */
  | { readonly kind: 'started'; readonly name: null; readonly meta: null; readonly data: string }
  /** A step returned. `data` is its result, and the only one that this step will ever have. */
  | { readonly kind: 'step-succeeded'; readonly name: string; readonly meta: AttemptMeta; readonly data: string }
  /** A step gave up. `data` is the error of its last attempt. */
  | { readonly kind: 'step-failed'; readonly name: string; readonly meta: AttemptMeta; readonly data: string }
  /** An attempt of a step, or of the body when `name` is null, failed and will be repeated after `delayMs`. */
  | { readonly kind: 'attempt-failed'; readonly name: string | null; readonly meta: RetryMeta; readonly data: string }
  /** A value that must be the same on replay: the time, a random number, an id. */
  | { readonly kind: 'recorded'; readonly name: string; readonly meta: null; readonly data: string }
  /** The body waits. Relative times count from the time of this entry. */
  | { readonly kind: 'waiting'; readonly name: string; readonly meta: WaitingMeta; readonly data: null }
  /** A wait is over. */
  | { readonly kind: 'woken'; readonly name: string; readonly meta: WokenMeta; readonly data: string | null }
  /** A line of the run's own log. */
  | { readonly kind: 'logged'; readonly name: string; readonly meta: null; readonly data: string }
  /** How far the run says it is. */
  | { readonly kind: 'progressed'; readonly name: string; readonly meta: ProgressMeta; readonly data: null }
  /** Its holder died, or held it past its deadline: the run was taken from it. */
  | { readonly kind: 'crashed'; readonly name: null; readonly meta: CrashedMeta; readonly data: null }
  /** The run was stopped until someone acts. */
  | { readonly kind: 'paused'; readonly name: null; readonly meta: PausedMeta; readonly data: null }
  /** The body returned. `data` is the output. */
  | { readonly kind: 'succeeded'; readonly name: null; readonly meta: null; readonly data: string }
  /** The run gave up. `data` is the error. */
  | { readonly kind: 'failed'; readonly name: null; readonly meta: null; readonly data: string }

export type EntryKind = Draft['kind']

export type Entry = Draft & {
  /** 1, 2, 3 … without a gap. */
  readonly seq: number
  /** Store time of the commit. */
  readonly at: number
  /** The id of the transition that appended it, on the first entry of that transition. */
  readonly transition: string | null
}

export interface AttemptMeta {
  /** 1 for the first. */
  readonly attempt: number
  /** How long that attempt took. */
  readonly ms: number
}

export interface RetryMeta extends AttemptMeta {
  readonly delayMs: number
}

export interface WaitingMeta {
  readonly conditions: readonly Condition[]
}

export interface WokenMeta {
  /** The tag of the condition that came true first. */
  readonly winner: string
  /** When it came true. */
  readonly trueAt: number
  /** When the holder saw it. */
  readonly seenAt: number
}

export interface ProgressMeta {
  readonly fraction: number
  readonly text: string | null
}

export interface CrashedMeta {
  /** The session that held the run. */
  readonly session: string
  /** How many holders in a row died before they committed anything, this one included. */
  readonly crashes: number
}

export type PausedMeta = {
  readonly reason: 'drift'
  /** What the journal has and the body did not ask for. */
  readonly recorded: { readonly seq: number; readonly kind: EntryKind; readonly name: string | null }
  /** What the body asks for instead. */
  readonly found: readonly { readonly kind: 'step' | 'wait'; readonly name: string }[]
  readonly message: string
}
