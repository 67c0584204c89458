// Hands a batch of events to the handlers of a projection, and moves its position on: in one transaction, or afterwards.
//
// Whatever the database says, nothing is counted twice and nothing is left out: a batch whose outcome is unknown is `lost`, and the
// row of the projection says where to go on.

import { bug, isStoreAway } from '../core/errors/error.ts'
import type { Engine } from '../engine/engine.ts'
import type { ProjectionAnswer, ProjectionCommand, StoreProjections } from '../store.ts'
import type { TransactionTools, WorkedProjection } from './definition.ts'
import { readEvent, toolsOf, type PendingEvent, type ReadEvent } from './projected-event.ts'

export type Written =
  | { readonly outcome: 'done' }
  /** Because of this event; null if it is not known which. Only what is up to that position has happened. */
  | { readonly outcome: 'failed'; readonly at: number | null; readonly error: unknown; readonly to: number }
  /** Another holder has the projection, or its position may have moved: it is claimed anew. */
  | { readonly outcome: 'lost' }
  /** The store did not answer, or refused: it is tried again. */
  | { readonly outcome: 'away'; readonly error: unknown }

export interface BatchWriter {
  /** The events, and where the projection is after them. */
  write(events: readonly PendingEvent[], advance: Advance): Promise<Written>
}

type Advance = Extract<ProjectionCommand, { readonly kind: 'advance' }>

interface WriterParts {
  readonly engine: Engine
  readonly store: StoreProjections
  readonly projection: WorkedProjection
  /** Aborts when the projection is stopped. */
  readonly signal: AbortSignal
  /** Whether this process may go on. */
  readonly isHeld: () => boolean
}

/** A transaction is rolled back because the position is not the caller's to move. */
class Lost extends Error {}

export function createBatchWriter(parts: WriterParts): BatchWriter {
  return parts.projection.kind === 'transaction' ? new TransactionWriter(parts) : new OutsideWriter(parts)
}

/** Their payloads, read before a transaction is open; the first that cannot be read ends the list. */
async function readAll(
  { engine, signal }: WriterParts,
  events: readonly PendingEvent[],
  { from }: Advance,
): Promise<{ readonly read: readonly ReadEvent[]; readonly failed: Written | null }> {
  const read: ReadEvent[] = []
  for (const [at, one] of events.entries()) {
    try {
      read.push(await readEvent(engine, one, () => !signal.aborted))
    } catch (error) {
      return { read, failed: { outcome: 'failed', at, error, to: from } }
    }
  }
  return { read, failed: null }
}

class TransactionWriter implements BatchWriter {
  private readonly parts: WriterParts

  constructor(parts: WriterParts) {
    this.parts = parts
  }

  async write(events: readonly PendingEvent[], advance: Advance): Promise<Written> {
    const { engine, signal, projection } = this.parts
    const { batched } = projection
    const { transactions } = engine
    if (transactions === null) throw bug('A projection writes in transactions where there are none')
    const { read, failed } = await readAll(this.parts, events, advance)
    if (failed !== null) return failed
    // With the handler that is being called.
    let at: number | null = null
    const isRebuild = advance.part === 'rebuild'
    const done = await transactions(
      async (tx, { store, check }) => {
        await batched?.begin(
          tx,
          read.map((one) => toolsOf(one).instance),
          isRebuild,
        )
        for (const [index, one] of read.entries()) {
          at = index
          const tools: TransactionTools = { ...toolsOf(one), tx, isRebuild }
          await one.handler(one.event, tools)
        }
        at = null
        await batched?.end(tx, isRebuild)
        await check()
        const answer = await store.commandProjection?.(advance)
        if (answer?.outcome !== 'done') throw new Lost()
      },
      { signal, isolation: undefined },
    )
    if (done.outcome === 'committed') return { outcome: 'done' }
    if (done.outcome === 'unknown' || done.error instanceof Lost) return { outcome: 'lost' }
    if (signal.aborted) return { outcome: 'lost' }
    const { error } = done
    return at === null && isStoreAway(error)
      ? { outcome: 'away', error }
      : { outcome: 'failed', at, error, to: advance.from }
  }
}

class OutsideWriter implements BatchWriter {
  private readonly parts: WriterParts

  constructor(parts: WriterParts) {
    this.parts = parts
  }

  async write(events: readonly PendingEvent[], advance: Advance): Promise<Written> {
    const { signal, store, isHeld } = this.parts
    const { read, failed } = await readAll(this.parts, events, advance)
    for (const [at, one] of read.entries()) {
      if (signal.aborted || !isHeld()) return { outcome: 'lost' }
      try {
        await one.handler(one.event, toolsOf(one))
      } catch (error) {
        return this.failedAt(events, advance, { at, error })
      }
    }
    const unread = failed?.outcome === 'failed' ? failed : null
    return unread === null
      ? advanceAlone(store, advance)
      : this.failedAt(events, advance, { at: read.length, error: unread.error })
  }

  /** Those before it have happened: they are not to come again. */
  private async failedAt(
    events: readonly PendingEvent[],
    advance: Advance,
    { at, error }: { readonly at: number; readonly error: unknown },
  ): Promise<Written> {
    if (at === 0) return { outcome: 'failed', at, error, to: advance.from }
    const to = (events[at] as PendingEvent).change.position - 1
    const before = await advanceAlone(this.parts.store, { ...advance, to })
    return before.outcome === 'done' ? { outcome: 'failed', at, error, to } : before
  }
}

/** Moves the position on past entries that the projection does not handle, or has handled. */
export async function advanceAlone(store: StoreProjections, command: Advance): Promise<Written> {
  let answer: ProjectionAnswer
  try {
    answer = await store.commandProjection(command)
  } catch (error) {
    if (isStoreAway(error)) return { outcome: 'lost' }
    throw error
  }
  return answer.outcome === 'done' ? { outcome: 'done' } : { outcome: 'lost' }
}
