// Transitions without a lease: a process decides an input for a run that waits and that nobody holds. The place in the journal
// is the only fence: of two that decide at once, one is stale, and nobody writes beside a holder.

import assert from 'node:assert/strict'
import type { Draft } from '../../../core/model/entry.ts'
import { atOnce, ids, succeeded, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs, waiting } from '../drafts.ts'
import { endOf, expectAsleep, expectSound, expectWoken, messages, outbound, parkWatching } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { decide, event, unheld, waitingRun } from '../unheld.ts'

const snapshot: Draft = { kind: 'snapshot', name: null, meta: { fingerprint: 'f00' }, data: '{"state":1}' }

/** Where a run is not just waiting, or is no more. */
const elsewhere: readonly {
  readonly name: string
  readonly bring: (bench: ContractBench) => Promise<string>
  readonly reason: 'held' | 'ended'
}[] = [
  { name: 'is performed by a worker', bring: async ({ hold }) => (await hold()).runId, reason: 'held' },
  { name: 'was never begun', bring: async ({ start }) => (await start()).id, reason: 'held' },
  {
    name: 'was claimed for a message',
    async bring(bench) {
      const { id } = await waitingRun(bench)
      await bench.deliver(bench.message(id))
      await bench.take(id)
      return id
    },
    reason: 'held',
  },
  {
    name: 'was given back',
    async bring(bench) {
      const held = await bench.hold()
      await bench.store.release([{ runId: held.runId, ...held.lease }])
      return held.runId
    },
    reason: 'held',
  },
  {
    name: 'is paused',
    async bring(bench) {
      const { id } = await waitingRun(bench)
      await bench.control(id, ask.pause)
      return id
    },
    reason: 'held',
  },
  {
    name: 'is being cancelled',
    async bring(bench) {
      const held = await ask.holdUndoable(bench)
      await bench.park(held)
      await bench.control(held.runId, ask.cancel)
      return held.runId
    },
    reason: 'held',
  },
  {
    name: 'is over',
    async bring(bench) {
      const { id } = await waitingRun(bench)
      await bench.control(id, ask.cancel)
      return id
    },
    reason: 'ended',
  },
  {
    name: 'was removed',
    async bring(bench) {
      const { id } = await waitingRun(bench)
      await bench.control(id, ask.remove)
      return id
    },
    reason: 'ended',
  },
]

const refusedElsewhere = elsewhere.map(({ name, bring, reason }): ContractCase => ({
  name: `IF-C1 a transition without a lease is refused as ${reason} where the run ${name}, and changes nothing`,
  async run(bench) {
    const runId = await bring(bench)
    const before = [await bench.run(runId), await bench.journal(runId)] as const
    for (const seq of [before[0].seq, before[0].seq - 1]) {
      const answer = await bench.send(unheld(bench, { id: runId, seq }))
      assert.deepEqual(answer, { outcome: 'refused', reason })
    }
    assert.deepEqual([await bench.run(runId), await bench.journal(runId)], before)
  },
}))

