// An entry of the feed as the handler of a projection gets it.

import { isDecider, type DeciderModel } from '../core/definition/decider-model.ts'
import { isErased } from '../core/payload/codec.ts'
import { bug } from '../core/errors/error.ts'
import { fetchPatiently } from '../core/runtime/fetch.ts'
import type { Engine } from '../engine/engine.ts'
import type { Change } from '../store.ts'
import type { EventTools, Projection } from './definition.ts'

/** One that a projection handles. */
export interface PendingEvent {
  readonly change: Change
  readonly type: string
  readonly id: string
  /** The code that reads it; null if this process does not have it: then it is given as it was written. */
  readonly model: DeciderModel | null
  readonly handler: (...given: readonly unknown[]) => unknown
}

/** The events of a page that this projection handles, in order. Retired ones are not among them. */
export function pendingEvents(
  engine: Pick<Engine, 'registry'>,
  projection: Projection,
  changes: readonly Change[],
): readonly PendingEvent[] {
  return changes.flatMap((change): readonly PendingEvent[] => {
    const { entry, runId, type } = change
    if (entry.kind !== 'event' || !projection.from.has(type)) return []
    const model = modelOf(engine, projection, change)
    const present = model === null ? entry.name : model.eventType(entry.name)
    const handler = present === null ? undefined : projection.handlerOf(present)
    return handler === undefined ? [] : [{ change, type: entry.name, id: `${runId}:${entry.seq}`, model, handler }]
  })
}

/**
 * The code that reads the events of an instance: that of its own version, or the newest. Of the deciders in `from` alone, if the type
 * is among them, because the handlers know what those give; else of the ones that are registered here.
 */
function modelOf(
  { registry }: Pick<Engine, 'registry'>,
  { deciders }: Projection,
  { type, version }: Change,
): DeciderModel | null {
  const given = deciders.filter((one) => one.type === type)
  const newest = (all: readonly number[]): number => Math.max(...all)
  if (given.length > 0) {
    const last = newest(given.map((one) => one.version))
    const own = given.find((one) => one.version === version) ?? given.find((one) => one.version === last)
    return own?.model ?? null
  }
  if (!registry.hasType(type)) return null
  const definition = registry.find(type, version) ?? registry.get(type, newest(registry.versions(type)))
  return isDecider(definition) ? definition.model : null
}

/**
 * Reads it as the present code does: every handler gets an object of its own. Null if its data subject was erased: it is passed over.
 * Throws EVENT_UNREADABLE. `isWanted`: whether to go on where the text is kept elsewhere.
 */
export async function readEvent(
  { payloads, ports }: Engine,
  { change, model }: PendingEvent,
  isWanted: () => boolean,
): Promise<{ readonly event: unknown } | null> {
  const { runId, entry, key } = change
  if (entry.kind !== 'event') throw bug('A projection handles an entry that is no event')
  const { seq, kind, name, data } = entry
  const text = payloads.fetch(data)
  const known = typeof text === 'string' ? text : await fetchPatiently({ ports, payloads }, text, data, isWanted)
  let isGone = false
  const read = (): unknown => {
    try {
      return payloads.decode(known, payloads.place(runId, seq, kind, name))
    } catch (error) {
      isGone = isErased(error)
      throw error
    }
  }
  try {
    const event = model === null ? { event: read() } : model.readEvent({ ...entry, read }, key ?? runId)
    return isGone ? null : event
  } catch (error) {
    if (isGone) return null
    throw error
  }
}

export function toolsOf({ change, id }: PendingEvent): EventTools {
  const { position, runId, type, version, key, entry } = change
  return {
    id,
    decider: type,
    version,
    instance: key ?? runId,
    runId,
    seq: entry.seq,
    position,
    at: new Date(entry.at),
  }
}
