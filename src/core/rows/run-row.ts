// The columns of a run that hold JSON, and those of a message or broadcast that hold its policy. A value that the engine cannot have
// written counts as none, and does no harm to other runs: lists show a run with such a column as unreadable, and `doctor` names it; a
// message with such a policy has none.

import { areTexts, isObject, isTextOrNull, isWhole, membersOf, parsedJson } from '../text/json-form.ts'
import type { Run, ControlRequest } from '../model/run.ts'
import type { Delivery, MessagePolicy } from '../model/topic.ts'

/** The tags that a column lists; null if the engine cannot have written it. */
export function tagsIn(text: string | null): readonly string[] | null {
  if (text === null) return []
  const tags = parsedJson(text)
  return areTexts(tags) ? tags : null
}

/** The control request in a column; undefined if the engine cannot have written it. */
export function controlRequestIn(text: string | null): ControlRequest | null | undefined {
  if (text === null) return null
  const controlRequest = parsedJson(text)
  const { kind, reason, at, note, sealedNote, sealedFor } = membersOf(controlRequest)
  if (typeof at !== 'number') return undefined
  if (kind === 'cancel') return isTextOrNull(reason) ? (controlRequest as ControlRequest) : undefined
  const isSealed = typeof sealedNote === 'string' && (sealedFor === undefined || isWhole(sealedFor))
  const isNote = isTextOrNull(note) && (sealedNote === undefined || isSealed)
  return kind === 'pause' && typeof reason === 'string' && isNote ? (controlRequest as ControlRequest) : undefined
}

/** The defects of those columns of a run, for its row. */
export function damageOf(
  tags: ReturnType<typeof tagsIn>,
  controlRequest: ReturnType<typeof controlRequestIn>,
): Pick<Run, 'damaged'> {
  if (tags !== null && controlRequest !== undefined) return intact
  return { damaged: [...(tags === null ? ['tags'] : []), ...(controlRequest === undefined ? ['control_request'] : [])] }
}

const intact: Pick<Run, 'damaged'> = {}

/** The policy in a column of a broadcast; none if the engine cannot have written it. */
export function policyIn(text: string | null): MessagePolicy | null {
  if (text === null) return null
  const { onUnread, delivery, retainMs } = membersOf(parsedJson(text))
  return policyOf(onUnread, delivery, retainMs)
}

/** The policy in the columns of a message; none if the engine cannot have written it. */
export function policyOf(onUnread: unknown, delivery: unknown, retainMs: unknown): MessagePolicy | null {
  if (onUnread === 'dead-letter') return { onUnread }
  const isPassedOn = onUnread === 'broadcast' && (delivery === 'all' || delivery === 'one')
  return isPassedOn && typeof retainMs === 'number' ? { onUnread, delivery, retainMs } : null
}

export interface PolicyColumns {
  readonly on_unread: MessagePolicy['onUnread'] | null
  readonly delivery: Delivery | null
  readonly retain_ms: number | null
}

const noPolicy: PolicyColumns = { on_unread: null, delivery: null, retain_ms: null }

/** A policy as the columns of a message. */
export function policyColumns(policy: MessagePolicy | null): PolicyColumns {
  if (policy === null) return noPolicy
  const { onUnread } = policy
  if (onUnread === 'dead-letter') return { ...noPolicy, on_unread: onUnread }
  return { on_unread: onUnread, delivery: policy.delivery, retain_ms: policy.retainMs }
}

/** The metadata in a column; undefined if the engine cannot have written it. */
export function metadataIn(text: string | null): Readonly<Record<string, unknown>> | null | undefined {
  if (text === null) return null
  const metadata = parsedJson(text)
  return isObject(metadata) && !Array.isArray(metadata) ? metadata : undefined
}

/**
 * A number of a row, as far from zero as the engine can write it again. A database holds larger ones, which it refuses when they come
 * back rounded, with everything that is written beside them.
 */
export function numberIn(value: number): number {
  if (value > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER
  return value < Number.MIN_SAFE_INTEGER ? Number.MIN_SAFE_INTEGER : value
}

/** The same for a time that a run may lack. */
export function timeIn(value: number | null): number | null {
  return value === null ? null : numberIn(value)
}