export const unheldCases: readonly ContractCase[] = [
  ...refusedElsewhere,
  {
    name: 'IF-E2 IF-E3 a transition without a lease is in the journal when it is answered, and the run waits as before',
    async run(bench) {
      const before = await waitingRun(bench, { feed: true })
      await bench.clock.advance(7)
      const given = unheld(bench, before, { append: [event('a'), event('b')], feed: true })
      const now = bench.clock.now()
      const answer = succeeded(await bench.send(given))
      const seq = before.seq + 2
      assert.deepEqual(answer, {
        outcome: 'committed',
        seq,
        at: now,
        inbox: 0,
        released: true,
        controlRequest: null,
      })
      assert.deepEqual(await bench.run(before.id), { ...before, seq, updatedAt: now })
      const [a, b] = (await bench.journal(before.id)).slice(-2)
      assert.deepEqual(
        [a, b],
        [
          { ...event('a'), seq: seq - 1, at: now, transition: given.id },
          { ...event('b'), seq, at: now, transition: null },
        ],
      )
      assert.deepEqual((await bench.claim()).runs, [], 'nobody has to look at it')
      await expectSound(bench)
    },
  },
  {
    name: 'IF-C1 of many that decide at once behind one entry, one writes and the others are stale',
    async run(bench) {
      const before = await waitingRun(bench)
      const rivals = Array.from({ length: 8 }, () => unheld(bench, before))
      const answers = await atOnce(rivals.length, (index) => bench.send(rivals[index] as (typeof rivals)[number]))
      const stale = answers.filter((one) => one.outcome === 'refused' && one.reason === 'stale')
      assert.deepEqual([answers.length - stale.length, stale.length], [1, 7])
      assert.equal((await bench.journal(before.id)).length, before.seq + 1)
    },
  },
  {
    name: 'a transition without a lease that is repeated is answered as before, also when a worker holds the run by then',
    async run(bench) {
      const before = await waitingRun(bench)
      const given = unheld(bench, before)
      const first = succeeded(await bench.send(given))
      await bench.clock.advance(10)
      assert.deepEqual(await bench.send(given), first)
      await bench.deliver(bench.message(before.id))
      await bench.take(before.id)
      const row = await bench.run(before.id)
      assert.deepEqual(await bench.send(given), { ...first, inbox: 1 })
      assert.deepEqual(await bench.run(before.id), row)
    },
  },
  {
    name: 'there is no run that a transition without a lease could begin',
    async run(bench) {
      const answer = await bench.send(unheld(bench, { id: bench.newRun().id, seq: 0 }))
      assert.deepEqual(answer, { outcome: 'refused', reason: 'not-found' })
    },
  },
  {
    name: 'a transition without a lease says when the run is due, and what it says last counts',
    async run(bench) {
      const { id } = await waitingRun(bench)
      const now = bench.clock.now()
      await decide(bench, id, { due: inMs(50) })
      const row = await bench.run(id)
      assert.deepEqual([row.status, row.readiness, row.due], ['waiting', 'timed', now + 50])
      await decide(bench, id, { due: { at: now + 20, afterMs: 100 } })
      assert.equal((await bench.run(id)).due, now + 20)
      await decide(bench, id)
      const idle = await bench.run(id)
      assert.deepEqual([idle.readiness, idle.due], ['idle', null])
      await decide(bench, id, { due: inMs(0) })
      assert.deepEqual(ids((await bench.claim()).runs), [id])
    },
  },
  {
    name: 'a timer that was due and is decided without a lease wakes nobody any more',
    async run(bench) {
      const { id } = await waitingRun(bench)
      await decide(bench, id, { due: inMs(50) })
      await bench.clock.advance(60)
      await decide(bench, id, { due: inMs(1_000) })
      assert.deepEqual((await bench.claim()).runs, [])
      assert.equal((await bench.run(id)).due, bench.clock.now() + 1_000)
    },
  },
  {
    name: 'a transition without a lease never takes back that a message has woken the run',
    async run(bench) {
      const { id } = await waitingRun(bench)
      await bench.clock.advance(5)
      await bench.deliver(bench.message(id))
      const wokenAt = bench.clock.now()
      await bench.clock.advance(5)
      for (const due of [null, inMs(1_000), inMs(0)]) {
        const answer = await decide(bench, id, { due })
        assert.equal(answer.inbox, 1)
        const row = await bench.run(id)
        assert.deepEqual([row.status, row.readiness, row.due], ['waiting', 'ready', wokenAt])
      }
      const held = await bench.take(id)
      assert.equal((await bench.mailbox(id)).length, 1)
      const [message] = await bench.mailbox(id)
      const takes = [message?.id ?? '']
      await bench.park({ ...held, seq: 5 }, { takes, append: [event()], parkIf: { inbox: 1 } })
      await expectAsleep(bench, id, 1)
      await decide(bench, id, { due: inMs(9) })
      assert.equal((await bench.run(id)).readiness, 'timed', 'nothing is left that had woken it')
    },
  },
  {
    name: 'messages and transitions without a lease at once: no wake-up is lost',
    async run(bench) {
      for (let round = 0; round < 10; round += 1) {
        const before = await waitingRun(bench)
        const given = unheld(bench, before)
        const message = bench.message(before.id)
        await Promise.all([bench.send(given), bench.deliver(message)])
        await expectWoken(bench, before.id, 1)
        await bench.claim()
      }
    },
  },
  {
    name: 'names that a parked run does not wait for do not wake it after a transition without a lease either',
    async run(bench) {
      const held = await bench.hold()
      await bench.park(held, { parkIf: { inbox: 0, wakeNames: ['paid'] } })
      await decide(bench, held.runId)
      assert.deepEqual((await bench.run(held.runId)).wakeNames, ['paid'])
      await bench.deliver(bench.message(held.runId, { name: 'other' }))
      await expectAsleep(bench, held.runId, 1)
      await bench.deliver(bench.message(held.runId, { name: 'paid' }))
      await expectWoken(bench, held.runId, 2)
    },
  },
  ...(['succeeded', 'failed'] as const).map((status): ContractCase => ({
    name: `IF-U3 a run that ${status} without a lease is over: its key is free, and the runs that wait for it are notified`,
    async run(bench) {
      const { id } = await waitingRun(bench, { key: 'k' })
      const watcher = await parkWatching(bench, [endOf(id)])
      await bench.deliver(bench.message(id))
      await bench.clock.advance(3)
      const answer = await decide(bench, id, { append: [event(), ending(status)], status })
      assert.deepEqual([answer.released, answer.controlRequest], [true, null])
      const row = await bench.run(id)
      const { readiness, due, session, endedAt, wakeNames } = row
      const expected = [status, 'idle', null, null, bench.clock.now(), null]
      assert.deepEqual([row.status, readiness, due, session, endedAt, wakeNames], expected)
      assert.deepEqual(
        (await bench.claim({ session: 'nobody' })).runs.map((run) => run.id),
        [watcher.runId],
      )
      const [[kind, name]] = (await messages(bench, watcher.runId)) as [readonly unknown[]]
      assert.deepEqual([kind, name], ['ended', id])
      await bench.start({ key: 'k' })
      assert.deepEqual(await bench.send(unheld(bench, row)), { outcome: 'refused', reason: 'ended' })
      await expectSound(bench)
    },
  })),
  {
    name: 'a transition without a lease starts children, and its run is notified of their ends',
    async run(bench) {
      const { id } = await waitingRun(bench)
      const child = bench.child(id)
      await decide(bench, id, { outbound: outbound({ starts: [child] }) })
      assert.equal((await bench.run(child.run.id)).parentId, id)
      await expectAsleep(bench, id)
      const held = await bench.take(child.run.id)
      await bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      await expectWoken(bench, id, 1)
    },
  },
  {
    name: 'a child that cannot be started wakes the run that asked for it without a lease',
    async run(bench) {
      const other = await bench.start({ key: 'k' })
      const { id } = await waitingRun(bench)
      const child = bench.child(id, { key: 'k' })
      const answer = await decide(bench, id, { due: inMs(500), outbound: outbound({ starts: [child] }) })
      assert.equal(answer.inbox, 1)
      assert.deepEqual(await messages(bench, id), [['refused', child.run.id, { taken: 'key', by: other.id }]])
      await expectWoken(bench, id, 1)
    },
  },
  {
    name: 'transitions without a lease of many runs and of holders are answered one by one in one batch',
    async run(bench) {
      const runs = []
      for (let index = 0; index < 12; index += 1) runs.push(await waitingRun(bench))
      const held = await bench.hold()
      const given = runs.map((run, index) => unheld(bench, { ...run, seq: run.seq - (index % 3 === 0 ? 1 : 0) }))
      const answers = await bench.store.commit([...given.slice(0, 6), bench.transition(held), ...given.slice(6)])
      assert.deepEqual(
        answers.map((one) => (one.outcome === 'refused' ? one.reason : one.seq)),
        ['stale', 3, 3, 'stale', 3, 3, 2, 'stale', 3, 3, 'stale', 3, 3],
      )
    },
  },
  {
    name: 'a defect of a transition without a lease rejects the call',
    async run(bench) {
      const row = await waitingRun(bench)
      const defects = [
        { append: [] },
        { status: null },
        { status: 'pending' },
        { status: 'cancelled', append: [ending('cancelled')] },
        { parkIf: { inbox: 0 } },
        { takes: ['m'] },
        { undo: 'possible' },
      ] as const
      for (const defect of defects) {
        await assert.rejects(bench.store.commit([unheld(bench, row, defect)]), { code: 'BUG' })
      }
      assert.deepEqual(await bench.run(row.id), row)
    },
  },
  {
    name: 'IF-S2 a snapshot moves the base of a run, with a lease or without, and the next one moves it on',
    async run(bench) {
      const { id, seq } = await waitingRun(bench, { feed: true })
      await decide(bench, id, { append: [event(), snapshot], base: seq + 2 })
      assert.deepEqual([(await bench.run(id)).base, (await bench.run(id)).status], [seq + 2, 'waiting'])
      await decide(bench, id)
      assert.equal((await bench.run(id)).base, seq + 2, 'nothing else moves it')
      await bench.deliver(bench.message(id))
      const held = await bench.take(id)
      assert.equal(held.seq, seq + 3)
      await bench.commit(held, { append: [snapshot, event()], base: seq + 4 })
      const row = await bench.run(id)
      assert.deepEqual([row.base, row.seq], [seq + 4, seq + 5])
      const [loaded] = await bench.store.load([{ runId: id, after: row.base - 1, limit: 100 }])
      assert.deepEqual(
        loaded?.entries.map(({ kind }) => kind),
        ['snapshot', 'event'],
      )
      const checks = (await bench.store.doctor()).filter(({ name }) => name === 'base_is_input')
      assert.deepEqual(
        checks.map(({ offenders }) => offenders),
        [[]],
      )
      await expectSound(bench)
      const wrong = unheld(bench, await waitingRun(bench), { base: 3 })
      await assert.rejects(bench.store.commit([wrong]), { code: 'BUG' })
    },
  },
  {
    name: 'a run that parks again after transitions without a lease is where they have led it',
    async run(bench) {
      const { id } = await waitingRun(bench)
      await decide(bench, id)
      await bench.deliver(bench.message(id))
      const held = await bench.take(id)
      assert.equal(held.seq, 3)
      await bench.park(held, { append: [waiting()], parkIf: { inbox: 1 } })
      await decide(bench, id)
      assert.equal((await bench.run(id)).seq, 5)
      await expectSound(bench)
    },
  },
]
