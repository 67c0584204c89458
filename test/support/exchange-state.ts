// Everything that a read-committed store holds, and what must be true of it after whatever runs and topics have exchanged:
// nothing is lost, nothing is there twice, and nobody sleeps who has something to look at.

import assert from 'node:assert/strict'
import { broadcastMessageId } from '../../src/core/model/message.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import { messageNameOf } from '../../src/core/model/wait-condition.ts'
import type { ReadCommittedStore } from '../read-committed/store.ts'

/** What is committed, in an order that does not depend on how it came. */
export async function stateOf(store: ReadCommittedStore) {
  const { insides } = store
  const tx = insides.db.begin('state')
  const { runs, journal, messages, waits, topics, broadcasts } = insides.tables
  const state = {
    runs: sorted(tx.select(runs, {})),
    entries: sorted(tx.select(journal, {})),
    messages: sorted(tx.select(messages, {})),
    waits: sorted(tx.select(waits, {})),
    topics: sorted(tx.select(topics, {})),
    broadcasts: sorted(tx.select(broadcasts, {})),
  }
  tx.rollBack()
  return { ...state, feed: await store.changes(0, 1_000) }
}

export type State = Awaited<ReturnType<typeof stateOf>>

function sorted<Row>(rows: readonly Row[]): readonly Row[] {
  if (rows.length < 2) return rows
  const texts = new Map(rows.map((row) => [row, JSON.stringify(row)]))
  return rows.toSorted((a, b) => ((texts.get(a) ?? '') < (texts.get(b) ?? '') ? -1 : 1))
}

export async function assertNothingLost(store: ReadCommittedStore, now: number): Promise<State> {
  const state = await stateOf(store)
  assertMailboxes(state)
  assertNobodySleeps(state)
  assertWaits(state, now)
  assertBroadcasts(state)
  const wrong = (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
  assert.deepEqual(wrong, [], 'the store finds nothing wrong with itself')
  return state
}

/** Each message that was ever put has a place of its own, and no run that is over has one that it might still read. */
function assertMailboxes({ runs, messages }: State): void {
  for (const { id, inbox, status } of runs) {
    const mine = messages.filter(({ runId }) => runId === id)
    const positions = mine.map(({ position }) => position).toSorted((a, b) => a - b)
    const dense = Array.from({ length: inbox }, (_, index) => index + 1)
    assert.deepEqual(positions, dense, 'mailbox_dense: a mailbox has a gap')
    const left = mine.filter(({ takenBy }) => takenBy === null)
    if (isTerminal(status)) assert.deepEqual(left, [], 'signal_not_lost: a run is over, and its messages have no fate')
  }
}

/** Every run that waits for something that lies in its mailbox can be claimed. */
function assertNobodySleeps({ runs, entries, messages }: State): void {
  for (const { id, status, readiness } of runs) {
    if (status !== 'waiting' || readiness === 'ready') continue
    const mine = entries.filter(({ runId }) => runId === id).map(({ entry }) => entry)
    const wait = mine.toSorted((a, b) => a.seq - b.seq).findLast(({ kind }) => kind === 'waiting')
    const conditions = wait?.kind === 'waiting' ? wait.meta.conditions : []
    for (const condition of conditions) {
      const name = messageNameOf(condition)
      const isThere = messages.some((one) => one.runId === id && one.takenBy === null && one.name === name)
      assert.ok(!isThere, `no_lost_wakeup: a run sleeps although ${name ?? ''} lies in its mailbox`)
      if (condition.kind !== 'run') continue
      const other = runs.find((run) => run.id === condition.runId)
      assert.ok(
        other !== undefined && !isTerminal(other.status),
        'no_lost_wakeup: a run sleeps after the end it waits for',
      )
    }
  }
}

/** Nobody is registered with something that is over, or that has what it waits for. */
function assertWaits({ runs, waits, broadcasts }: State, now: number): void {
  for (const { kind, target, runId, effect, delivery } of waits) {
    const waiter = runs.find(({ id }) => id === runId)
    if (waiter === undefined || isTerminal(waiter.status)) continue
    if (kind === 'run') {
      const other = runs.find(({ id }) => id === target)
      assert.ok(other !== undefined && !isTerminal(other.status), `no_lost_wakeup: ${effect} is registered with an end`)
      assert.ok(other.watched, 'a run that another run watches knows it')
    }
    if (delivery !== 'one') continue
    const open = broadcasts.filter((one) => one.topic === target && one.delivery === 'one' && one.takenBy === null)
    const kept = open.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
    assert.deepEqual(kept, [], 'no_lost_wakeup: a run waits on a queue that is not empty')
  }
}

/** What was sent to a queue has one reader or none; what was sent to all lies once with each. */
function assertBroadcasts({ topics, broadcasts, messages }: State): void {
  for (const sent of broadcasts) {
    const { delivery, takenBy } = sent
    const copies = messages.filter(({ kind, id }) => kind === 'broadcast' && id === broadcastMessageId(sent))
    const readers = copies.map(({ runId }) => runId)
    assert.equal(new Set(readers).size, readers.length, 'broadcast_snapshot: each run gets it once')
    if (delivery === 'one') assert.deepEqual(readers, takenBy === null ? [] : [takenBy], 'one takes it, or none')
  }
  for (const { name, position } of topics) {
    const positions = broadcasts.filter(({ topic }) => topic === name).map((one) => one.position)
    const dense = Array.from({ length: position }, (_, index) => index + 1)
    assert.deepEqual(
      positions.toSorted((a, b) => a - b),
      dense,
      'a topic has a gap',
    )
  }
}
