// Removal: workers and lists no longer see the run, and it can still be read by its id.

import assert from 'node:assert/strict'
import { draftOf, ids, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs, step, waiting } from '../drafts.ts'
import { expectSound, parkWatching, outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { expectControlRefused, failedRun, controlled } from '../requests.ts'

async function holdRemoved({ hold, control }: ContractBench, changes?: Parameters<typeof hold>[0]): Promise<Held> {
  const held = await hold(changes)
  controlled(await control(held.runId, ask.remove), 'done')
  return held
}

export const removeCases: readonly ContractCase[] = [
  {
    name: 'SW-P1 a removed run keeps its status and its journal, and is never leased',
    async run({ clock, start, hold, park, control, run, journal, claim, rescue }) {
      const parked = await hold()
      await park(parked, { due: inMs(20) })
      const bounds = { timeoutMs: 50, expiresInMs: 40 }
      const all = [(await start(bounds)).id, (await start({ due: inMs(20) })).id, parked.runId]
      for (const id of all) {
        const before = await run(id)
        const entries = await journal(id)
        await clock.advance(1)
        const row = controlled(await control(id, ask.remove), 'done')
        const gone = { deletedAt: clock.now(), deleteReason: 'by mistake', readiness: 'idle', due: null }
        assert.deepEqual(row, { ...before, ...gone })
        assert.deepEqual([await run(id), await journal(id)], [row, entries])
      }
      await clock.advance(1_000)
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
      const { ended, next } = await rescue()
      assert.deepEqual([ended, next], [[], null], 'nor does time end it')
    },
  },
  {
    name: 'removing again is done, and keeps the time and the reason of the first',
    async run({ clock, start, control, run }) {
      const { id } = await start()
      const first = controlled(await control(id, ask.remove), 'done')
      await clock.advance(5)
      assert.deepEqual(controlled(await control(id, { kind: 'remove', reason: 'other' }), 'done'), first)
      assert.deepEqual(await run(id), first)
    },
  },
  {
    name: 'SW-P1 the holder of a removed run may finish it',
    async run(bench) {
      const held = await holdRemoved(bench)
      assert.deepEqual((await bench.run(held.runId)).readiness, 'leased')
      assert.equal((await bench.commit(held)).seq, 2)
      await bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      const { status, endedAt, deletedAt, session } = await bench.run(held.runId)
      assert.deepEqual([status, endedAt, deletedAt, session], ['succeeded', bench.clock.now(), bench.clock.now(), null])
    },
  },
  {
    name: 'SW-P1 a removed run that its holder leaves, gives back or loses is idle: no worker claims it again',
    async run(bench) {
      const { clock, beat, run, store, commit, rescue, claim, control } = bench
      const left = [
        { status: 'pending' },
        { status: 'pending', due: inMs(5) },
        { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 }, due: inMs(5) },
      ] as const
      const all: string[] = []
      for (const changes of left) {
        const held = await holdRemoved(bench)
        assert.equal((await commit(held, changes)).released, true)
        all.push(held.runId)
      }
      const cancelled = await bench.hold()
      controlled(await control(cancelled.runId, ask.cancel), 'requested')
      controlled(await control(cancelled.runId, ask.remove), 'done')
      await commit(cancelled, { append: [step()], status: 'cancelling' })
      all.push(cancelled.runId)
      const given = await holdRemoved(bench)
      await store.release([{ runId: given.runId, ...given.lease }])
      await beat('dead')
      const lost = await holdRemoved(bench, { lease: { session: 'dead', token: 1 } })
      await clock.advance(30_000)
      await rescue()
      for (const id of [...all, given.runId, lost.runId]) {
        const { readiness, due, session } = await run(id)
        assert.deepEqual([readiness, due, session], ['idle', null, null])
      }
      assert.deepEqual(await claim(), { runs: [], more: false, nextDue: null, now: clock.now() })
    },
  },
  {
    name: 'a removed run that is resumed or cancelled does not come back',
    async run({ start, control, run, claim }) {
      const { id } = await start()
      await control(id, ask.pause)
      await control(id, ask.remove)
      controlled(await control(id, ask.resume), 'done')
      assert.deepEqual([(await run(id)).status, (await run(id)).readiness], ['pending', 'idle'])
      assert.deepEqual((await claim()).runs, [])
      controlled(await control(id, ask.cancel), 'done')
      assert.deepEqual([(await run(id)).status, (await run(id)).deletedAt === null], ['cancelled', false])
    },
  },
  {
    name: 'a removed run that has failed is not retried',
    async run(bench) {
      const id = await failedRun(bench)
      controlled(await bench.control(id, ask.remove), 'done')
      await expectControlRefused(bench, id, ask.retry, 'deleted')
    },
  },
  {
    name: 'a message to a removed run finds no run, and one that was accepted before is still known',
    async run({ hold, park, control, deliver, message, run, mailbox }) {
      const held = await hold()
      const known = message(held.runId)
      assert.deepEqual(await deliver(known), { outcome: 'queued' })
      await park(held, { parkIf: { inbox: 1 } })
      controlled(await control(held.runId, ask.remove), 'done')
      const before = await run(held.runId)
      assert.deepEqual(await deliver(message(held.runId)), { outcome: 'target-not-found' })
      assert.deepEqual(await deliver(known), { outcome: 'queued', repeated: true })
      assert.deepEqual(await run(held.runId), before)
      assert.equal((await mailbox(held.runId)).length, 1)
    },
  },
  {
    name: 'SW-P1 a removed run can be read by its id, is found only when asked for, and its start is still known',
    async run({ store, newRun, start, control, journal }) {
      const kept = await start()
      const given = newRun({ tags: ['t'], key: 'k' })
      await store.start([given])
      const row = controlled(await control(given.id, ask.remove), 'done')
      assert.deepEqual(await store.get([given.id]), [row])
      const page = { limit: 10 }
      assert.deepEqual(ids(await store.find({}, page)), [kept.id])
      assert.deepEqual(ids(await store.find({ deleted: false }, page)), [kept.id])
      for (const filter of [{}, { tag: 't' }, { key: 'k' }, { ids: [given.id] }]) {
        assert.deepEqual(await store.find({ ...filter, deleted: true }, page), [row])
        assert.equal(await store.count({ ...filter, deleted: true }, 10), 1)
      }
      assert.deepEqual(await store.find({ tag: 't' }, page), [])
      assert.deepEqual(await store.start([given]), [{ created: true, taken: null, run: row }])
      assert.deepEqual((await journal(given.id)).map(draftOf), [given.first])
    },
  },
  {
    name: 'a run that waits for one that is removed before its end learns that it does not exist, and the children stop',
    async run(bench) {
      const { hold, park, commit, newRun, control, run, mailbox } = bench
      for (const isParked of [true, false]) {
        const parent = await hold()
        const child = newRun({ parentId: parent.runId })
        const starts = [{ run: child, awaited: false, onParentEnd: 'cancel' as const }]
        await commit(parent, { append: [waiting()], outbound: outbound({ starts }) })
        if (isParked) await park(parent)
        const watcher = await parkWatching(bench, [{ kind: 'run', runId: parent.runId }])
        controlled(await control(parent.runId, ask.remove), 'done')
        const [message] = await mailbox(watcher.runId)
        assert.deepEqual(
          [message?.kind, message?.name, message?.data],
          ['ended', parent.runId, '{"status":"not-found"}'],
        )
        assert.equal((await run(child.id)).status, 'cancelling')
        await expectSound(bench)
      }
    },
  },
  {
    name: 'a run that begins to wait for one that was removed before its end learns at once that it does not exist',
    async run(bench) {
      const { hold, park, control, mailbox } = bench
      for (const isParked of [true, false]) {
        const target = await hold()
        if (isParked) await park(target)
        controlled(await control(target.runId, ask.remove), 'done')
        const watcher = await hold()
        const watches = [{ kind: 'run' as const, runId: target.runId }]
        const answer = await park(watcher, { append: [waiting()], outbound: outbound({ watches }) })
        assert.deepEqual([answer.released, answer.inbox], [false, 1])
        const [message] = await mailbox(watcher.runId)
        assert.deepEqual(
          [message?.kind, message?.name, message?.data],
          ['ended', target.runId, '{"status":"not-found"}'],
        )
        await expectSound(bench)
      }
    },
  },
]
