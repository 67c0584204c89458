// Pausing, and letting go on. A run that somebody holds pauses at its holder's next checkpoint, or when it loses the holder.

import assert from 'node:assert/strict'
import type { Draft } from '../../core/entry.ts'
import { draftOf, ids } from './bench.ts'
import type { ContractCase } from './contract-case.ts'
import { inMs, step, waiting } from './drafts.ts'
import * as ask from './requests.ts'
import { expectSteerRefused, holdUndoable, kindsOf, pausedEntry, pauseWish, steered } from './requests.ts'

export const pausing: readonly ContractCase[] = [
  {
    name: 'a run that nobody holds is paused at once: no worker, no message and no time moves it',
    async run({ clock, start, hold, park, steer, run, journal, claim, deliver, message, rescue }) {
      const parked = await hold()
      await park(parked, { due: inMs(50) })
      const timed = await start({ due: inMs(50), expiresInMs: 100, timeoutMs: 200 })
      const { id } = await start()
      for (const runId of [id, timed.id, parked.runId]) {
        const row = steered(await steer(runId, ask.pause), 'done')
        assert.deepEqual([row.status, row.readiness, row.due, row.wish], ['paused', 'idle', null, null])
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
    async run({ start, hold, steer, run, journal, store }) {
      const sealed = (text: string) => ({ note: null, sealedNote: text })
      const data = async (runId: string): Promise<readonly unknown[]> =>
        (await journal(runId)).slice(1).map(({ kind, meta, data: kept }) => [kind, meta, kept])
      const { id } = await start()
      steered(await steer(id, { kind: 'pause', reason: 'operator', ...sealed('one') }), 'done')
      steered(await steer(id, { kind: 'resume', ...sealed('two'), amend: [], seq: null }), 'done')
      assert.deepEqual(await data(id), [
        ['paused', { reason: 'operator', note: null }, 'one'],
        ['resumed', { note: null }, 'two'],
      ])
      steered(await steer(id, ask.remove), 'done')
      const held = await hold()
      const { wish } = steered(
        await steer(held.runId, { kind: 'pause', reason: 'maintenance', ...sealed('three') }),
        'wished',
      )
      assert.deepEqual((await run(held.runId)).wish, wish)
      assert.equal(wish?.kind === 'pause' ? wish.sealedNote : null, 'three')
      // Whoever loses its holder pauses as well.
      await store.release([{ ...held.lease, runId: held.runId }])
      assert.deepEqual(await data(held.runId), [['paused', { reason: 'maintenance', note: null }, 'three']])
    },
  },
  {
    name: 'pausing again what is paused is done and appends nothing',
    async run(bench) {
      const { id } = await bench.start()
      const first = steered(await bench.steer(id, ask.pause), 'done')
      assert.deepEqual(steered(await bench.steer(id, ask.pause), 'done'), first)
      assert.deepEqual(await kindsOf(bench, id), ['started', 'paused'])
    },
  },
  {
    name: 'a leased run is asked to pause, goes on meanwhile, and pauses when its holder says so',
    async run({ clock, hold, steer, run, commit, claim }) {
      const held = await hold()
      const before = await run(held.runId)
      await clock.advance(3)
      const wish = pauseWish(clock.now())
      assert.deepEqual(steered(await steer(held.runId, ask.pause), 'wished'), { ...before, wish })
      assert.deepEqual(await run(held.runId), { ...before, wish })
      assert.deepEqual((await commit(held)).wish, wish)
      assert.deepEqual((await run(held.runId)).wish, wish, 'a checkpoint does not obey it')
      const answer = await commit(held, { append: [pausedEntry], status: 'paused' })
      assert.deepEqual([answer.released, answer.wish], [true, null])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.wish, row.session], ['paused', 'idle', null, null])
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'whoever obeys a wish to pause that was taken back is refused, and a later wish is obeyed',
    async run({ hold, steer, run, journal, transition, send, commit }) {
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      steered(await steer(held.runId, ask.resume), 'done')
      const before = [await run(held.runId), await journal(held.runId)]
      const obeys = { append: [step(), pausedEntry], status: 'paused', obeys: 'pause' } as const
      assert.deepEqual(await send(transition(held, obeys)), { outcome: 'refused', reason: 'resumed' })
      assert.deepEqual([await run(held.runId), await journal(held.runId)], before, 'nothing has changed')
      await commit(held)
      steered(await steer(held.runId, ask.pause), 'wished')
      const given = transition(held, obeys)
      const answer = await send(given)
      assert.deepEqual([answer.outcome, (await run(held.runId)).status], ['committed', 'paused'])
      steered(await steer(held.runId, ask.resume), 'done')
      assert.deepEqual(await send(given), answer, 'what took effect is answered again, whatever is wished by now')
    },
  },
  {
    name: 'whoever pauses by its own will needs nobody to wish for it, and a cancellation is told first',
    async run({ clock, hold, steer, run, transition, send, commit }) {
      const drifted = await hold()
      await commit(drifted, { append: [pausedEntry], status: 'paused' })
      assert.equal((await run(drifted.runId)).status, 'paused')
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      steered(await steer(held.runId, ask.cancel), 'wished')
      const late = transition(held, { append: [pausedEntry], status: 'paused', obeys: 'pause' })
      const wish = ask.cancelWish(clock.now())
      assert.deepEqual(await send(late), { outcome: 'refused', reason: 'cancelling', wish })
    },
  },
  {
    name: 'a wish to pause is not lost when the run wants to rest: it is told to look again, with its entries appended',
    async run({ clock, hold, steer, run, commit }) {
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      const wish = pauseWish(clock.now())
      const rest = [
        { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 } },
        { append: [], status: 'waiting', parkIf: { inbox: 0 } },
        { append: [step()], status: 'pending', due: inMs(50) },
      ] as const
      let seq = 1
      for (const changes of rest) {
        const answer = await commit(held, changes)
        seq += changes.append.length
        assert.deepEqual([answer.seq, answer.released, answer.wish], [seq, false, wish])
        const { status, session, wish: left } = await run(held.runId)
        assert.deepEqual([status, session, left], ['running', held.lease.session, wish])
      }
    },
  },
  {
    name: 'a run that ends before it paused is over, and nothing is wanted of it any more',
    async run({ hold, steer, run, commit }) {
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      const succeeded: Draft = { kind: 'succeeded', name: null, meta: null, data: '1' }
      const answer = await commit(held, { append: [succeeded], status: 'succeeded' })
      assert.deepEqual([answer.released, answer.wish], [true, null])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.wish], ['succeeded', null])
    },
  },
  {
    name: 'the wish of a holder that died is obeyed by the rescue',
    async run(bench) {
      const { clock, beat, hold, steer, rescue, run, claim } = bench
      await beat('dead')
      const held = await hold({ lease: { session: 'dead', token: 1 } })
      steered(await steer(held.runId, ask.pause), 'wished')
      await clock.advance(30_000)
      const { takenOver, ended } = await rescue()
      assert.deepEqual([takenOver.map(({ runId }) => runId), ended], [[held.runId], []])
      assert.deepEqual(await kindsOf(bench, held.runId), ['started', 'crashed', 'paused'])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.wish, row.session], ['paused', 'idle', null, null])
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'the wish of a holder that gives the run back is obeyed then',
    async run({ store, hold, steer, run, journal, claim }) {
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      await store.release([{ runId: held.runId, ...held.lease }])
      const row = await run(held.runId)
      assert.deepEqual([row.status, row.readiness, row.wish, row.crashes], ['paused', 'idle', null, 0])
      const last = (await journal(held.runId)).at(-1)
      assert.deepEqual(last && draftOf(last), pausedEntry)
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'a paused run that is resumed is claimable at once, with what came for it meanwhile',
    async run({ clock, start, steer, run, deliver, message, journal, take, mailbox }) {
      const { id } = await start({ due: inMs(1_000) })
      await steer(id, ask.pause)
      await deliver(message(id))
      await clock.advance(5)
      const row = steered(await steer(id, ask.resume), 'done')
      assert.deepEqual([row.status, row.readiness, row.due], ['pending', 'ready', clock.now()])
      assert.deepEqual(await run(id), row)
      const last = (await journal(id)).at(-1)
      assert.deepEqual(last && draftOf(last), { kind: 'resumed', name: null, meta: { note: 'go on' }, data: null })
      await take(id)
      assert.equal((await mailbox(id)).length, 1)
    },
  },
  {
    name: 'resuming takes back a wish that was not obeyed yet, and leaves the run to its holder',
    async run({ hold, steer, run, commit, journal, park }) {
      const held = await hold()
      const before = await run(held.runId)
      steered(await steer(held.runId, ask.pause), 'wished')
      assert.deepEqual(steered(await steer(held.runId, ask.resume), 'done'), before)
      assert.deepEqual(await run(held.runId), before)
      assert.equal((await journal(held.runId)).length, 1)
      assert.equal((await commit(held)).wish, null)
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
        await expectSteerRefused(bench, id, ask.resume, 'not-paused')
        await expectSteerRefused(bench, id, ask.retry, 'not-failed')
      }
    },
  },
  {
    name: 'a paused run with something to undo is cancelled all the same: it is claimed to undo it',
    async run(bench) {
      const held = await holdUndoable(bench)
      await bench.commit(held, { append: [pausedEntry], status: 'paused' })
      const row = steered(await bench.steer(held.runId, ask.cancel), 'done')
      assert.deepEqual([row.status, row.readiness], ['cancelling', 'ready'])
      assert.deepEqual(ids((await bench.claim()).runs), [held.runId])
    },
  },
  {
    name: 'a cancellation takes the place of a wish to pause',
    async run({ clock, hold, steer, run }) {
      const held = await hold()
      steered(await steer(held.runId, ask.pause), 'wished')
      steered(await steer(held.runId, ask.cancel), 'wished')
      const { status, wish } = await run(held.runId)
      assert.deepEqual([status, wish], ['cancelling', ask.cancelWish(clock.now())])
    },
  },
]
