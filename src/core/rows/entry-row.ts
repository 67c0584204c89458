// Makes an entry of a row of a journal. Stores keep kind, name and meta without examining them, and anyone with write access
// to the database can change them, so they are checked here, once: a row that the engine cannot have written becomes an entry
// of kind `damaged`, and readers of any other kind may rely on its form.
//
// Only what code reads is looked at, so that entries of older and newer versions pass.

import { asCrowded, asRefused, isEndedMeta, isMessageKind } from '../model/engine-message.ts'
import { isEntryKind, type Draft, type Entry } from '../model/entry.ts'
import { areNumbers, areTexts, isObject, isTextOrNull, isWhole, membersOf, parsedJson } from '../text/json-form.ts'

export interface EntryRow {
  readonly seq: number
  readonly at: number
  readonly kind: unknown
  readonly name: unknown
  /** As its text. */
  readonly meta: string | null
  readonly data: unknown
  readonly transition: string | null
}

export function entryOfRow({ seq, at, kind, name, meta: text, data, transition }: EntryRow): Entry {
  const meta = text === null ? null : parsedJson(text)
  const why = wrongWith(kind, name, meta, data)
  if (why === null) return { kind, name, meta, data, seq, at, transition } as Entry
  const damage = { kind: String(kind), why }
  return {
    kind: 'damaged',
    name: typeof name === 'string' ? name : null,
    meta: damage,
    data: null,
    seq,
    at,
    transition,
  }
}

/** The defect of an entry, in words that show nothing of its content; null if there is none. */
function wrongWith(kind: unknown, name: unknown, meta: unknown, data: unknown): string | null {
  if (typeof kind !== 'string' || !isEntryKind(kind)) return 'its kind is none that the engine writes'
  const form = forms[kind]
  if (!isThere(name, form.name)) return 'its name is not what its kind has'
  if (!form.meta(meta, data)) return 'its meta is not what the engine writes'
  return isThere(data, form.data) ? null : 'its data is not what its kind has'
}

type Presence = 'always' | 'never' | 'maybe'

interface Form {
  readonly name: Presence
  readonly data: Presence
  readonly meta: (meta: unknown, data: unknown) => boolean
}

function isThere(value: unknown, presence: Presence): boolean {
  if (value === null) return presence !== 'always'
  return typeof value === 'string' && presence !== 'never'
}

const isAnything = (meta: unknown): boolean => meta !== undefined
const isAttempt = (meta: unknown): boolean => areNumbers(meta, 'attempt', 'ms')
const isRetry = (meta: unknown): boolean => areNumbers(meta, 'attempt', 'ms', 'delayMs') && hasConflicts(meta)
const isNote = (meta: unknown): boolean => isTextOrNull(membersOf(meta)['note'])

const ofStep: Form = { name: 'always', data: 'always', meta: isAttempt }
const ofCall: Form = { name: 'always', data: 'always', meta: isAnything }
const ofNote: Form = { name: 'never', data: 'maybe', meta: isNote }
const ofFailure: Form = { name: 'never', data: 'always', meta: isFailure }

const forms: Readonly<Record<Draft['kind'], Form>> = {
  started: { name: 'never', data: 'always', meta: (meta) => meta === null || areNumbers(meta, 'maxAttempts') },
  continued: { name: 'never', data: 'always', meta: isContinued },
  'step-succeeded': ofStep,
  'step-failed': ofStep,
  begun: { name: 'always', data: 'never', meta: isAnything },
  abandoned: { name: 'always', data: 'never', meta: isAttempt },
  'attempt-failed': { name: 'maybe', data: 'always', meta: isRetry },
  recorded: ofCall,
  patched: { name: 'always', data: 'never', meta: isAnything },
  waiting: { name: 'always', data: 'never', meta: isWaiting },
  woken: { name: 'always', data: 'maybe', meta: isWoken },
  input: { name: 'maybe', data: 'maybe', meta: isInput },
  'input-rejected': { name: 'never', data: 'always', meta: isAnything },
  'input-failed': { name: 'never', data: 'always', meta: isAnything },
  event: { name: 'always', data: 'always', meta: (meta) => meta === null || areNumbers(meta, 'version') },
  effect: ofCall,
  'effect-succeeded': { name: 'always', data: 'never', meta: isAttempt },
  'effect-failed': ofStep,
  timer: { name: 'always', data: 'always', meta: isTimer },
  'timer-cancelled': { name: 'always', data: 'never', meta: isAnything },
  'timer-failed': ofStep,
  'start-sent': { name: 'always', data: 'never', meta: isAnything },
  'signal-sent': { name: 'always', data: 'maybe', meta: isSignal },
  'broadcast-sent': { name: 'always', data: 'always', meta: isBroadcast },
  replied: { ...ofCall, meta: (meta) => typeof membersOf(meta)['to'] === 'string' },
  snapshot: { name: 'never', data: 'always', meta: (meta) => typeof membersOf(meta)['fingerprint'] === 'string' },
  logged: ofCall,
  issued: ofCall,
  exposed: { ...ofCall, meta: (meta) => typeof membersOf(meta)['call'] === 'string' },
  progressed: { name: 'always', data: 'maybe', meta: (meta) => areNumbers(meta, 'fraction') },
  crashed: { name: 'never', data: 'never', meta: isCrash },
  paused: { name: 'never', data: 'maybe', meta: isPause },
  resumed: ofNote,
  retried: ofNote,
  amended: { name: 'maybe', data: 'maybe', meta: isAmended },
  failing: ofFailure,
  cancelling: { name: 'never', data: 'never', meta: (meta) => isTextOrNull(membersOf(meta)['reason']) },
  undone: { name: 'always', data: 'never', meta: isAttempt },
  'undo-attempt-failed': { name: 'always', data: 'always', meta: isRetry },
  'undo-failed': ofStep,
  succeeded: { name: 'never', data: 'always', meta: isAnything },
  failed: ofFailure,
  cancelled: { name: 'never', data: 'never', meta: isCancelled },
}

