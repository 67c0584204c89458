// Sessions: one heartbeat keeps all leases of a process, and a session that was declared dead stays dead.

import assert from 'node:assert/strict'
import { endedSessionKeptMs, sessionsForgottenAtOnce } from '../../../core/model/heartbeat.ts'
import { atOnce, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'

export const sessionCases: readonly ContractCase[] = [
  {
    name: 'SW-C2 one beat keeps everything that the session holds, however long that takes',
    async run({ clock, hold, beat, rescue, commit }) {
      assert.deepEqual(await beat('me'), {
        alive: true,
        lost: [],
        unknownLeases: [],
        controlRequests: [],
        messages: [],
        timedOut: [],
        now: clock.now(),
      })
      const held = [
        await hold({ lease: { session: 'me', token: 1 } }),
        await hold({ lease: { session: 'me', token: 1 } }),
      ]
      for (let round = 0; round < 5; round += 1) {
        await clock.advance(29_999)
        assert.deepEqual((await rescue()).takenOver, [])
        assert.equal((await beat('me')).alive, true)
      }
      for (const one of held) await commit(one)
    },
  },
  {
    name: 'a session whose heartbeat is late, but comes before a rescue, is alive',
    async run({ clock, beat, rescue, hold, commit }) {
      await beat('me')
      const held = await hold({ lease: { session: 'me', token: 1 } })
      await clock.advance(40_000)
      assert.equal((await beat('me')).alive, true)
      assert.equal((await rescue()).sessionsEnded, 0)
      await commit(held)
    },
  },
  {
    name: 'a session that was declared dead learns so at every beat and never comes back',
    async run({ clock, beat, rescue }) {
      await beat('me')
      await clock.advance(30_000)
      assert.equal((await rescue()).sessionsEnded, 1)
      for (let round = 0; round < 3; round += 1) {
        assert.deepEqual(await beat('me'), {
          alive: false,
          lost: [],
          unknownLeases: [],
          controlRequests: [],
          messages: [],
          timedOut: [],
          now: clock.now(),
        })
        assert.equal((await rescue()).sessionsEnded, 0, 'it is declared dead once')
        await clock.advance(10)
      }
    },
  },
  {
    name: 'a session that has ended gets no work: neither by a claim nor by an eager start',
    near: true,
    async run({ store, newRun, start, beat, claim, run }) {
      await beat('gone')
      assert.equal((await beat('gone', { end: true })).alive, false)
      const waiting = await start()
      assert.deepEqual((await claim({ session: 'gone' })).runs, [])
      const [answer] = await store.start([newRun({ lease: { session: 'gone', token: 1 }, leaseMs: 1_000 })])
      assert.equal(answer?.created, true)
      const { status, readiness, session, deadline } = await run(answer.run.id)
      assert.deepEqual([status, readiness, session, deadline], ['pending', 'ready', null, null])
      assert.deepEqual(ids((await claim()).runs), ids([waiting, answer.run]))
    },
  },
  {
    name: 'a session that ends itself is ended at once, and may end again',
    async run({ beat, rescue, clock }) {
      await beat('me')
      assert.equal((await beat('me', { end: true })).alive, false)
      assert.equal((await beat('me', { end: true })).alive, false)
      assert.equal((await beat('me')).alive, false)
      await clock.advance(100_000)
      assert.equal((await rescue()).sessionsEnded, 0, 'it is not found dead afterwards')
    },
  },
  {
    name: 'the lease of one session does not keep what another holds',
    async run({ clock, beat, hold, rescue }) {
      await beat('alive')
      await beat('dead')
      await hold({ lease: { session: 'alive', token: 1 } })
      const lost = await hold({ lease: { session: 'dead', token: 1 } })
      await clock.advance(20_000)
      await beat('alive')
      await clock.advance(20_000)
      const { sessionsEnded, takenOver } = await rescue()
      assert.deepEqual([sessionsEnded, takenOver.map(({ runId }) => runId)], [1, [lost.runId]])
    },
  },
  {
    name: 'a heartbeat that does not open a session finds that it has ended, and opens nothing',
    async run({ beat, hold, rescue, clock }) {
      const { runId } = await hold({ lease: { session: 'never', token: 1 } })
      const held = [{ runId, token: 1, extendMs: 60_000 }]
      const answer = await beat('never', { opens: false, held })
      assert.deepEqual([answer.alive, answer.lost, answer.now], [false, [runId], clock.now()])
      assert.deepEqual((await rescue()).sessionsEnded, 0, 'there is no such session')
      assert.equal((await beat('me')).alive, true)
      assert.equal((await beat('me', { opens: false })).alive, true, 'one that lives is kept')
      await clock.advance(29_999)
      assert.equal((await beat('me', { opens: false })).alive, true)
      await clock.advance(29_999)
      assert.equal((await rescue()).sessionsEnded, 0)
    },
  },
  {
    name: 'an ended session is gone a day later, and does not come back without its row either',
    near: true,
    async run({ beat, rescue, clock, hold, run }) {
      await beat('dead')
      await beat('ended')
      await beat('ended', { end: true })
      await clock.advance(30_000)
      assert.equal((await rescue()).sessionsEnded, 1)
      await clock.advance(endedSessionKeptMs - 30_001)
      await beat('other', { end: true })
      assert.equal((await beat('ended')).alive, false, 'the row is there for a day')
      await clock.advance(30_001)
      await beat('another', { end: true })
      for (const session of ['dead', 'ended']) {
        assert.equal((await beat(session, { opens: false })).alive, false)
        assert.equal((await beat(session, { opens: false })).alive, false, 'the heartbeat has opened nothing')
      }
      // What is leased to it is as good as lost: it goes to others with the next rescue.
      const { runId } = await hold({ lease: { session: 'dead', token: 1 } })
      await rescue()
      assert.deepEqual([(await run(runId)).status, (await run(runId)).session], ['pending', null])
      assert.equal((await beat('ended')).alive, true, 'its row is gone: it opens like a session that was never seen')
    },
  },
  {
    name: 'ended sessions also go when a rescue finds others dead',
    async run({ beat, rescue, clock }) {
      await beat('ended', { end: true })
      await beat('dead', { leaseMs: endedSessionKeptMs })
      await clock.advance(endedSessionKeptMs)
      assert.equal((await beat('ended')).alive, false)
      assert.equal((await rescue()).sessionsEnded, 1)
      assert.equal((await beat('ended', { opens: false })).alive, false)
      assert.equal((await beat('ended')).alive, true, 'its row is gone')
      assert.equal((await beat('dead')).alive, false, 'one that has just ended is there for a day')
    },
  },
  {
    name: 'the row of an ended session that a run still names does not go',
    async run({ beat, hold, clock, rescue }) {
      await beat('me')
      const held = await hold({ lease: { session: 'me', token: 1 } })
      await beat('me', { end: true })
      await clock.advance(endedSessionKeptMs)
      await beat('other', { end: true })
      assert.equal((await beat('me')).alive, false)
      assert.deepEqual(
        (await rescue()).takenOver.map(({ runId }) => runId),
        [held.runId],
      )
      await beat('other', { end: true })
      assert.equal((await beat('me')).alive, true, 'no run names it any more')
    },
  },
  {
    name: 'rows that do not go, however many, keep no row that may go from going',
    async run({ beat, hold, clock }) {
      for (let index = 0; index < sessionsForgottenAtOnce; index += 1) {
        const session = `held ${index}`
        await beat(session)
        await hold({ lease: { session, token: 1 } })
        await beat(session, { end: true })
      }
      await clock.advance(1)
      await beat('free', { end: true })
      await clock.advance(endedSessionKeptMs)
      await beat('other', { end: true })
      assert.equal((await beat('free')).alive, true, 'its row is gone')
      assert.equal((await beat('held 0')).alive, false, 'a run names it')
    },
  },
  {
    name: 'first beats that come at once open one session',
    async run({ beat, clock, rescue }) {
      const answers = await atOnce(8, () => beat('me'))
      assert.deepEqual(new Set(answers.map(({ alive }) => alive)), new Set([true]))
      await clock.advance(30_000)
      assert.equal((await rescue()).sessionsEnded, 1)
    },
  },
  {
    name: 'a claim and an eager start carry the deadline that was asked for, in store time, and giving up clears it',
    async run({ store, clock, selector, start, claim, hold, commit, park, run }) {
      await start()
      const plain = (await claim()).runs[0]
      assert.equal(plain?.deadline, null)
      const { id } = await start()
      await clock.advance(5)
      const other = { type: 'other', version: 1, leaseMs: 9 }
      const { runs } = await claim({ session: 'me', selectors: [other, { ...selector, leaseMs: 5_000 }] })
      assert.deepEqual([runs[0]?.id, runs[0]?.deadline], [id, clock.now() + 5_000])
      assert.equal((await run(id)).deadline, clock.now() + 5_000)
      const again = { type: 'other', version: 2 }
      await hold({ ...again, leaseMs: 700 }).then(async (held) => {
        assert.equal((await run(held.runId)).deadline, clock.now() + 700)
        await commit(held)
        assert.equal((await run(held.runId)).deadline, clock.now() + 700, 'a checkpoint does not move it')
        await park(held)
        assert.equal((await run(held.runId)).deadline, null)
      })
      await store.release([{ runId: id, session: 'me', token: 1 }])
      assert.equal((await run(id)).deadline, null)
    },
  },
  {
    name: 'PQ-C3 only the holder of a run moves its deadline; another session learns that it has lost the run',
    async run({ clock, hold, beat, run, store }) {
      await beat('me')
      const [held, given] = [
        await hold({ lease: { session: 'me', token: 1 }, leaseMs: 1_000 }),
        await hold({ lease: { session: 'me', token: 1 } }),
      ]
      const strange = await hold({ leaseMs: 1_000 })
      await store.release([{ runId: given.runId, ...given.lease }])
      await clock.advance(900)
      const before = await run(strange.runId)
      const { alive, lost } = await beat('me', {
        held: [
          { runId: held.runId, token: 1, extendMs: 60_000 },
          { runId: strange.runId, token: 1, extendMs: 60_000 },
          { runId: given.runId, token: 1, extendMs: 60_000 },
        ],
      })
      assert.deepEqual([alive, lost], [true, [strange.runId, given.runId]])
      assert.equal((await run(held.runId)).deadline, clock.now() + 60_000)
      assert.deepEqual(await run(strange.runId), before)
      assert.equal((await run(given.runId)).deadline, null)
      const late = await beat('me', { held: [{ runId: held.runId, token: 0, extendMs: 5 }] })
      assert.deepEqual(late.lost, [held.runId], 'an old token moves nothing')
    },
  },
]
