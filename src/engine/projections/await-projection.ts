// Waits until a projection has seen what is committed by now.

import { HoldfastError, isHoldfastError, isStoreAway, messageOf } from '../../core/errors/error.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { FailedEvent, ProjectionRow, ProjectionStatus, StoreProjections } from '../../store.ts'
import type { Engine } from '../engine.ts'
import { projectionsOf } from '../store/optional-parts.ts'

/** How often it looks: at first often, because the projection is usually moved on by this process. */
const firstLookMs = 5
const longestLookMs = 200

/**
 * Rejects with PROJECTION_BEHIND after that time, or if it cannot be known any more; with PROJECTION_UNKNOWN if there is none.
 * Whatever the error: the input was decided.
 */
export async function awaitProjection(engine: Engine, name: string, timeoutMs: number): Promise<void> {
  try {
    await passed(engine, name, timeoutMs)
  } catch (cause) {
    if (!isStoreAway(cause) && !isHoldfastError(cause, 'CLOSED')) throw cause
    throw new HoldfastError(
      'PROJECTION_BEHIND',
      `Whether what was committed has reached projection ${quotedText(name)} is not known: ${messageOf(cause)} The input was ` +
        'decided all the same, and will be projected.',
      { cause, details: { name } },
    )
  }
}

async function passed(engine: Engine, name: string, timeoutMs: number): Promise<void> {
  const { projected, ports } = engine
  const { clock } = ports
  const until = clock.monotonic() + timeoutMs
  const store = storeOf(engine)
  const target = await committedBy(engine, store, until)
  let pauseMs = firstLookMs
  for (;;) {
    engine.assertOpen()
    for (const look of projected.onAwaited) look()
    const row = await rowOf(engine, store, name)
    const position = Math.max(projected.position(name) ?? 0, row?.position ?? 0)
    if (target !== null && position >= target) return
    if (target === null || clock.monotonic() >= until) throw behind(name, timeoutMs, row, projected.failure(name))
    await projected.pause(clock, Math.min(pauseMs, Math.max(1, until - clock.monotonic())))
    pauseMs = Math.min(2 * pauseMs, longestLookMs)
  }
}

/** The position of the last entry that is committed by now; null if it was not given one in time. */
async function committedBy({ store, ports }: Engine, feed: StoreProjections, until: number): Promise<number | null> {
  for (;;) {
    const { position, isComplete } = await feed.feedEnd()
    if (isComplete) return position
    if (ports.clock.monotonic() >= until) return null
    // A reader gives positions to what has none.
    const changes = await store.changes(position, 1)
    if (changes.length === 0) await new Promise<void>((resolve) => ports.clock.after(firstLookMs, resolve))
  }
}

/** The row of its live part; null for one that this process has in memory alone, or is about to project. */
async function rowOf({ projected }: Engine, store: StoreProjections, name: string): Promise<ProjectionRow | null> {
  const rows = await store.projections()
  const row = rows.find((one) => one.name === name && one.part === 'live')
  if (row !== undefined) return row
  if (projected.isHere(name)) return null
  throw new HoldfastError(
    'PROJECTION_UNKNOWN',
    `There is no projection ${quotedText(name)} to wait for: no process has projected it yet. The input was decided all the same.`,
    { details: { name, known: rows.flatMap((one) => (one.part === 'live' ? [one.name] : [])) } },
  )
}

function storeOf(engine: Engine): StoreProjections {
  const store = projectionsOf(engine.store)
  if (store !== null) return store
  throw new HoldfastError('INVALID_OPTION', 'This store keeps no projections, so nothing can wait for one.')
}

/** Without a row it is in the memory of this process, where it may be parked, too. */
function behind(
  name: string,
  timeoutMs: number,
  row: ProjectionRow | null,
  inMemory: FailedEvent | null,
): HoldfastError {
  const status = row?.status ?? (inMemory === null ? 'active' : 'parked')
  return new HoldfastError(
    'PROJECTION_BEHIND',
    `What was committed has not reached projection ${quotedText(name)} within ${formatMs(timeoutMs)}. It is committed all the ` +
      `same, and will be projected. ${whyBehind(status, row, inMemory)}`,
    { details: { name, status, waitedMs: timeoutMs } },
  )
}

function whyBehind(status: ProjectionStatus, row: ProjectionRow | null, inMemory: FailedEvent | null): string {
  const failure = row === null ? inMemory : row.failure
  if (failure !== null) {
    const { id, type, error } = failure
    const what = row === null ? 'Repair the cause and start this process anew' : 'Repair the cause and resume it'
    return `It is parked at event ${id} (${quotedText(type)}): ${error} ${what}, or skip the event.`
  }
  if (status !== 'active') return `It is ${status}: resume it.`
  if (row === null) return 'It has not come so far in this process: is it paused, or projected with { auto: false }?'
  return 'Is a process projecting it? holdfast projections shows its lag.'
}
