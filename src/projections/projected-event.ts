// An entry of the feed as the handler of a projection gets it: as the code of its decider reads it. That is the decider that the
// projection names or, by its type alone, the one that this process knows; without either it is as it was written.

import { isDecider, type DeciderModel, type ErasedEvent } from '../core/definition/decider-model.ts'
import { isErased } from '../core/payload/codec.ts'
import { fetchPatiently } from '../core/runtime/fetch.ts'
import type { Engine } from '../engine/engine.ts'
import type { Change } from '../store.ts'
import type { EventHandler, EventTools, Projection } from './definition.ts'

/** One that a projection handles. */
export interface PendingEvent {
  readonly change: Change
  /** Its type as it was written. */
  readonly type: string
  readonly id: string
  readonly handler: EventHandler
  /** For what is left of it if its data subject was erased. */
  readonly onErased: EventHandler | undefined
  /** Reads it; undefined if this process knows no code of its decider. */
  readonly model: DeciderModel | undefined
}

/** One that was read, with the function for it. */
export interface ReadEvent extends PendingEvent {
  readonly event: unknown
}

/** The events of a page that this projection handles, in order. */
export function pendingEvents(
  engine: Pick<Engine, 'registry'>,
  projection: Projection,
  changes: readonly Change[],
): readonly PendingEvent[] {
  const { onErased } = projection
  return changes.flatMap((change): readonly PendingEvent[] => {
    const { entry, runId } = change
    if (entry.kind !== 'event' || !projection.from.has(change.type)) return []
    const model = modelOf(engine, projection, change)
    const type = model === undefined ? entry.name : model.presentType(entry.name)
    const handler = type === null ? undefined : projection.handlerOf(type)
    if (type === null || handler === undefined) return []
    return [{ change, type: entry.name, id: `${runId}:${entry.seq}`, handler, onErased, model }]
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
): DeciderModel | undefined {
  const given = deciders.filter((one) => one.type === type)
  if (given.length > 0) {
    const last = Math.max(...given.map((one) => one.version))
    return (given.find((one) => one.version === version) ?? given.find((one) => one.version === last))?.model
  }
  if (!registry.hasType(type)) return undefined
  const definition = registry.find(type, version) ?? registry.get(type, Math.max(...registry.versions(type)))
  return isDecider(definition) ? definition.model : undefined
}

/**
 * Reads its payload as the present code does: every handler gets an object of its own. Throws EVENT_UNREADABLE. `isWanted`: whether
 * to go on where the text is kept elsewhere.
 */
export async function readEvent(
  { payloads, ports }: Engine,
  one: PendingEvent,
  isWanted: () => boolean,
): Promise<ReadEvent> {
  const { runId, entry, key } = one.change
  const { seq, kind, name, data } = entry
  if (data === null) return { ...one, event: null }
  const text = payloads.fetch(data)
  const known = typeof text === 'string' ? text : await fetchPatiently({ ports, payloads }, text, data, isWanted)
  let erased = false
  const read = (): unknown => {
    try {
      return payloads.decode(known, payloads.place(runId, seq, kind, name))
    } catch (error) {
      erased = isErased(error)
      throw error
    }
  }
  try {
    const meta = entry.kind === 'event' ? entry.meta : null
    const event = one.model === undefined ? read() : one.model.readEvent({ seq, name, meta, read }, key ?? runId)?.event
    if (!erased) return { ...one, event }
  } catch (error) {
    if (!erased) throw error
  }
  const left: ErasedEvent = { type: (name === null ? null : one.model?.presentType(name)) ?? one.type, erased: true }
  return { ...one, event: left, handler: one.onErased ?? (() => undefined) }
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
