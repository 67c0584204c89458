// The transition that a batch becomes: entries are encoded for their places, folded at once, and counted against the bounds of
// a transition. What one input adds can be taken back as a whole.

import type { EffectRequest, SignalRequest, StartRequest } from '../../core/definition/decider-model.ts'
import { messageOf } from '../../core/errors/error.ts'
import type { Draft, EntryKind } from '../../core/model/entry.ts'
import { mostBytes, mostEntries, sizeOf } from '../../core/model/transition.ts'
import type { Fold } from '../fold/fold.ts'
import type { Moment } from '../fold/timers.ts'

type Value<Each> = Each extends Draft ? Omit<Each, 'data'> : never

/** An entry with the value of its payload; no payload if there is none. */
export type Proposal = Value<Draft> & ({ readonly value?: unknown } | { readonly error: unknown })

/** The most characters of an error with all that its author has put into it. */
const longestFailure = 65_536

/** The batch has no room for what an input adds. */
export class Full extends Error {
  override readonly name = 'Full'
}

export interface Mark {
  readonly log: number
  readonly append: number
  readonly bytes: number
  readonly takes: number
  readonly settles: number
  readonly effects: number
  readonly starts: number
  readonly signals: number
  readonly end: TransitionDraft['end']
}

export class TransitionDraft {
  readonly append: Draft[] = []
  readonly takes: string[] = []
  readonly settles: string[] = []
  readonly effects: EffectRequest[] = []
  readonly starts: StartRequest[] = []
  readonly signals: SignalRequest[] = []
  end: 'succeeded' | 'failed' | null = null
  private bytes = 0
  private readonly fold: Fold
  private readonly since: Moment

  constructor(fold: Fold, since: Moment) {
    this.fold = fold
    this.since = since
  }

  /** The number of the next entry. */
  get next(): number {
    return this.fold.seq + 1
  }

  /** Appends an entry, and folds it. Returns its text. Throws `Full`, NOT_STORABLE, or what folding it throws. */
  add(proposal: Proposal): string | null {
    const { value, error, ...rest } = proposal as Value<Draft> & { readonly value?: unknown; readonly error?: unknown }
    const data =
      'error' in proposal ? this.failure(error, rest.kind, rest.name) : this.text(value, rest.kind, rest.name)
    const draft = { ...rest, data } as Draft
    const bytes = this.bytes + sizeOf(draft)
    if (this.append.length >= mostEntries || bytes > mostBytes) throw new Full()
    this.fold.apply({ ...draft, seq: this.next }, this.since)
    this.append.push(draft)
    this.bytes = bytes
    return data
  }

  /** Counts a text that goes with the transition, and is not in the journal of the instance. Throws `Full`. */
  carry(text: string | null): void {
    this.bytes += text?.length ?? 0
    if (this.bytes > mostBytes) throw new Full()
  }

  /** A payload for the next entry. Throws NOT_STORABLE. */
  encode(value: unknown, kind: EntryKind, name: string | null): string {
    return this.fold.options.texts.encode(value, this.next, kind, name)
  }

  mark(): Mark {
    const { append, takes, settles, effects, starts, signals, bytes, end } = this
    return {
      log: this.fold.log.length,
      append: append.length,
      bytes,
      takes: takes.length,
      settles: settles.length,
      effects: effects.length,
      starts: starts.length,
      signals: signals.length,
      end,
    }
  }

  /** Takes back everything after that mark. */
  back(mark: Mark): void {
    this.fold.log.back(mark.log)
    this.append.length = mark.append
    this.bytes = mark.bytes
    this.takes.length = mark.takes
    this.settles.length = mark.settles
    this.effects.length = mark.effects
    this.starts.length = mark.starts
    this.signals.length = mark.signals
    this.end = mark.end
  }

  private text(value: unknown, kind: EntryKind, name: string | null): string | null {
    return value === undefined ? null : this.encode(value, kind, name)
  }

  private failure(error: unknown, kind: EntryKind, name: string | null): string {
    const { texts } = this.fold.options
    const text = texts.encodeFailure(error, this.next, kind, name)
    // An author's error may carry anything: it must not keep from being recorded what it reports.
    if (text.length <= longestFailure) return text
    return texts.encodeFailure(new Error(messageOf(error).slice(0, longestFailure / 64)), this.next, kind, name)
  }
}
