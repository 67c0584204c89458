// The journal of a run, arranged for replay: outcomes in the order in which the body must see them again, all other entries
// by the identity of the call that they belong to.
//
// It is the effective journal: an outcome that an operator dropped does not exist, and one that was amended has the amended
// result. Outcomes that were recorded between such a one and its repair are optional: the body gets them if it asks for them, in
// their order, but it need not ask, because it may take another path now.

import type { Entry } from '../../core/model/entry.ts'
import { inputOf, type DamagedEntry } from './damage.ts'
import {
  arrangeJournal,
  callKind,
  type CallKind,
  type EntryOf,
  type Outcome,
  type RecordedJournal,
  type RecordedEntry,
  type ToUndo,
} from './recorded-journal.ts'
import { isEndName } from '../api/call-identity.ts'

export type { RecordedPlace } from './damage.ts'
export { callKind, type CallKind, type Outcome, type RecordedEntry, type ToUndo } from './recorded-journal.ts'

export class History {
  readonly input: EntryOf<'started' | 'continued'>
  private recorded: RecordedJournal | null
  private at = 0

  constructor(entries: readonly Entry[]) {
    const [first] = entries
    this.input = inputOf(first)
    // A run that has just begun has nothing to replay, and there are many of those.
    this.recorded = entries.length === 1 && first?.kind !== 'damaged' ? null : arrangeJournal(entries)
  }

  /** The first entry that the engine cannot have written, or not so: the run cannot go on with such a journal. */
  get damaged(): DamagedEntry | null {
    return this.recorded?.damaged ?? null
  }

  /** How often the body has failed without having come any further. */
  get bodyFailures(): number {
    return this.recorded?.bodyFailures ?? 0
  }

  /** The next recorded outcome that the body must see and has not seen. */
  next(): Outcome | undefined {
    return this.recorded?.outcomes[this.at]
  }

  /** The body has seen every outcome that it must see: from here on new calls are begun and written. */
  get isOver(): boolean {
    return this.next() === undefined
  }

  /** The optional outcomes that the body has not seen. */
  get optional(): readonly Outcome[] {
    return this.recorded?.optional ?? nothing
  }

  /** The body has seen this one. */
  seen(outcome: Outcome): void {
    const optional = this.recorded?.optional.indexOf(outcome) ?? -1
    if (optional === -1) this.at += 1
    else this.recorded?.optional.splice(optional, 1)
  }

  /**
   * Forgets the outcomes that the body has seen. A parked frame may rest for a long time, and needs only the entries that are
   * still to be seen or undone.
   */
  forgetSeen(): void {
    const { recorded } = this
    if (recorded === null || this.next() !== undefined) return
    this.at = 0
    for (const name of recorded.settled.wait) if (!isEndName(name)) recorded.settled.wait.delete(name)
    const isEmpty = recorded.failing === null && recorded.cancelling === null && sizeOf(recorded) === 0
    this.recorded = isEmpty ? null : withoutSeen(recorded)
  }

  /** Whether the journal has the outcome of this call. */
  has(kind: CallKind, name: string): boolean {
    return this.recorded?.settled[kind].has(name) ?? false
  }

  /** The last failed attempt of a step that may still be tried again. */
  failedAttempt(step: string): EntryOf<'attempt-failed'> | undefined {
    return this.recorded?.attempts.get(step)
  }

  wait(name: string): EntryOf<'waiting'> | undefined {
    return this.recorded?.waits.get(name)
  }

  /** The recorded value of that call. It can be asked for once, like the two that follow. */
  value(name: string): EntryOf<'recorded'> | undefined {
    return take(this.recorded?.values, name)
  }

  /** The secret that a call has issued. */
  issued(name: string): EntryOf<'issued'> | undefined {
    return take(this.recorded?.issued, name)
  }

  /** The run had ended since that wait was registered, and was retried: its targets are no longer watched. */
  hasEndedSince({ seq }: EntryOf<'waiting'>): boolean {
    return seq < (this.recorded?.retriedAt ?? 0)
  }

  /** Children that the run must outlast, and that no wait of the body has seen end. */
  get outlastedChildren(): ReadonlySet<string> {
    return this.recorded?.outlastedChildren ?? nobodyElse
  }

  hasNote(name: string): boolean {
    return this.recorded?.notes.delete(name) ?? false
  }

  /** Whether the journal has that change of the code. It can be asked for once. */
  hasPatch(id: string): boolean {
    return take(this.recorded?.patches, id) !== undefined
  }

