// An entry of the feed as the handler of a projection gets it.

import { fetchPatiently } from '../core/runtime/fetch.ts'
import type { Engine } from '../engine/engine.ts'
import type { Change } from '../store.ts'
import type { EventTools, Projection } from './definition.ts'

/** One that a projection handles. */
export interface PendingEvent {
  readonly change: Change
  readonly type: string
  readonly id: string
  readonly handler: (...given: readonly unknown[]) => unknown
}

/** The events of a page that this projection handles, in order. */
export function pendingEvents(projection: Projection, changes: readonly Change[]): readonly PendingEvent[] {
  return changes.flatMap((change): readonly PendingEvent[] => {
    const { entry, runId, type } = change
    if (entry.kind !== 'event' || !projection.from.has(type)) return []
    const handler = projection.handlerOf(entry.name)
    return handler === undefined ? [] : [{ change, type: entry.name, id: `${runId}:${entry.seq}`, handler }]
  })
}

/** Reads its payload: every handler gets an object of its own. `isWanted`: whether to go on where the text is kept elsewhere. */
export async function readEvent(
  { payloads, ports }: Engine,
  { change }: PendingEvent,
  isWanted: () => boolean,
): Promise<unknown> {
  const { runId, entry } = change
  const { seq, kind, name, data } = entry
  if (data === null) return null
  const text = payloads.fetch(data)
  const known = typeof text === 'string' ? text : await fetchPatiently({ ports, payloads }, text, data, isWanted)
  return payloads.decode(known, payloads.place(runId, seq, kind, name))
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
