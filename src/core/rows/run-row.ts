// The columns of a run and of a message that hold JSON. What the engine cannot have written there counts as if nothing stood
// there, and harms nobody else: lists show the run as unreadable, and a check of the store names it.

import { areTexts, isObject, isTextOrNull, isWhole, membersOf, parsedJson } from '../payload/json-form.ts'
import type { Run, ControlRequest } from '../model/run.ts'
import type { MessagePolicy } from '../model/topic.ts'

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

/** What is wrong with those columns of a run, for its row. */
export function damageOf(
  tags: ReturnType<typeof tagsIn>,
  controlRequest: ReturnType<typeof controlRequestIn>,
): Pick<Run, 'damaged'> {
  if (tags !== null && controlRequest !== undefined) return intact
  return { damaged: [...(tags === null ? ['tags'] : []), ...(controlRequest === undefined ? ['control_request'] : [])] }
}

const intact: Pick<Run, 'damaged'> = {}

/** The policy in a column; none if the engine cannot have written it. */
export function policyIn(text: string | null): MessagePolicy | null {
  if (text === null) return null
  const policy = parsedJson(text)
  const { onUnread, delivery, retainMs } = membersOf(policy)
  const isPassedOn = onUnread === 'broadcast' && typeof delivery === 'string' && typeof retainMs === 'number'
  return onUnread === 'dead-letter' || isPassedOn ? (policy as MessagePolicy) : null
}

/** The metadata in a column; undefined if the engine cannot have written it. */
export function metadataIn(text: string | null): Readonly<Record<string, unknown>> | null | undefined {
  if (text === null) return null
  const metadata = parsedJson(text)
  return isObject(metadata) && !Array.isArray(metadata) ? metadata : undefined
}
