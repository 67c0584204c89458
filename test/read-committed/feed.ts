// The feed. Flushes draw numbers and commit in any order, so a number may become visible after a higher one. Positions are
// given by one sequencer at a time, to what is committed by then, and only they are read: so nobody ever skips anything. A reader
// does not wait for a sequencer, or for a stranger who has locked its row: it reads what has positions already. Over several
// machines the positions that one sequencer gave become visible one machine after the other: a reader goes no further than there
// is no gap.

import type { Change, FeedEnd } from '../../src/store.ts'
import { reading, transaction, type Execution, type Parts } from './database/call.ts'
import { entryOf, placeText, type FeedRow } from './database/tables.ts'

export async function readChanges(parts: Parts, after: number, limit: number): Promise<readonly Change[]> {
  const isBehind = await reading(parts, (x) =>
    x.run('changes.peek', (tx) => tx.select(x.tables.feed, { at: ['unstamped', ['unstamped']], limit: 1 }).length > 0),
  )
  if (isBehind) await transaction(parts, 'changes.commit', stamp)
  return reading(parts, (x) => read(x, after, limit))
}

export function readFeedEnd(parts: Parts): Promise<FeedEnd> {
  return reading(parts, (x) =>
    x.run('feedEnd.read', (tx) => {
      const unstamped = tx.select(x.tables.feed, { at: ['unstamped', ['unstamped']], limit: 1 })
      const [row] = tx.select(x.tables.sequencer, {})
      return { position: row?.last ?? 0, isComplete: unstamped.length === 0 }
    }),
  )
}

/** Gives positions to what is committed and has none. */
async function stamp(x: Execution): Promise<void> {
  const { feed, sequencer } = x.tables
  const unstamped = {
    at: ['unstamped', ['unstamped']],
    order: (a: FeedRow, b: FeedRow) => a.number - b.number,
  } as const
  let seen: readonly FeedRow[] = []
  const look = (): Promise<readonly FeedRow[]> => x.run('changes.look', (tx) => tx.select(feed, unstamped))
  // A statement sees what was committed before it began, also if it gets the lock later: as if it had looked before.
  if (x.is('lock-and-stamp-in-one')) seen = await look()
  const [row] = await x.run('changes.lock', (tx) => tx.lock(sequencer, {}, { skipLocked: true }))
  if (row === undefined) return
  if (!x.is('lock-and-stamp-in-one')) seen = await look()
  if (seen.length === 0) return
  let { last } = row
  const positions = new Map<number, number>()
  for (const one of seen) positions.set(one.number, (last += countOf(one)))
  await x.run('changes.stamp', async (tx) => {
    await tx.update(feed, { at: ['number', [...positions.keys()].map(String)] }, (one) => ({
      ...one,
      position: positions.get(one.number) ?? null,
    }))
    await tx.update(sequencer, {}, () => ({ last }))
  })
}

async function read(x: Execution, after: number, limit: number): Promise<readonly Change[]> {
  const { feed, journal, runs } = x.tables
  const rows = await x.run('changes.read', (tx) =>
    tx.select(feed, {
      where: ({ position }) => position !== null && position > after,
      order: (a, b) => (a.position ?? 0) - (b.position ?? 0),
      limit,
    }),
  )
  const places: { readonly position: number; readonly runId: string; readonly seq: number }[] = []
  let reached = after
  for (const row of rows) {
    let position = (row.position ?? 0) - countOf(row)
    if (position > reached && !x.is('read-over-gaps')) break
    reached = row.position ?? 0
    for (const [runId, first, last] of row.ranges) {
      for (let seq = first; seq <= last; seq += 1) places.push({ position: (position += 1), runId, seq })
    }
  }
  const wanted = places.filter(({ position }) => position > after).slice(0, limit)
  if (wanted.length === 0) return []
  const entries = await x.run('changes.entries', (tx) => ({
    rows: tx.select(journal, { at: ['place', wanted.map(({ runId, seq }) => placeText(runId, seq))] }),
    runs: tx.select(runs, { at: ['id', [...new Set(wanted.map(({ runId }) => runId))]] }),
  }))
  const { rows: found, runs: fed } = entries
  const byPlace = new Map(found.map((row) => [placeText(row.runId, row.entry.seq), row]))
  const byId = new Map(fed.map((run) => [run.id, run]))
  return wanted.flatMap(({ position, runId, seq }) => {
    const [row, run] = [byPlace.get(placeText(runId, seq)), byId.get(runId)]
    if (row === undefined || run === undefined) return []
    const { type, version, idempotencyKey: key } = run
    return [{ position, runId, type, version, key, entry: entryOf(row) }]
  })
}

function countOf({ ranges }: FeedRow): number {
  return ranges.reduce((sum, [, first, last]) => sum + last - first + 1, 0)
}
