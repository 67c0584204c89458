// The fold of a journal: all that is known of an instance. `apply` is the only way in which it changes, for entries that are
// read and for those that were just decided, so what was decided is what a replay folds.
//
// Of the entries only `event` runs code of the author. What was decided stays decided, whatever `decide` says now.

import type { KnownCommand, PendingEffect } from '../../core/definition/decider-model.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { InputMeta, InputSource } from '../../core/model/entry.ts'
import { isErased } from '../../core/payload/codec.ts'
import { callPure } from '../../core/runtime/pure-call.ts'
import { quotedText } from '../../core/text/printable.ts'
import { erasedEvent, readEvent, unreadable } from '../past/read-event.ts'
import type { DeciderRules } from '../rules.ts'
import { frozen } from './freeze.ts'
import type { JournalTexts, Read } from './journal-texts.ts'
import { KnownCommands } from './known-commands.ts'
import { Timers, type Moment } from './timers.ts'
import { UndoLog } from './undo-log.ts'

export interface FoldOptions {
  readonly rules: DeciderRules
  readonly texts: JournalTexts
  /** The id of the instance. */
  readonly id: string
  /** What inputs with the same content share; null if that is not to be known. */
  readonly contentOf: ((input: unknown) => string | null) | null
}

/** The input that the run was started with. */
export interface FirstInput {
  readonly read: () => unknown
  readonly isDecided: boolean
  readonly isAccepted: boolean
}

type PendingWork = Omit<PendingEffect, 'createdAt'> & {
  readonly since: Moment
  /** The effect. Throws if its text cannot be read. */
  readonly read: () => unknown
}

export class Fold {
  readonly log = new UndoLog()
  readonly timers = new Timers(this.log)
  readonly effects = new Map<string, PendingWork>()
  /** Effects that have given up: an operator may have them tried again. */
  readonly dead = new Map<string, PendingWork>()
  readonly commands: KnownCommands
  seq = 0
  state: unknown
  /** The last entry says that it is over. */
  hasEnded = false
  /** Null while there is no journal. */
  first: FirstInput | null = null
  /** The number of the last snapshot, or of the first entry. */
  snapshotSeq = 0
  /** The event that was folded last, as it is read. */
  lastEvent: unknown
  readonly options: FoldOptions
  /** The state, and whether it is terminal. */
  private judged: { readonly state: unknown; readonly isTerminal: boolean } | null = null

  constructor(options: FoldOptions) {
    this.options = options
    const { rules } = options
    this.commands = new KnownCommands(this.log, rules.dedup)
    try {
      this.state = settled(
        'initial',
        callPure(`initial of decider "${rules.type}"`, () => rules.initial()),
      )
    } catch (cause) {
      throw unusableInitial(options, cause)
    }
  }

  /** Its end is recorded, or due. */
  get isOver(): boolean {
    if (this.hasEnded) return true
    const { state } = this
    if (this.judged === null || this.judged.state !== state) {
      const { rules } = this.options
      const what = `isTerminal of decider "${rules.type}"`
      const isTerminal = settled(
        'isTerminal',
        callPure(what, () => rules.isTerminal(frozen(state))),
      )
      this.judged = { state, isTerminal }
    }
    return this.judged.isTerminal
  }

  /** Folds an entry. Throws EVENT_UNREADABLE. */
  apply(entry: Read, since: Moment): void {
    this.become('seq', entry.seq)
    switch (entry.kind) {
      case 'started':
      case 'continued':
        this.become('first', {
          read: () => this.options.texts.decode(entry),
          isDecided: false,
          isAccepted: false,
        })
        this.become('snapshotSeq', entry.seq)
        return
      case 'input':
        return this.applyInput(entry, entry.meta, since)
      case 'event':
        return this.become('state', this.evolved(entry))
      case 'effect':
        return this.log.set(this.effects, entry.name, {
          name: entry.name,
          type: typeOf(entry.name),
          seq: entry.seq,
          since,
          read: () => this.options.texts.decode(entry),
        })
      case 'effect-succeeded':
        this.log.set(this.dead, entry.name, null)
        return this.log.set(this.effects, entry.name, null)
      case 'effect-failed':
        return this.applyDead(entry.name)
      case 'timer':
        return this.timers.set({
          name: entry.name,
          due: entry.meta,
          since,
          failures: 0,
          input: () => this.options.texts.decode(entry),
        })
      case 'attempt-failed':
        return this.applyFailure(entry.name, entry.meta, since)
      case 'timer-cancelled':
      case 'timer-failed':
        return this.timers.delete(entry.name)
      case 'snapshot':
        return this.become('snapshotSeq', entry.seq)
      case 'succeeded':
      case 'failed':
      case 'cancelled':
        this.timers.clear()
        return this.become('hasEnded', true)
      case 'retried':
        return this.become('hasEnded', false)
      case 'damaged':
        throw this.unreadable(entry, new Error(entry.meta.why))
      default:
        return
    }
  }

