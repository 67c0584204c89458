// Races of heartbeats and rescuers: against each other, and against a transaction that has locked a row.

import assert from 'node:assert/strict'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import type { Race } from './race-world.ts'

const extendAgainstRescue: Race = async (world) => {
  const { beat, hold, clock, rescue, run } = world
  await beat('me', { leaseMs: 1_000_000 })
  const held = await hold({ lease: { session: 'me', token: 1 }, leaseMs: 1_000 })
  await clock.advance(1_000)
  const [beaten, rescued] = await world.atOnce(
    () => beat('me', { leaseMs: 1_000_000, held: [{ runId: held.runId, token: 1, extendMs: 9_000 }] }),
    () => rescue(),
  )
  const row = await run(held.runId)
  const isTaken = rescued.takenOver.length === 1
  assert.equal(row.status, isTaken ? 'pending' : 'running')
  // While the rescue has the row, nobody can know yet what becomes of it: the next beat says it again, and is answered.
  if (isTaken)
    assert.deepEqual([...beaten.lost, ...(beaten.busy ?? [])], [held.runId], 'the session that lost it is answered so')
  else assert.equal(row.deadline, clock.now() + 9_000)
}

/** Another transaction has a row while its holder beats, and rescuers look. */
const beatAgainstStranger: Race = async (world) => {
  const { store, beat, hold, clock, rescue, run } = world
  const { db, tables } = store.insides
  await beat('me', { leaseMs: 30_000 })
  const lease = { session: 'me', token: 1 }
  const locked = await hold({ lease, leaseMs: 10_000 })
  const other = await hold({ lease, leaseMs: 10_000 })
  const held = [locked, other].map(({ runId }) => ({ runId, token: 1, extendMs: 10_000 }))
  const say = () => beat('me', { leaseMs: 30_000, held, seeksUnknownLeases: false })
  await clock.advance(9_000)
  const letGo = await db.holdRow(tables.runs, locked.runId)
  const [beaten] = await world.atOnce(say, () => rescue())
  assert.deepEqual(
    [beaten.alive, beaten.lost, beaten.busy],
    [true, [], [locked.runId]],
    'nobody waits for the stranger',
  )
  assert.equal((await run(other.runId)).deadline, clock.now() + 10_000)
  // Past the deadline of the one, and past what the session would have lived without that beat.
  await clock.advance(9_500)
  const [rescued] = await world.atOnce(() => rescue())
  assert.deepEqual([rescued.sessionsEnded, rescued.takenOver], [0, []], 'and nobody takes what is locked')
  letGo()
  const [again, taken] = await world.atOnce(say, () => rescue())
  const row = await run(locked.runId)
  const isTaken = taken.takenOver.length === 1
  assert.deepEqual([row.session, row.deadline], isTaken ? [null, null] : ['me', clock.now() + 10_000])
  if (isTaken) assert.deepEqual([...again.lost, ...(again.busy ?? [])], [locked.runId])
}

/** Another transaction has a parent that would hear of an end, while rescuers look and senders send. */
const rescueAgainstStranger: Race = async (world) => {
  const { store, beat, hold, park, clock, rescue, run, mailbox } = world
  const { db, tables } = store.insides
  const parent = await hold()
  const start = world.child(parent.runId, { timeoutMs: 1_000 })
  await world.commit(parent, { outbound: outbound({ starts: [start] }) })
  await park(parent, { append: [], parkIf: { inbox: 0 } })
  await beat('dead', { leaseMs: 1_000 })
  const orphan = await hold({ lease: { session: 'dead', token: 1 } })
  await clock.advance(1_000)
  const letGo = await db.holdRow(tables.runs, parent.runId)
  const [first, second] = await world.atOnce(
    () => rescue(),
    () => rescue(),
    () => world.deliver(world.message(start.run.id)),
  )
  const all = [...first.takenOver, ...second.takenOver].map(({ runId }) => runId)
  // Two of them may be in each other's way, and then the next look finds it: but nobody waits for the stranger.
  if (all.length === 0) assert.equal((await rescue()).takenOver.length, 1)
  else assert.deepEqual(all, [orphan.runId])
  if ((await run(start.run.id)).endedAt === null) await rescue()
  assert.notEqual((await run(start.run.id)).endedAt, null, 'its time is over, even if a watcher cannot be notified')
  assert.equal((await run(parent.runId)).inbox, 0)
  letGo()
  await clock.advance(1_000)
  await world.atOnce(
    () => world.chores(),
    () => world.chores(),
  )
  assert.equal((await mailbox(parent.runId)).length, 1)
}

const beatAgainstRescue: Race = async (world) => {
  const { beat, clock, rescue } = world
  await beat('me', { leaseMs: 1_000 })
  await clock.advance(1_000)
  const [beaten, first, second] = await world.atOnce(
    () => beat('me', { leaseMs: 1_000 }),
    () => rescue(),
    () => rescue(),
  )
  const ended = first.sessionsEnded + second.sessionsEnded
  assert.equal(ended, beaten.alive ? 0 : 1, 'it lives, or was declared dead once')
}

export const beatRaces: Readonly<Record<string, Race>> = {
  'extend against rescue': extendAgainstRescue,
  'beat against rescue': beatAgainstRescue,
  'beat against a stranger who has a row': beatAgainstStranger,
  'rescue against a stranger who has a parent': rescueAgainstStranger,
}
