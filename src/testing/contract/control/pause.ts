// Pausing and resuming. A held run pauses at its holder's next checkpoint, or when it loses the holder.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { draftOf, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs, step, waiting } from '../drafts.ts'
import * as ask from '../requests.ts'
import {
  expectControlRefused,
  holdUndoable,
  kindsOf,
  pausedEntry,
  pauseControlRequest,
  controlled,
} from '../requests.ts'

export const pauseCases: readonly ContractCase[] = [
  {
    name: 'a run without a holder is paused at once: no worker, no message and no time moves it',
    async run({ clock, start, hold, park, control, run, journal, claim, deliver, message, rescue }) {
      const parked = await hold()
      await park(parked, { due: inMs(50) })
      const timed = await start({ due: inMs(50), expiresInMs: 100, timeoutMs: 200 })
      const { id } = await start()
      for (const runId of [id, timed.id, parked.runId]) {
        const row = controlled(await control(runId, ask.pause), 'done')
        assert.deepEqual([row.status, row.readiness, row.due, row.controlRequest], ['paused', 'idle', null, null])
        assert.deepEqual(await run(runId), row)
        const last = (await journal(runId)).at(-1)
        assert.deepEqual(last && draftOf(last), pausedEntry)
        assert.deepEqual(await deliver(message(runId)), { outcome: 'queued' })
      }
      await clock.advance(1_000)
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
      const { ended, next } = await rescue()
      assert.deepEqual([ended, next], [[], null])
    },
  },
  {
    name: 'a note that a codec has encrypted is the payload of its entry, by whichever way it comes there, and nothing else is',
    async run({ start, hold, control, run, journal, store }) {
      const sealed = (text: string) => ({ note: null, sealedNote: text })
      const data = async (runId: string): Promise<readonly unknown[]> =>
        (await journal(runId)).slice(1).map(({ kind, meta, data: kept }) => [kind, meta, kept])
      const { id } = await start()
      controlled(await control(id, { kind: 'pause', reason: 'operator', ...sealed('one') }), 'done')
      controlled(await control(id, { kind: 'resume', ...sealed('two'), amend: [], seq: null }), 'done')
      assert.deepEqual(await data(id), [
        ['paused', { reason: 'operator', note: null }, 'one'],
        ['resumed', { note: null }, 'two'],
      ])
      controlled(await control(id, ask.remove), 'done')
      const held = await hold()
      const { controlRequest } = controlled(
        await control(held.runId, { kind: 'pause', reason: 'maintenance', ...sealed('three') }),
        'requested',
      )
      assert.deepEqual((await run(held.runId)).controlRequest, controlRequest)
      assert.equal(controlRequest?.kind === 'pause' ? controlRequest.sealedNote : null, 'three')
      // A run that loses its holder pauses as well.
      await store.release([{ ...held.lease, runId: held.runId }])
      assert.deepEqual(await data(held.runId), [['paused', { reason: 'maintenance', note: null }, 'three']])
    },
  },
  {
    name: 'pausing again what is paused is done and appends nothing',
    async run(bench) {
      const { id } = await bench.start()
      const first = controlled(await bench.control(id, ask.pause), 'done')
      assert.deepEqual(controlled(await bench.control(id, ask.pause), 'done'), first)
      assert.deepEqual(await kindsOf(bench, id), ['started', 'paused'])
    },
  },
  {
    name: 'a leased run is asked to pause, goes on meanwhile, and pauses when its holder says so',
    async run({ clock, hold, control, run, commit, claim }) {
      const held = await hold()
      const before = await run(held.runId)
      await clock.advance(3)
      const controlRequest = pauseControlRequest(clock.now())
      assert.deepEqual(controlled(await control(held.runId, ask.pause), 'requested'), { ...before, controlRequest })
      assert.deepEqual(await run(held.runId), { ...before, controlRequest })
      assert.deepEqual((await commit(held)).controlRequest, controlRequest)
      assert.deepEqual((await run(held.runId)).controlRequest, controlRequest, 'a checkpoint does not obey it')
      const answer = await commit(held, { append: [pausedEntry], status: 'paused' })
      assert.deepEqual([answer.released, answer.controlRequest], [true, null])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.controlRequest, row.session], ['paused', 'idle', null, null])
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'a holder that obeys a withdrawn request to pause is refused, and a later request is obeyed',
    async run({ hold, control, run, journal, transition, send, commit }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      controlled(await control(held.runId, ask.resume), 'done')
      const before = [await run(held.runId), await journal(held.runId)]
      const applies = { append: [step(), pausedEntry], status: 'paused', applies: 'pause' } as const
      assert.deepEqual(await send(transition(held, applies)), { outcome: 'refused', reason: 'resumed' })
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before, 'nothing has changed')
      await commit(held)
      controlled(await control(held.runId, ask.pause), 'requested')
      const given = transition(held, applies)
      const answer = await send(given)
      assert.deepEqual([answer.outcome, (await run(held.runId)).status], ['committed', 'paused'])
      controlled(await control(held.runId, ask.resume), 'done')
      assert.deepEqual(await send(given), answer, 'a committed pause is answered again, whatever the request is by now')
    },
  },
  {
    name: 'a holder that pauses by itself needs no request, and a cancellation takes precedence',
    async run({ clock, hold, control, run, transition, send, commit }) {
      const drifted = await hold()
      await commit(drifted, { append: [pausedEntry], status: 'paused' })
      assert.equal((await run(drifted.runId)).status, 'paused')
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      controlled(await control(held.runId, ask.cancel), 'requested')
      const late = transition(held, { append: [pausedEntry], status: 'paused', applies: 'pause' })
      const controlRequest = ask.cancelControlRequest(clock.now())
      assert.deepEqual(await send(late), { outcome: 'refused', reason: 'cancelling', controlRequest })
    },
  },
  {
    name: 'a request to pause is not lost when the run wants to rest: it is asked to look again, with its entries appended',
    async run({ clock, hold, control, run, commit }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      const controlRequest = pauseControlRequest(clock.now())
      const rest = [
        { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } },
        { append: [], status: 'waiting', parkIf: { inbox: 0 } },
        { append: [step()], status: 'pending', due: inMs(50) },
      ] as const
      let seq = 1
      for (const changes of rest) {
        const answer = await commit(held, changes)
        seq += changes.append.length
        assert.deepEqual([answer.seq, answer.released, answer.controlRequest], [seq, false, controlRequest])
        const { status, session, controlRequest: left } = await run(held.runId)
        assert.deepEqual([status, session, left], ['running', held.lease.session, controlRequest])
      }
    },
  },
  {
    name: 'a run that ends before it paused is over, and nothing is wanted of it any more',
    async run({ hold, control, run, commit }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      const succeeded: Draft = { kind: 'succeeded', name: null, meta: null, data: '1' }
      const answer = await commit(held, { append: [succeeded], status: 'succeeded' })
      assert.deepEqual([answer.released, answer.controlRequest], [true, null])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.controlRequest], ['succeeded', null])
    },
  },
  {
    name: 'the control request of a holder that died is obeyed by the rescue',
    async run(bench) {
      const { clock, beat, hold, control, rescue, run, claim } = bench
      await beat('dead')
      const held = await hold({ lease: { session: 'dead', token: 1 } })
      controlled(await control(held.runId, ask.pause), 'requested')
      await clock.advance(30_000)
      const { takenOver, ended } = await rescue()
      assert.deepEqual([takenOver.map(({ runId }) => runId), ended], [[held.runId], []])
      assert.deepEqual(await kindsOf(bench, held.runId), ['started', 'crashed', 'paused'])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.controlRequest, row.session], ['paused', 'idle', null, null])
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'the control request of a holder that gives the run back is obeyed then',
    async run({ store, hold, control, run, journal, claim }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      await store.release([{ runId: held.runId, ...held.lease }])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.controlRequest, row.crashes], ['paused', 'idle', null, 0])
      const last = (await journal(held.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), pausedEntry)
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'a paused run that is resumed is claimable at once, with what came for it meanwhile',
    async run({ clock, start, control, run, deliver, message, journal, take, mailbox }) {
      const { id } = await start({ due: inMs(1_000) })
      await control(id, ask.pause)
      await deliver(message(id))
      await clock.advance(5)
      const row = controlled(await control(id, ask.resume), 'done')
      assert.deepEqual([row.status, row.readiness, row.due], ['pending', 'ready', clock.now()])
      assert.deepEqual(await run(id), row)
      const last = (await journal(id)).at(-1)
      assert.deepEqual(last && draftOf(last), { kind: 'resumed', name: null, meta: { note: 'go on' }, data: null })
      await take(id)
      assert.equal((await mailbox(id)).length, 1)
    },
  },
  {
    name: 'resuming takes back a control request that was not obeyed yet, and leaves the run to its holder',
    async run({ hold, control, run, commit, journal, park }) {
      const held = await hold()
      const before = await run(held.runId)
      controlled(await control(held.runId, ask.pause), 'requested')
      assert.deepEqual(controlled(await control(held.runId, ask.resume), 'done'), before)
      assert.deepEqual(await run(held.runId), before)
      assert.equal((await journal(held.runId)).length, 1)
      assert.equal((await commit(held)).controlRequest, null)
      assert.equal((await park(held)).released, true)
    },
  },
  {
    name: 'nothing is resumed that is not paused, and nothing retried that has not failed',
    async run(bench) {
      const { start, hold, park } = bench
      const parked = await hold()
      await park(parked)
      for (const id of [(await start()).id, (await hold()).runId, parked.runId]) {
        await expectControlRefused(bench, id, ask.resume, 'not-paused')
        await expectControlRefused(bench, id, ask.retry, 'not-failed')
      }
    },
  },
  {
    name: 'a paused run with something to undo is cancelled all the same: it is claimed to undo it',
    async run(bench) {
      const held = await holdUndoable(bench)
      await bench.commit(held, { append: [pausedEntry], status: 'paused' })
      const row = controlled(await bench.control(held.runId, ask.cancel), 'done')
      assert.deepEqual([row.status, row.readiness], ['cancelling', 'ready'])
      assert.deepEqual(ids((await bench.claim()).runs), [held.runId])
    },
  },
  {
    name: 'a cancellation takes the place of a request to pause',
    async run({ clock, hold, control, run }) {
      const held = await hold()
      controlled(await control(held.runId, ask.pause), 'requested')
      controlled(await control(held.runId, ask.cancel), 'requested')
      const { status, controlRequest } = await run(held.runId)
      assert.deepEqual([status, controlRequest], ['cancelling', ask.cancelControlRequest(clock.now())])
    },
  },
]
