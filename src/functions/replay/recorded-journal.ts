// Collects a journal entry by entry: outcomes in the order in which the body must see them again, all other entries by the
// identity of the call that they belong to. `history.ts` hands them out.

import type { AmendedMeta, Entry } from '../../core/model/entry.ts'
import { damageOfAmended, damageOfWoken, type DamagedEntry } from './damage.ts'
import { isEndName } from '../api/call-identity.ts'

/** An entry that settles a call of the body, with the place at which its data is to be read. */
export interface Outcome {
  readonly kind: 'step-succeeded' | 'step-failed' | 'woken' | SentKind
  readonly name: string
  readonly seq: number
  readonly entry: OutcomeEntry
  /** The entry whose data is the result in its stead. */
  readonly amended: EntryOf<'amended'> | null
}

/** An entry of the journal, as far as it matters when the code does not ask for it. */
export type RecordedEntry = Pick<Entry, 'kind' | 'name' | 'seq'>

export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

type OutcomeEntry = EntryOf<Outcome['kind']>

/** A step that may have happened: where its result stands, if it is known. */
export interface ToUndo {
  readonly seq: number
  readonly result: EntryOf<'step-succeeded' | 'amended'> | null
}

export type CallKind = 'step' | 'wait' | 'send'

/** The entries with which a body sends. */
type SentKind = 'signal-sent' | 'broadcast-sent' | 'replied'

export function callKind({ kind }: Pick<Outcome, 'kind'>): CallKind {
  if (kind === 'woken') return 'wait'
  return kind === 'step-succeeded' || kind === 'step-failed' ? 'step' : 'send'
}

export interface RecordedJournal {
  outcomes: Outcome[]
  optional: Outcome[]
  readonly settled: Readonly<Record<CallKind, Set<string>>>
  readonly attempts: Map<string, EntryOf<'attempt-failed'>>
  readonly waits: Map<string, EntryOf<'waiting'>>
  readonly values: Map<string, EntryOf<'recorded'>>
  readonly issued: Map<string, EntryOf<'issued'>>
  readonly outlastedChildren: Set<string>
  readonly notes: Set<string>
  /** The changes of the code that the run has answered for. */
  readonly patches: Map<string, EntryOf<'patched'>>
  readonly toUndo: Map<string, ToUndo>
  readonly begun: Map<string, EntryOf<'begun'>>
  readonly undoAttempts: Map<string, EntryOf<'undo-attempt-failed'>>
  readonly notUndone: string[]
  damaged: DamagedEntry | null
  failing: EntryOf<'failing'> | null
  cancelling: EntryOf<'cancelling'> | null
  bodyFailures: number
  /** The entry with which an operator retried the failed run. */
  retriedAt: number
}

export function arrangeJournal(entries: readonly Entry[]): RecordedJournal {
  const recorded: RecordedJournal = {
    outcomes: [],
    optional: [],
    settled: { step: new Set(), wait: new Set(), send: new Set() },
    attempts: new Map(),
    waits: new Map(),
    values: new Map(),
    issued: new Map(),
    outlastedChildren: new Set(),
    notes: new Set(),
    patches: new Map(),
    toUndo: new Map(),
    begun: new Map(),
    undoAttempts: new Map(),
    notUndone: [],
    damaged: null,
    failing: null,
    cancelling: null,
    bodyFailures: 0,
    retriedAt: 0,
  }
  for (const entry of entries) add(recorded, entry)
  return recorded
}

function add(recorded: RecordedJournal, entry: Entry): void {
  switch (entry.kind) {
    case 'step-succeeded':
    case 'step-failed':
    case 'woken':
    case 'signal-sent':
    case 'broadcast-sent':
    case 'replied':
      return addOutcome(recorded, entry)
    case 'attempt-failed':
      return addFailedAttempt(recorded, entry)
    case 'begun':
      // An earlier attempt that was abandoned may have happened all the same: it is undone regardless of the outcome of this
      // one.
      recorded.begun.set(entry.name, entry)
      return
    case 'abandoned':
      recorded.begun.delete(entry.name)
      if (entry.meta.undo === true) recorded.toUndo.set(entry.name, { seq: entry.seq, result: null })
      return
    case 'waiting':
      return addWait(recorded, entry)
    case 'recorded':
      recorded.values.set(entry.name, entry)
      return
    case 'issued':
      recorded.issued.set(entry.name, entry)
      return
    case 'exposed':
      recorded.notes.add(entry.meta.call)
      return
    case 'logged':
    case 'progressed':
      recorded.notes.add(entry.name)
      return
    case 'patched':
      recorded.patches.set(entry.name, entry)
      return
    case 'amended':
      if (entry.meta.dropped) drop(recorded, entry.meta)
      else amend(recorded, entry)
      return
    case 'retried':
      recorded.bodyFailures = 0
      recorded.retriedAt = entry.seq
      return
    default:
      return addEnd(recorded, entry)
  }
}

