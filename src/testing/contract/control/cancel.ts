// Cancellation. It cannot be missed and cannot be taken back: the holder is asked and refused any other end, and when the
// holder is gone, another worker continues.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { draftOf, ids, succeeded, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs, step, waiting } from '../drafts.ts'
import * as ask from '../requests.ts'
import { cancelControlRequest, expectControlRefused, holdUndoable, kindsOf, controlled } from '../requests.ts'

const lost = { outcome: 'refused', reason: 'lease-lost' }
const cancelledEntry: Draft = { kind: 'cancelled', name: null, meta: { reason: 'enough', notUndone: [] }, data: null }

/** A run with something to undo whose holder was asked to cancel it and then died. */
async function orphanCancelled(bench: ContractBench, undo: boolean): Promise<Held> {
  await bench.beat('dead')
  const lease = { session: 'dead', token: 1 }
  const held = undo ? await holdUndoable(bench, { lease }) : await bench.hold({ lease })
  controlled(await bench.control(held.runId, ask.cancel), 'requested')
  await bench.clock.advance(30_000)
  return held
}

export const cancelCases: readonly ContractCase[] = [
  {
    name: 'HE-P1 a run without a holder and without undo work is cancelled at once, in every status',
    async run(bench) {
      const { clock, start, hold, park, control, run, journal } = bench
      const parked = await hold()
      await park(parked)
      const paused = await start()
      await control(paused.id, ask.pause)
      const timed = await start({ due: inMs(50), timeoutMs: 500, expiresInMs: 100 })
      for (const id of [(await start()).id, timed.id, parked.runId, paused.id]) {
        await clock.advance(1)
        const answer = controlled(await control(id, ask.cancel), 'done')
        const row = await run(id)
        assert.deepEqual(answer, row)
        const { status, readiness, due, session, endedAt, updatedAt, expiresAt, controlRequest } = row
        assert.deepEqual(
          [status, readiness, due, session, endedAt, updatedAt, expiresAt, controlRequest],
          ['cancelled', 'idle', null, null, clock.now(), clock.now(), null, null],
        )
        const last = (await journal(id)).at(-1)
        assert.deepEqual(last && draftOf(last), cancelledEntry)
      }
      await clock.advance(1_000)
      assert.deepEqual((await bench.claim()).runs, [])
      assert.deepEqual((await bench.rescue()).ended, [])
    },
  },
  {
    name: 'WC-P3 HE-P1 nothing is cancelled, paused or resumed that is over',
    async run(bench) {
      for (const status of ['succeeded', 'failed', 'cancelled'] as const) {
        const held = await bench.hold()
        await bench.commit(held, { append: [ending(status)], status })
        for (const request of [ask.cancel, ask.cancelNow, ask.pause, ask.resume]) {
          await expectControlRefused(bench, held.runId, request, 'ended')
        }
      }
    },
  },
  {
    name: 'PQ-P1 a run with something to undo is cancelling, has no bound on its time, and is claimed as such',
    async run(bench) {
      const { clock, control, run, claim, commit, rescue } = bench
      const held = await holdUndoable(bench, { timeoutMs: 60_000 })
      await bench.park(held)
      await clock.advance(5)
      const row = controlled(await control(held.runId, ask.cancel), 'done')
      assert.deepEqual(await run(held.runId), row)
      assert.deepEqual(
        [row.status, row.readiness, row.due, row.undo, row.timeoutAt, row.controlRequest, row.endedAt],
        ['cancelling', 'ready', clock.now(), 'due', null, null, null],
      )
      const meta = { reason: 'enough' }
      const last = (await bench.journal(held.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), { kind: 'cancelling', name: null, meta, data: null })
      await clock.advance(60_000)
      assert.deepEqual((await rescue()).ended, [], 'undo work has no bound on its time')
      const { runs } = await claim({ session: 'next' })
      assert.deepEqual(ids(runs), [held.runId])
      const [claimed] = runs
      assert.deepEqual(
        [claimed?.status, claimed?.readiness, claimed?.token, claimed?.crashes, claimed?.session],
        ['cancelling', 'leased', 2, 1, 'next'],
      )
      assert.deepEqual(await run(held.runId), claimed)
      const next = { runId: held.runId, seq: row.seq, lease: { session: 'next', token: 2 } }
      await commit(next, { append: [{ kind: 'undone', name: 'charge', meta: { attempt: 1, ms: 1 }, data: null }] })
      await commit(next, { append: [ending('cancelled')], status: 'cancelled' })
      assert.equal((await run(held.runId)).status, 'cancelled')
    },
  },
  {
    name: 'SW-P2 PQ-P1 a leased run is asked: it is cancelling at once, keeps its holder, and the next commit reports it',
    async run(bench) {
      const { clock, hold, control, run, commit, claim, journal } = bench
      const held = await hold({ timeoutMs: 1_000 })
      const before = await run(held.runId)
      await clock.advance(3)
      const controlRequest = cancelControlRequest(clock.now())
      const row = controlled(await control(held.runId, ask.cancel), 'requested')
      assert.deepEqual(row, { ...before, status: 'cancelling', controlRequest, timeoutAt: null })
      assert.deepEqual(await run(held.runId), row)
      assert.equal((await journal(held.runId)).length, 1, 'only the holder writes its journal')
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(3)
      const answer = await commit(held, { append: [step('in flight')] })
      assert.deepEqual([answer.controlRequest, answer.released], [controlRequest, false])
      const append = [ending('cancelled')]
      const end = await commit(held, { append, status: 'cancelled' })
      assert.deepEqual([end.controlRequest, end.released], [null, true])
      const { status, controlRequest: left, session, endedAt } = await run(held.runId)
      assert.deepEqual([status, left, session, endedAt], ['cancelled', null, null, clock.now()])
    },
  },
  {
    name: 'SW-P2 HE-P1 PQ-P1 a holder that does not know of the cancellation cannot end the run otherwise, nor continue it as new',
    async run(bench) {
      const { hold, control, run, journal, transition, send, commit } = bench
      const held = await hold()
      controlled(await control(held.runId, ask.cancel), 'requested')
      const before = [await run(held.runId), await journal(held.runId)]
      const { selector } = bench
      const continued: Draft = { kind: 'continued', name: null, meta: selector, data: '1' }
      const attempts = [
        { append: [step(), ending('succeeded')], status: 'succeeded' },
        { append: [step(), ending('failed')], status: 'failed' },
        { append: [step(), ask.pausedEntry], status: 'paused' },
        { append: [step(), continued], continues: { ...selector, feed: false } },
      ] as const
      const refused = {
        outcome: 'refused',
        reason: 'cancelling',
        controlRequest: cancelControlRequest(bench.clock.now()),
      }
      for (const attempt of attempts) assert.deepEqual(await send(transition(held, attempt)), refused)
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before, 'nothing is appended')
      // Work done meanwhile is not lost: all but the last entry, as a checkpoint, in its place.
      assert.equal((await commit(held, { append: [step()] })).seq, 2)
    },
  },
  {
    name: 'PQ-P1 a run that is being cancelled neither rests nor goes back: it is asked to look, with its entries appended',
    async run(bench) {
      const { clock, hold, control, commit, run, take } = bench
      const held = await hold()
      controlled(await control(held.runId, ask.cancel), 'requested')
      const controlRequest = cancelControlRequest(clock.now())
      const rest = [
        { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } },
        { append: [step()], status: 'pending', due: inMs(50) },
      ] as const
      for (const changes of rest) {
        const answer = await commit(held, changes)
        assert.deepEqual([answer.released, answer.controlRequest], [false, controlRequest])
        const { status, session, readiness, due } = await run(held.runId)
        assert.deepEqual([status, session, readiness, due], ['cancelling', held.lease.session, 'leased', null])
      }
      // The same for a later holder of a cancelling run, which finds no control request.
      const other = await holdUndoable(bench)
      await bench.park(other)
      controlled(await control(other.runId, ask.cancel), 'done')
      const next = await take(other.runId)
      for (const changes of rest) {
        const answer = await commit(next, changes)
        assert.deepEqual([answer.released, answer.controlRequest], [false, null])
        assert.equal((await run(other.runId)).status, 'cancelling')
      }
    },
  },
  {
    name: 'a run that is given back while it is being cancelled stays so: claimable at once, or when it is due',
    async run({ clock, hold, control, commit, run, take, claim }) {
      const held = await hold()
      controlled(await control(held.runId, ask.cancel), 'requested')
      const controlRequest = cancelControlRequest(clock.now())
      const entry: Draft = { kind: 'cancelling', name: null, meta: { reason: 'enough' }, data: null }
      const answer = await commit(held, { append: [entry], status: 'cancelling', undo: 'due', due: inMs(40) })
      assert.deepEqual([answer.released, answer.controlRequest], [true, null])
      const row = await run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.due, row.session, row.undo, row.controlRequest],
        ['cancelling', 'timed', clock.now() + 40, null, 'due', controlRequest],
      )
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(40)
      const next = await take(held.runId)
      await commit(next, { append: [step()], status: 'cancelling' })
      assert.equal((await run(held.runId)).readiness, 'ready')
      const last = await take(held.runId)
      await commit(last, { append: [ending('cancelled')], status: 'cancelled' })
      assert.deepEqual([(await run(held.runId)).status, (await run(held.runId)).controlRequest], ['cancelled', null])
    },
  },
  {
    name: 'a release of a run to be cancelled removes its timeout: it is claimed, however late',
    async run({ clock, hold, commit, rescue, take, run }) {
      const held = await hold({ timeoutMs: 50 })
      await commit(held, { append: [step()], status: 'cancelling' })
      assert.equal((await run(held.runId)).timeoutAt, null)
      await clock.advance(50)
      assert.deepEqual((await rescue()).ended, [])
      await take(held.runId)
    },
  },
  {
    name: 'PQ-P1 a cancellation is not cancelled again, not paused and not resumed',
    async run(bench) {
      const { control, hold, run } = bench
      const held = await hold()
      const controlRequests = controlled(await control(held.runId, ask.cancel), 'requested')
      await bench.clock.advance(9)
      assert.deepEqual(
        controlled(await control(held.runId, ask.cancel), 'requested'),
        controlRequests,
        'the first one counts',
      )
      await expectControlRefused(bench, held.runId, ask.pause, 'cancelling')
      await expectControlRefused(bench, held.runId, ask.resume, 'not-paused')
      await expectControlRefused(bench, held.runId, ask.retry, 'not-failed')
      const parked = await holdUndoable(bench)
      await bench.park(parked)
      const first = controlled(await control(parked.runId, ask.cancel), 'done')
      assert.deepEqual(controlled(await control(parked.runId, ask.cancel), 'done'), first)
      assert.deepEqual(await run(parked.runId), first)
    },
  },
  {
    name: 'HE-P1 an immediate cancellation ends the run at once, and its holder is refused from then on',
    async run(bench) {
      const { clock, control, run, transition, send, store, beat } = bench
      await beat('me')
      const held = await holdUndoable(bench, { lease: { session: 'me', token: 1 } })
      await clock.advance(2)
      const row = controlled(await control(held.runId, ask.cancelNow), 'done')
      const { status, token, session, endedAt, undo } = row
      assert.deepEqual([status, token, session, endedAt, undo], ['cancelled', 2, null, clock.now(), 'possible'])
      const after = [await run(held.runId), await bench.journal(held.runId)]
      for (const seq of [held.seq, row.seq]) {
        const late = { ...held, seq }
        assert.deepEqual(await send(transition(late)), lost)
        assert.deepEqual(await send(transition(late, { append: [ending('succeeded')], status: 'succeeded' })), lost)
        assert.deepEqual(await send(transition(late, { append: [], status: 'waiting', parkIf: { inbox: 0 } })), lost)
      }
      await store.release([{ runId: held.runId, ...held.lease }])
      const answer = await beat('me', { held: [{ runId: held.runId, token: 1, extendMs: null }] })
      assert.deepEqual([answer.lost, answer.controlRequests], [[held.runId], []])
      assert.deepEqual([await run(held.runId), await bench.journal(held.runId)], after)
    },
  },
  {
    name: 'a cancellation that does not wait overtakes one that does',
    async run(bench) {
      const held = await holdUndoable(bench)
      controlled(await bench.control(held.runId, ask.cancel), 'requested')
      controlled(await bench.control(held.runId, ask.cancelNow), 'done')
      assert.deepEqual(await kindsOf(bench, held.runId), ['started', 'step-succeeded', 'cancelled'])
      assert.deepEqual(await bench.send(bench.transition(held)), lost)
    },
  },
  {
    name: "PQ-P1 a dead holder's run that was being cancelled and has nothing to undo is ended by the rescue",
    async run(bench) {
      const held = await orphanCancelled(bench, false)
      const { type } = await bench.run(held.runId)
      const { ended, takenOver } = await bench.rescue()
      assert.deepEqual([ended, takenOver], [[{ runId: held.runId, type, reason: 'cancelled' }], []])
      assert.deepEqual(await kindsOf(bench, held.runId), ['started', 'crashed', 'cancelled'])
      const last = (await bench.journal(held.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), cancelledEntry, 'the reason is the one that was given')
      const { status, controlRequest } = await bench.run(held.runId)
      assert.deepEqual([status, controlRequest], ['cancelled', null])
    },
  },
  {
    name: "a dead holder's run that has something to undo is claimed as cancelling, and still knows why",
    async run(bench) {
      const held = await orphanCancelled(bench, true)
      const { controlRequest } = await bench.run(held.runId)
      const { ended, takenOver } = await bench.rescue()
      assert.deepEqual([ended, takenOver.map(({ runId }) => runId)], [[], [held.runId]])
      const row = await bench.run(held.runId)
      assert.deepEqual(
        [row.status, row.readiness, row.undo, row.controlRequest],
        ['cancelling', 'ready', 'due', controlRequest],
      )
      const next = await bench.take(held.runId)
      assert.deepEqual((await bench.run(held.runId)).status, 'cancelling')
      assert.deepEqual((await bench.commit(next)).controlRequest, controlRequest)
    },
  },
  {
    name: 'a holder past its deadline loses a run that it was asked to cancel',
    async run(bench) {
      const { clock, beat, control, rescue } = bench
      await beat('me', { leaseMs: 1_000_000 })
      const held = await holdUndoable(bench, { lease: { session: 'me', token: 1 }, leaseMs: 5_000 })
      controlled(await control(held.runId, ask.cancel), 'requested')
      await clock.advance(5_000)
      assert.deepEqual(
        (await rescue()).takenOver.map(({ runId }) => runId),
        [held.runId],
      )
      assert.deepEqual(await bench.send(bench.transition(held)), lost)
    },
  },
  {
    name: 'a run that is given back while it is being cancelled ends if there is nothing to undo, and goes on otherwise',
    async run(bench) {
      const { hold, control, store, run, journal, take } = bench
      const [plain, undoable] = [await hold(), await holdUndoable(bench)]
      for (const { runId, lease } of [plain, undoable]) {
        controlled(await control(runId, ask.cancel), 'requested')
        await store.release([{ runId, ...lease }])
      }
      assert.equal((await run(plain.runId)).status, 'cancelled')
      const last = (await journal(plain.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), cancelledEntry)
      const row = await run(undoable.runId)
      assert.deepEqual([row.status, row.undo, row.crashes], ['cancelling', 'due', 0])
      await take(undoable.runId)
    },
  },
  {
    name: 'a repetition is known while the run is being cancelled, and carries what is wanted',
    async run({ clock, hold, control, transition, send }) {
      const held = await hold()
      const given = transition(held)
      const first = succeeded(await send(given))
      controlled(await control(held.runId, ask.cancel), 'requested')
      assert.deepEqual(await send(given), { ...first, controlRequest: cancelControlRequest(clock.now()) })
      const rest = transition({ ...held, seq: 2 }, { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } })
      const kept = await send(rest)
      assert.deepEqual(await send(rest), kept)
    },
  },
]
