// Timeouts: a run that no worker began in time, and a run that takes too long as a whole, end with a reason.

import assert from 'node:assert/strict'
import { draftOf, failures, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import type { Draft } from '../../../core/model/entry.ts'
import { ending, inMs, step } from '../drafts.ts'

export const timeoutCases: readonly ContractCase[] = [
  {
    name: 'a run that no worker began in time is not claimed any more, and fails',
    async run({ clock, start, claim, rescue, run, journal }) {
      const { id, type, expiresAt } = await start({ expiresInMs: 1_000 })
      assert.equal(expiresAt, clock.now() + 1_000)
      const other = await start()
      assert.equal((await rescue()).next, expiresAt)
      await clock.advance(1_000)
      assert.deepEqual(ids((await claim()).runs), [other.id], 'it does not hide who stands behind it')
      const { ended } = await rescue()
      assert.deepEqual(ended, [{ runId: id, type, reason: 'expired' }])
      const { status, readiness, due, endedAt } = await run(id)
      assert.deepEqual([status, readiness, due, endedAt], ['failed', 'idle', null, clock.now()])
      const last = (await journal(id)).at(-1)
      assert.deepEqual(last && draftOf(last), { kind: 'failed', name: null, meta: null, data: failures.expired })
      assert.deepEqual((await rescue()).ended, [])
    },
  },
  {
    name: 'a run that was begun in time never expires',
    near: true,
    async run({ store, clock, start, hold, take, run, rescue, claim }) {
      const { id } = await start({ expiresInMs: 1_000 })
      const eager = await hold({ expiresInMs: 1_000 })
      await clock.advance(999)
      const held = await take(id)
      await store.release([
        { runId: id, ...held.lease },
        { runId: eager.runId, ...eager.lease },
      ])
      await clock.advance(10_000)
      assert.deepEqual((await rescue()).ended, [])
      assert.equal((await run(id)).expiresAt, null)
      assert.deepEqual(ids((await claim()).runs), [id, eager.runId])
    },
  },
  {
    name: 'a run whose time is over neither succeeds nor begins anew: it is refused, and nothing is appended',
    async run({ clock, selector, hold, commit, send, transition, run, journal }) {
      const held = await hold({ timeoutMs: 1_000 })
      await clock.advance(999)
      await commit(held)
      await clock.advance(1)
      const before = [await run(held.runId), await journal(held.runId)]
      const late = { outcome: 'refused', reason: 'timed-out' } as const
      const continued: Draft = { kind: 'continued', name: null, meta: { ...selector }, data: '1' }
      const succeeds = transition(held, { append: [step(), ending('succeeded')], status: 'succeeded' })
      assert.deepEqual(await send(succeeds), late)
      assert.deepEqual(await send(succeeds), late, 'a repetition is refused, too')
      assert.deepEqual(await send({ ...succeeds, emptyAt: 0 }), late)
      assert.deepEqual(
        await send(transition(held, { append: [continued], continues: { ...selector, feed: false } })),
        late,
      )
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before, 'nothing has changed')
      await commit(held)
      await commit(held, { append: [ending('failed')], status: 'failed' })
    },
  },
  {
    name: 'a run succeeds in the last millisecond of its time, and its repetition is answered after that',
    async run({ clock, hold, send, transition }) {
      const held = await hold({ timeoutMs: 1_000 })
      await clock.advance(999)
      const succeeds = transition(held, { append: [ending('succeeded')], status: 'succeeded' })
      const answer = await send(succeeds)
      assert.equal(answer.outcome, 'committed')
      await clock.advance(10_000)
      assert.deepEqual(await send(succeeds), answer)
    },
  },
  {
    name: 'a run that is over time as a whole fails while it waits or is pending, and is not handed out before',
    async run({ clock, start, hold, park, rescue, run, claim, journal }) {
      const timeoutMs = 5_000
      const pending = await start({ timeoutMs })
      const timed = await start({ timeoutMs, due: inMs(60_000) })
      const parked = await hold({ timeoutMs })
      await park(parked)
      assert.equal(pending.timeoutAt, clock.now() + timeoutMs)
      await clock.advance(timeoutMs - 1)
      const early = await rescue()
      assert.deepEqual([early.ended, early.next], [[], clock.now() + 1])
      await clock.advance(1)
      assert.deepEqual((await claim()).runs, [])
      const { ended } = await rescue()
      const expected = [pending.id, timed.id, parked.runId]
      assert.deepEqual(
        new Map(ended.map(({ runId, reason }) => [runId, reason])),
        new Map(expected.map((id) => [id, 'timed-out'])),
      )
      for (const id of expected) {
        assert.equal((await run(id)).status, 'failed')
        assert.equal((await journal(id)).at(-1)?.data, failures['timed-out'])
      }
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
    },
  },
  {
    name: 'a held run that is over time is reported to its holder and to no other, and is left to it',
    async run({ clock, hold, beat, rescue, run, commit }) {
      await beat('me', { leaseMs: 100_000 })
      await beat('you', { leaseMs: 100_000 })
      const late = await hold({ lease: { session: 'me', token: 1 }, timeoutMs: 1_000 })
      await hold({ lease: { session: 'me', token: 1 }, timeoutMs: 50_000 })
      assert.deepEqual((await beat('me', { leaseMs: 100_000 })).timedOut, [])
      await clock.advance(1_000)
      const { ended, takenOver } = await rescue()
      assert.deepEqual([ended, takenOver], [[], []])
      assert.equal((await run(late.runId)).status, 'running')
      assert.deepEqual((await beat('me', { leaseMs: 100_000 })).timedOut, [late.runId])
      assert.deepEqual((await beat('you', { leaseMs: 100_000 })).timedOut, [])
      const append = [{ kind: 'failed', name: null, meta: null, data: '"late"' } as const]
      await commit(late, { append, status: 'failed' })
      assert.deepEqual((await beat('me', { leaseMs: 100_000 })).timedOut, [])
    },
  },
  {
    name: 'a run that is over time when its holder dies fails instead of going on',
    async run({ clock, hold, beat, rescue, journal }) {
      await beat('dead')
      const held = await hold({ lease: { session: 'dead', token: 1 }, timeoutMs: 10_000 })
      await clock.advance(30_000)
      const { ended, takenOver } = await rescue()
      assert.deepEqual([ended.map(({ reason }) => reason), takenOver], [['timed-out'], []])
      assert.deepEqual(
        (await journal(held.runId)).map(({ kind }) => kind),
        ['started', 'crashed', 'failed'],
      )
    },
  },
  {
    name: 'a paused run is not ended by time',
    async run({ clock, hold, commit, rescue, run }) {
      const held = await hold({ timeoutMs: 1_000 })
      await commit(held, { status: 'paused' })
      await clock.advance(5_000)
      const { ended, next } = await rescue()
      assert.deepEqual([ended, next], [[], null])
      assert.equal((await run(held.runId)).status, 'paused')
    },
  },
]