/** The entries that are written when a run ends that has something to undo. */
function addEnd(recorded: RecordedJournal, entry: Entry): void {
  switch (entry.kind) {
    case 'failing':
      recorded.failing = entry
      return
    case 'cancelling':
      recorded.cancelling = entry
      return
    case 'undo-attempt-failed':
      recorded.undoAttempts.set(entry.name, entry)
      return
    case 'undo-failed':
      recorded.notUndone.push(entry.name)
      recorded.toUndo.delete(entry.name)
      return
    case 'undone':
      recorded.toUndo.delete(entry.name)
      return
    case 'damaged':
      recorded.damaged ??= { entry, why: entry.meta.why }
      return
    default:
      return
  }
}

function addFailedAttempt(recorded: RecordedJournal, entry: EntryOf<'attempt-failed'>): void {
  if (entry.name === null) recorded.bodyFailures = entry.meta.attempt
  else {
    recorded.attempts.set(entry.name, entry)
    recorded.begun.delete(entry.name)
  }
}

function addWait({ waits, outlastedChildren }: RecordedJournal, entry: EntryOf<'waiting'>): void {
  // A wait may be registered again. Its times count from the first.
  const first = waits.get(entry.name)
  waits.set(entry.name, first === undefined ? entry : { ...entry, at: first.at })
  for (const [id, { outlasted }] of Object.entries(entry.meta.started ?? {}))
    if (outlasted === true) outlastedChildren.add(id)
  // Once the end of a run has waited for a child, it does so on every replay.
  if (isEndName(entry.name))
    for (const one of entry.meta.conditions) if (one.kind === 'run') outlastedChildren.add(one.runId)
}

function addOutcome(recorded: RecordedJournal, entry: OutcomeEntry): void {
  const { kind, name, seq } = entry
  const outcome: Outcome = { kind, name, seq, entry, amended: null }
  recorded.outcomes.push(outcome)
  recorded.settled[callKind(entry)].add(name)
  if (entry.kind !== 'step-failed') recorded.bodyFailures = 0
  if (entry.kind === 'step-succeeded' || entry.kind === 'step-failed') addStep(recorded, entry)
  if (entry.kind !== 'woken') return
  const waited = recorded.waits.get(name)
  if (waited !== undefined) recorded.damaged ??= damageOfWoken(waited, entry)
  if (isEndName(name)) return
  const { by } = entry.meta
  if (by?.ended !== undefined || by?.refused !== undefined) recorded.outlastedChildren.delete(by.name)
}

function addStep({ begun, toUndo }: RecordedJournal, entry: EntryOf<'step-succeeded' | 'step-failed'>): void {
  const { name, seq } = entry
  begun.delete(name)
  // This outcome replaces the record that an earlier attempt was abandoned.
  if (entry.meta.undo === true) toUndo.set(name, { seq, result: entry.kind === 'step-succeeded' ? entry : null })
  else toUndo.delete(name)
}

function drop(recorded: RecordedJournal, { seq }: AmendedMeta): void {
  const dropped = makeOptional(recorded, seq)
  if (dropped === undefined) return
  const { name } = dropped
  recorded.settled[callKind(dropped)].delete(name)
  // Messages of other runs were consumed: the body waits anew, and starts anew the run that it waits for.
  if (recorded.waits.get(name)?.meta.conditions.some(isOfOthers) === true) recorded.waits.delete(name)
  recorded.attempts.delete(name)
  recorded.toUndo.delete(name)
}

/** Replaces the outcome of a step by this result, from here on. */
function amend(recorded: RecordedJournal, amended: EntryOf<'amended'>): void {
  const outcome = makeOptional(recorded, amended.meta.seq)
  if (outcome === undefined) return
  recorded.damaged ??= damageOfAmended(outcome, amended)
  const replaced: Outcome = { ...outcome, kind: outcome.kind === 'woken' ? 'woken' : 'step-succeeded', amended }
  recorded.outcomes.push(replaced)
  if (recorded.toUndo.has(outcome.name)) recorded.toUndo.set(outcome.name, { seq: outcome.seq, result: amended })
}

/** Takes an outcome out. The body need not ask again for later outcomes, now that this one is another. */
function makeOptional(recorded: RecordedJournal, seq: number): Outcome | undefined {
  const all = [...recorded.outcomes, ...recorded.optional].sort((a, b) => a.seq - b.seq)
  const taken = all.find((outcome) => outcome.seq === seq)
  if (taken === undefined) return undefined
  recorded.optional = all.filter((outcome) => outcome.seq > seq || recorded.optional.includes(outcome))
  recorded.optional = recorded.optional.filter((outcome) => outcome !== taken)
  recorded.outcomes = recorded.outcomes.filter((outcome) => outcome.seq < seq)
  return taken
}

function isOfOthers({ kind }: EntryOf<'waiting'>['meta']['conditions'][number]): boolean {
  return kind !== 'time' && kind !== 'delay'
}