  /** The last change of the code before that entry which the body has not asked for. */
  unknownPatch(seq: number): EntryOf<'patched'> | undefined {
    return Array.from(this.recorded?.patches.values() ?? []).findLast((patch) => patch.seq < seq)
  }

  /** The first outcome left that must be seen and whose call is not among those that the body made. */
  firstWithout(made: (kind: CallKind, name: string) => boolean): Outcome | undefined {
    return this.recorded?.outcomes.slice(this.at).find((outcome) => !made(callKind(outcome), outcome.name))
  }

  /** The first step that may have been begun, and whose call is not among those that the body made. */
  firstBegunWithout(made: (kind: CallKind, name: string) => boolean): RecordedEntry | undefined {
    for (const [name, entry] of this.begun) if (!made('step', name)) return entry
    return undefined
  }

  /**
   * Steps that may have happened and have an undo function, by name, unless their undo has ended, or the body has said how
   * they are undone.
   */
  get toUndo(): ReadonlyMap<string, ToUndo> {
    return this.recorded?.toUndo ?? nothingToUndo
  }

  /** The body says how that step is undone: from here on the caller knows it. */
  takeToUndo(step: string): ToUndo | undefined {
    return take(this.recorded?.toUndo, step)
  }

  /** The journal knows of steps that may have to be undone, and the body has not said how. */
  get mayUndo(): boolean {
    return this.toUndo.size > 0 || this.begun.size > 0
  }

  /** Steps with undo that were under way when their process died: their outcome is unknown. */
  get begun(): ReadonlyMap<string, EntryOf<'begun'>> {
    return this.recorded?.begun ?? nothingBegun
  }

  /** The outcome of that step is known now. */
  resolve(step: string): void {
    this.recorded?.begun.delete(step)
  }

  /** Steps that could not be undone. */
  get notUndone(): readonly string[] {
    return this.recorded?.notUndone ?? nothing
  }

  /** The last failed attempt to undo a step. */
  failedUndo(step: string): EntryOf<'undo-attempt-failed'> | undefined {
    return this.recorded?.undoAttempts.get(step)
  }

  /** The run is to fail with this, once everything is undone. */
  get failing(): EntryOf<'failing'> | null {
    return this.recorded?.failing ?? null
  }

  /** The run is to be cancelled, once everything is undone. */
  get cancelling(): EntryOf<'cancelling'> | null {
    return this.recorded?.cancelling ?? null
  }
}

function take<Value>(map: Map<string, Value> | undefined, name: string): Value | undefined {
  const value = map?.get(name)
  map?.delete(name)
  return value
}

/** The rest of a journal that was shown. Nothing is ever added to it, so all runs share the tables that are empty. */
function withoutSeen(recorded: RecordedJournal): RecordedJournal {
  const { settled, values, issued, outlastedChildren, notes, patches, toUndo, begun, undoAttempts } = recorded
  return {
    ...recorded,
    outcomes: [],
    settled: { step: emptySet, wait: filled(settled.wait, emptySet), send: emptySet },
    waits: emptyMap,
    attempts: emptyMap,
    values: filled(values, emptyMap),
    issued: filled(issued, emptyMap),
    outlastedChildren: filled(outlastedChildren, emptySet),
    notes: filled(notes, emptySet),
    patches: filled(patches, emptyMap),
    toUndo: filled(toUndo, emptyMap),
    begun: filled(begun, emptyMap),
    undoAttempts: filled(undoAttempts, emptyMap),
  }
}

function filled<Table extends { readonly size: number }>(table: Table, empty: Table): Table {
  return table.size === 0 ? empty : table
}

/** How much there is that a frame may still need. */
function sizeOf(recorded: RecordedJournal): number {
  const { optional, settled, values, issued, outlastedChildren, notes, patches, toUndo, begun, undoAttempts } = recorded
  const rest = [settled.wait, values, issued, outlastedChildren, notes, patches, toUndo, begun, undoAttempts]
  return rest.reduce(
    (size, part) => size + part.size,
    optional.length + recorded.notUndone.length + recorded.bodyFailures,
  )
}

const nothing: readonly never[] = []
const emptyMap = new Map<string, never>()
const emptySet = new Set<never>()
const nothingToUndo: ReadonlyMap<string, ToUndo> = new Map()
const nobodyElse: ReadonlySet<string> = new Set()
const nothingBegun: ReadonlyMap<string, EntryOf<'begun'>> = new Map()