const outcomes: readonly unknown[] = ['accepted', 'rejected', 'failed', 'already-completed', 'duplicate']

function isInput(meta: unknown): boolean {
  const { from, outcome, command } = membersOf(meta)
  return outcomes.includes(outcome) && (command === undefined || typeof command === 'string') && isSource(from)
}

function isSource(from: unknown): boolean {
  const { kind, id, name } = membersOf(from)
  switch (kind) {
    case 'start':
    case 'call':
      return true
    case 'message':
      return typeof id === 'string'
    case 'effect':
      return typeof name === 'string'
    case 'timer':
      return typeof name === 'string' && areNumbers(from, 'dueAt')
    default:
      return false
  }
}

/** A timer has a time. */
function isTimer(meta: unknown): boolean {
  const { at, afterMs } = membersOf(meta)
  return at === null ? isWhole(afterMs) : areNumbers(meta, 'at') && afterMs === null
}

function hasConflicts(meta: unknown): boolean {
  const { conflicts } = membersOf(meta)
  return conflicts === undefined || isWhole(conflicts)
}

function isContinued(meta: unknown): boolean {
  return typeof membersOf(meta)['type'] === 'string' && areNumbers(meta, 'version')
}

function isCrash(meta: unknown): boolean {
  return typeof membersOf(meta)['session'] === 'string' && areNumbers(meta, 'crashes')
}

function isFailure(meta: unknown): boolean {
  if (meta === null) return true
  const { cause, notUndone } = membersOf(meta)
  return (cause === null || isWhole(cause)) && areTexts(notUndone)
}

function isCancelled(meta: unknown): boolean {
  const { reason, notUndone } = membersOf(meta)
  return isTextOrNull(reason) && areTexts(notUndone)
}

/** A dropped outcome has no result; an amended one has. */
function isAmended(meta: unknown, data: unknown): boolean {
  const { seq, dropped } = membersOf(meta)
  return isWhole(seq) && (dropped === true ? data === null : dropped === false && typeof data === 'string')
}

function isPause(meta: unknown): boolean {
  const { reason, note, message, recorded, found, entry, why, sealedFor } = membersOf(meta)
  if (reason === 'drift') return typeof message === 'string' && Array.isArray(found) && isPlaced(recorded)
  if (reason === 'unreadable') return typeof note === 'string' && typeof why === 'string' && isPlaced(entry)
  return typeof reason === 'string' && isTextOrNull(note) && (sealedFor === undefined || isWhole(sealedFor))
}

function isPlaced(value: unknown): boolean {
  const { seq, name } = membersOf(value)
  return isWhole(seq) && isTextOrNull(name)
}

/** A signal that was sent to no run has neither meta nor payload. */
function isSignal(meta: unknown, data: unknown): boolean {
  if (meta === null || data === null) return meta === data
  const { to, signal, kind, policy } = membersOf(meta)
  const isKind = kind === 'signal' || kind === 'topic-signal'
  return typeof to === 'string' && typeof signal === 'string' && isKind && isPolicy(policy)
}

function isBroadcast(meta: unknown): boolean {
  const { topic, policy, expiresInMs } = membersOf(meta)
  const { name, delivery } = membersOf(topic)
  const isTopic =
    typeof name === 'string' && (delivery === 'all' || delivery === 'one') && areNumbers(topic, 'retainMs')
  return isTopic && isPolicy(policy) && (expiresInMs === null || isWhole(expiresInMs))
}

function isPolicy(policy: unknown): boolean {
  if (policy === null) return true
  const { onUnread, delivery } = membersOf(policy)
  if (onUnread === 'dead-letter') return true
  return onUnread === 'broadcast' && (delivery === 'all' || delivery === 'one') && areNumbers(policy, 'retainMs')
}

function isWaiting(meta: unknown): boolean {
  const { conditions, started } = membersOf(meta)
  if (!Array.isArray(conditions) || !conditions.every(isCondition)) return false
  return started === undefined || (typeof started === 'object' && Object.values(started ?? {}).every(isObject))
}

function isCondition(value: unknown): boolean {
  const { tag, kind, name, runId, topic } = membersOf(value)
  if (typeof tag !== 'string') return false
  switch (kind) {
    case 'time':
      return areNumbers(value, 'at')
    case 'delay':
      return areNumbers(value, 'ms')
    case 'signal':
      return typeof name === 'string' && (topic === undefined || isObject(topic))
    case 'run':
    case 'start':
      return typeof runId === 'string'
    default:
      return false
  }
}

/** A signal, a broadcast and the end of a run that succeeded or failed bring a payload; nothing else does. */
function isWoken(meta: unknown, data: unknown): boolean {
  const { winner, by } = membersOf(meta)
  if (typeof winner !== 'string' || !areNumbers(meta, 'trueAt', 'seenAt')) return false
  if (by === undefined) return data === null
  const { id, kind, name, ended, refused, crowded } = membersOf(by)
  if (typeof id !== 'string' || typeof name !== 'string' || !isMessageKind(kind)) return false
  if (kind === 'refused') return data === null && (asRefused(refused) !== null || asCrowded(crowded) !== null)
  if (refused !== undefined || crowded !== undefined) return false
  if (kind !== 'ended') return ended === undefined && data !== null
  const { status } = membersOf(ended)
  return isEndedMeta(ended) && (data !== null) === (status === 'succeeded' || status === 'failed')
}
