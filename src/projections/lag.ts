// How far a projection is behind what is committed.

import type { Engine } from '../engine/engine.ts'
import type { StoreProjections } from '../store.ts'

export interface Lag {
  /** Entries of the feed that it has not passed; some of them may not concern it. */
  readonly events: number
  /** For how long the first of them has waited. */
  readonly seconds: number
}

export async function lagOf(engine: Engine, store: StoreProjections, position: number): Promise<Lag> {
  let end = await store.feedEnd()
  // A reader gives positions to what has none.
  if (!end.isComplete) {
    await engine.store.changes(end.position, 1)
    end = await store.feedEnd()
  }
  // What is committed and has no place even now is at least one.
  const events = Math.max(end.position - position, end.isComplete ? 0 : 1)
  if (events <= 0) return { events: 0, seconds: 0 }
  await engine.learnTime()
  const [first] = await engine.store.changes(position, 1)
  const waitedMs = first === undefined ? 0 : engine.clock.now() - first.entry.at
  return { events, seconds: Math.max(0, waitedMs) / 1_000 }
}
