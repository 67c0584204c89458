// The answer to a heartbeat: the leases that the session lost, and the control requests for the runs that it holds.

import assert from 'node:assert/strict'
import type { HeldClaim } from '../../../store.ts'
import type { Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import * as ask from '../requests.ts'
import { cancelControlRequest, pauseControlRequest, controlled } from '../requests.ts'

const lease = { session: 'me', token: 1 }

function claims(held: readonly Held[], extendMs: number | null = null): readonly HeldClaim[] {
  return held.map(({ runId, lease: { token } }) => ({ runId, token, extendMs }))
}

export const heartbeatCases: readonly ContractCase[] = [
  {
    name: 'SW-P2 a beat says what is wanted of the runs that the session holds, and of no others',
    near: true,
    async run({ clock, beat, hold, control, commit }) {
      await beat('me')
      await beat('you')
      const [a, b, c] = [await hold({ lease }), await hold({ lease }), await hold({ lease })]
      const strange = await hold({ lease: { session: 'you', token: 1 } })
      const at = clock.now()
      controlled(await control(c.runId, ask.pause), 'requested')
      controlled(await control(a.runId, ask.cancel), 'requested')
      controlled(await control(strange.runId, ask.pause), 'requested')
      await clock.advance(9)
      const answer = await beat('me', { held: claims([a, b, c]) })
      assert.deepEqual(answer, {
        alive: true,
        lost: [],
        unknownLeases: [],
        controlRequests: [
          { runId: a.runId, controlRequest: cancelControlRequest(at) },
          { runId: c.runId, controlRequest: pauseControlRequest(at) },
        ],
        messages: [],
        timedOut: [],
        now: clock.now(),
      })
      await commit(a, { append: [ending('cancelled')], status: 'cancelled' })
      await commit(c, { append: [ask.pausedEntry], status: 'paused' })
      assert.deepEqual((await beat('me')).controlRequests, [], 'and no more once it was obeyed')
    },
  },
  {
    name: 'a heartbeat says what the session holds and does not know of, so that it can be given back',
    async run({ store, start, hold, claim, beat, commit, run }) {
      await beat('me')
      const known = await hold({ lease })
      const ended = await hold({ lease })
      await commit(ended, { append: [ending('succeeded')], status: 'succeeded' })
      await hold({ lease: { session: 'you', token: 1 } })
      // A claim whose answer never came.
      const { id } = await start()
      await claim({ session: 'me' })
      const unknownLease = { runId: id, token: 1 }
      assert.deepEqual((await beat('me', { held: claims([known]) })).unknownLeases, [unknownLease])
      await store.release([{ ...unknownLease, session: 'me' }])
      assert.deepEqual((await beat('me', { held: claims([known]) })).unknownLeases, [])
      assert.equal((await run(id)).status, 'pending')
    },
  },
  {
    name: 'a heartbeat that seeks no unknown leases answers for the runs that it lists, and for no others',
    near: true,
    async run({ clock, beat, hold, control, deliver, message }) {
      await beat('me', { leaseMs: 100_000 })
      const listed = [await hold({ lease, timeoutMs: 50 }), await hold({ lease }), await hold({ lease })]
      const [late, paused, receiver] = listed as [Held, Held, Held]
      const unlisted = [await hold({ lease, timeoutMs: 50 }), await hold({ lease })] as const
      const strange = await hold({ lease: { session: 'you', token: 1 }, timeoutMs: 50 })
      const at = clock.now()
      controlled(await control(paused.runId, ask.pause), 'requested')
      controlled(await control(unlisted[1].runId, ask.pause), 'requested')
      controlled(await control(strange.runId, ask.pause), 'requested')
      await deliver(message(receiver.runId))
      await clock.advance(50)
      // One of them twice: it is reported once.
      const held = claims([strange, late, paused, receiver, late, paused]).map((claim) => ({ ...claim, inbox: 0 }))
      const answer = await beat('me', { leaseMs: 100_000, held, seeksUnknownLeases: false })
      assert.deepEqual(answer, {
        alive: true,
        lost: [strange.runId],
        unknownLeases: [],
        controlRequests: [{ runId: paused.runId, controlRequest: pauseControlRequest(at) }],
        messages: [{ runId: receiver.runId, inbox: 1 }],
        timedOut: [late.runId],
        now: clock.now(),
      })
      const all = await beat('me', { leaseMs: 100_000, held: claims(listed), seeksUnknownLeases: true })
      const ids = (runs: readonly { readonly runId: string }[]): readonly string[] => runs.map(({ runId }) => runId)
      assert.deepEqual(
        [ids(all.unknownLeases), ids(all.controlRequests), all.timedOut],
        [ids(unlisted), [paused.runId, unlisted[1].runId], [late.runId, unlisted[0].runId]],
      )
      const nothing = await beat('me', { leaseMs: 100_000, seeksUnknownLeases: false })
      assert.deepEqual([nothing.unknownLeases, nothing.controlRequests, nothing.timedOut], [[], [], []])
    },
  },
  {
    name: 'a beat lists all that the session believes to hold and does not, in their order',
    async run({ store, clock, beat, hold, newRun, take, park, control, commit, rescue }) {
      await beat('me', { leaseMs: 100_000 })
      const all = [
        await hold({ lease }),
        await hold({ lease }),
        await hold({ lease, leaseMs: 10 }),
        await hold({ lease }),
      ]
      const [kept, given, late, ended] = all as [Held, Held, Held, Held]
      const parked = await hold({ lease })
      const cancelled = await hold({ lease })
      await store.release([{ runId: given.runId, ...given.lease }])
      await clock.advance(10)
      await rescue()
      await commit(ended, { append: [ending('succeeded')], status: 'succeeded' })
      await park(parked)
      controlled(await control(cancelled.runId, ask.cancelNow), 'done')
      const strange = { runId: newRun().id, lease, seq: 1 }
      const answer = await beat('me', { held: claims([cancelled, late, kept, strange, given, ended, parked]) })
      const lost = [cancelled, late, strange, given, ended, parked].map(({ runId }) => runId)
      assert.deepEqual(answer.lost, lost)
      await store.release([{ runId: kept.runId, ...kept.lease }])
      await store.control([late, given].map(({ runId }) => ({ id: `remove ${runId}`, runId, ...ask.cancelNow })))
      await take(kept.runId, 'me')
      assert.deepEqual((await beat('me', { held: claims([kept]) })).lost, [kept.runId], 'under an old token')
    },
  },
  {
    name: 'a session that has ended holds nothing',
    async run({ beat, hold, run }) {
      await beat('me')
      const held = await hold({ lease, leaseMs: 50 })
      const before = await run(held.runId)
      const answer = await beat('me', { end: true, held: claims([held], 500) })
      assert.deepEqual([answer.alive, answer.lost], [false, [held.runId]])
      assert.deepEqual(await run(held.runId), before, 'its deadline is not moved')
    },
  },
  {
    name: 'deadlines are moved for those that ask for it, each to its own, also while they are being cancelled',
    async run({ clock, beat, hold, run, control }) {
      await beat('me')
      const [a, b, c, d] = [
        await hold({ lease, leaseMs: 50 }),
        await hold({ lease, leaseMs: 60 }),
        await hold({ lease, leaseMs: 70 }),
        await hold({ lease }),
      ]
      controlled(await control(c.runId, ask.cancel), 'requested')
      const { deadline } = await run(b.runId)
      await clock.advance(20)
      await beat('me', { held: [...claims([a], 100), ...claims([b, d]), ...claims([c], 300)] })
      const now = clock.now()
      const deadlines: unknown[] = []
      for (const { runId } of [a, b, c, d]) deadlines.push((await run(runId)).deadline)
      assert.deepEqual(deadlines, [now + 100, deadline, now + 300, null])
    },
  },
  {
    name: 'a session that holds a thousand runs learns of all of them at once',
    async run({ store, beat, newRun }) {
      await beat('me')
      const made = Array.from({ length: 1_000 }, () => newRun({ lease }))
      await store.start(made)
      const held = made.map(({ id }) => ({ runId: id, token: 1, extendMs: 10 }))
      assert.deepEqual((await beat('me', { held })).lost, [])
      const stale = held.map((one) => ({ ...one, token: 2 }))
      assert.equal((await beat('me', { held: stale })).lost.length, 1_000)
    },
  },
  {
    name: 'a run whose time is over is not reported once it is being cancelled or was removed: time bounds neither',
    async run({ clock, beat, hold, control }) {
      await beat('me', { leaseMs: 100_000 })
      const held = await hold({ lease, timeoutMs: 50 })
      const other = await hold({ lease, timeoutMs: 50 })
      const removed = await hold({ lease, timeoutMs: 50 })
      controlled(await control(held.runId, ask.cancel), 'requested')
      controlled(await control(removed.runId, ask.remove), 'done')
      await clock.advance(50)
      assert.deepEqual((await beat('me')).timedOut, [other.runId])
    },
  },
]
