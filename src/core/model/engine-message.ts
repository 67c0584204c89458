// The messages that the engine itself writes into mailboxes: how a run has ended, and refusals. No codec authenticates them,
// and the place at which a payload is read follows from them, so only content that the engine can have written counts. Any
// other content of a row is no such message: the run that would take it is paused, and the row stays as it is.

import { isRunId } from './run-id.ts'
import { isTextOrNull, isWhole, membersOf, parsedJson } from '../text/json-form.ts'
import type { Crowded, Ended, Message, MessageKind, Refused } from './message.ts'

/** How the run of this message has ended; null if the engine did not write that. */
export function endedIn({ kind, data }: Pick<Message, 'kind' | 'data'>): Ended | null {
  return kind === 'ended' ? asEnded(parsedJson(data)) : null
}

/** Why a child could not be started; null if the engine did not write that. */
export function refusedIn({ kind, data }: Pick<Message, 'kind' | 'data'>): Refused | null {
  return kind === 'refused' ? asRefused(parsedJson(data)) : null
}

/** Why a run could not subscribe; null if the engine did not write that. */
export function crowdedIn({ kind, data }: Pick<Message, 'kind' | 'data'>): Crowded | null {
  return kind === 'refused' ? asCrowded(parsedJson(data)) : null
}

/** Whether a sender or the engine can have written it under that name. No signal and no topic has the name of a run. */
export function isWellFormed(message: Pick<Message, 'kind' | 'name' | 'data'>): boolean {
  const isOfRun = isRunId(message.name)
  if (!isMessageKind(message.kind)) return false
  if (message.kind === 'ended') return isOfRun && endedIn(message) !== null
  if (message.kind !== 'refused') return !isOfRun
  return (isOfRun ? refusedIn(message) : crowdedIn(message)) !== null
}

export function isMessageKind(kind: unknown): kind is MessageKind {
  return typeof kind === 'string' && Object.hasOwn(kinds, kind)
}

const kinds: Readonly<Record<MessageKind, true>> = {
  signal: true,
  'topic-signal': true,
  failure: true,
  broadcast: true,
  ended: true,
  refused: true,
}

/** Only a run that has succeeded or failed has a payload, and then it always has one. */
function asEnded(value: unknown): Ended | null {
  const { status, seq, data, reason } = membersOf(value)
  if (status === 'not-found') return { status }
  if (!isWhole(seq) || !isTextOrNull(reason)) return null
  if (status === 'cancelled') return data === null ? { status, seq, data, reason } : null
  if (status !== 'succeeded' && status !== 'failed') return null
  return typeof data === 'string' ? { status, seq, data, reason } : null
}

/** How a run ended, as the entry of the run that waited for it says. */
export function isEndedMeta(value: unknown): boolean {
  const { status, reason } = membersOf(value)
  return typeof status === 'string' && Object.hasOwn(endings, status) && isTextOrNull(reason)
}

const endings: Readonly<Record<Ended['status'], true>> = {
  succeeded: true,
  failed: true,
  cancelled: true,
  'not-found': true,
}

export function asRefused(value: unknown): Refused | null {
  const { taken, by } = membersOf(value)
  if (taken !== 'id' && taken !== 'idempotency-key' && taken !== 'key') return null
  return typeof by === 'string' ? { taken, by } : null
}

export function asCrowded(value: unknown): Crowded | null {
  const { subscribers } = membersOf(value)
  return isWhole(subscribers) ? { subscribers } : null
}