  /** The changes of these entries are durable: the windows are cut. */
  settle(): void {
    this.commands.cut()
    this.timers.refresh()
  }

  private applyInput(entry: Read, { from, outcome, command }: InputMeta, since: Moment): void {
    if (from.kind === 'timer') this.timers.delete(from.name)
    if (from.kind === 'start' && this.first !== null) {
      this.become('first', { ...this.first, isDecided: true, isAccepted: outcome === 'accepted' })
    }
    if (outcome === 'duplicate' || outcome === 'already-completed') return
    const known: KnownCommand = { seq: entry.seq, outcome }
    this.commands.add(known, { id: command ?? idOf(from), content: this.contentOf(entry, from), since })
    if (!this.log.isOpen) this.commands.cut()
  }

  /** Only inputs from outside are recognised by their content: a timer may well bring the same input again and again. */
  private contentOf(entry: Read, from: InputSource): string | null {
    const { contentOf, texts } = this.options
    if (contentOf === null || from.kind === 'timer' || from.kind === 'effect') return null
    try {
      return contentOf(from.kind === 'start' ? this.first?.read() : texts.decode(entry))
    } catch {
      // It was recorded as failed because it cannot be read.
      return null
    }
  }

  private applyDead(name: string): void {
    const effect = this.effects.get(name)
    if (effect === undefined) return
    this.log.set(this.effects, name, null)
    this.log.set(this.dead, name, effect)
  }

  /** Attempts of effects are not in the journal: it is a timer whose input could not be decided. */
  private applyFailure(name: string | null, meta: { attempt: number; delayMs: number }, since: Moment): void {
    const timer = name === null ? undefined : this.timers.get(name)
    if (timer === undefined) return
    this.timers.set({ ...timer, due: { at: null, afterMs: meta.delayMs }, since, failures: meta.attempt })
  }

  private evolved(entry: Extract<Read, { kind: 'event' }>): unknown {
    const { rules, texts } = this.options
    try {
      const read = readEvent(rules, { ...entry, read: () => texts.decode(entry) })
      if (read === null) return this.state
      const event = frozen(read.event)
      const before = frozen(this.state)
      const state = settled(
        'evolve',
        callPure(`evolve of decider "${rules.type}"`, () => rules.evolve(before, event)),
      )
      this.lastEvent = event
      if (state !== undefined) return state
      throw new Error('evolve returned nothing, so it does not know this event')
    } catch (cause) {
      if (isErased(cause)) return this.afterErased(entry)
      throw this.unreadable(entry, cause)
    }
  }

  /** The state after an event whose data subject was erased: only its type is known. */
  private afterErased(entry: Extract<Read, { kind: 'event' }>): unknown {
    const { rules } = this.options
    if (rules.onErased === null) return this.state
    const { onErased } = rules
    const before = frozen(this.state)
    try {
      const event = erasedEvent(rules, entry.name)
      const state = settled(
        'onErased',
        callPure(`onErased of decider "${rules.type}"`, () => onErased(before, event)),
      )
      if (state !== undefined) return state
      throw new Error('onErased returned nothing: return the state as it is to pass the event over')
    } catch (cause) {
      throw this.unreadable(entry, cause)
    }
  }

  private unreadable(entry: Read, cause: unknown): HoldfastError {
    return unreadable(this.options.rules, this.options.id, entry, cause)
  }

  private become<Field extends Kept>(field: Field, value: Fold[Field]): void {
    if (this.log.isOpen) {
      const before = this[field]
      this.log.push(() => this.put(field, before))
    }
    this.put(field, value)
  }

  private put<Field extends Kept>(field: Field, value: Fold[Field]): void {
    ;(this as Pick<Fold, Field>)[field] = value
  }
}

/** The fields that entries change. */
type Kept = 'seq' | 'state' | 'hasEnded' | 'first' | 'snapshotSeq'

/** The type of an effect: `charge` of `charge#17`. */
function typeOf(name: string): string {
  return name.slice(0, name.lastIndexOf('#'))
}

function idOf(from: InputSource): string | null {
  return from.kind === 'message' ? from.id : null
}

/** The result of a pure function. Throws if it is a promise. */
function settled<Result>(name: string, result: Result): Result {
  if (!(result instanceof Promise)) return result
  result.catch(() => undefined)
  throw new Error(`${name} returned a promise. It is pure, and what takes time is an effect`)
}

function unusableInitial({ rules, id }: FoldOptions, cause: unknown): HoldfastError {
  return new HoldfastError(
    'DECIDE_FAILED',
    `Decider "${rules.type}" has no initial state for instance ${quotedText(id)}: ${messageOf(cause)}`,
    { cause, details: { type: rules.type, id, input: null } },
  )
}
