// Starts whose first input is decided already: the run, its first entries and all that follows begin to exist together or not
// at all, and no worker has to begin it.

import assert from 'node:assert/strict'
import { atOnce, ids, succeeded } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, inMs } from '../drafts.ts'
import { expectSound, expectWoken, outbound } from '../exchanges.ts'
import { decide, decidedRun, event, unheld } from '../unheld.ts'

export const decidedStartCases: readonly ContractCase[] = [
  {
    name: 'IF-E2 a run that is started with a decided input waits, and its journal goes on with what follows',
    async run(bench) {
      const given = decidedRun(
        bench,
        { append: [event('a'), event('b')] },
        { feed: true, timeoutMs: 900, expiresInMs: 9, lease: { session: 'nobody', token: 1 } },
      )
      const now = bench.clock.now()
      const [answer] = await bench.store.start([given])
      assert.deepEqual([answer?.created, answer?.taken], [true, null])
      const row = await bench.run(given.id)
      assert.deepEqual(answer?.run, row)
      const { status, readiness, due, seq, base, session, token, expiresAt, timeoutAt, updatedAt } = row
      assert.deepEqual(
        { status, readiness, due, seq, base, session, token, expiresAt, timeoutAt, updatedAt },
        {
          status: 'waiting',
          readiness: 'idle',
          due: null,
          seq: 3,
          base: 1,
          session: null,
          token: 0,
          expiresAt: null,
          timeoutAt: now + 900,
          updatedAt: now,
        },
      )
      assert.deepEqual(await bench.journal(given.id), [
        { ...given.first, seq: 1, at: now, transition: given.transition },
        { ...event('a'), seq: 2, at: now, transition: given.decided?.id },
        { ...event('b'), seq: 3, at: now, transition: null },
      ])
      assert.deepEqual((await bench.claim()).runs, [])
      await decide(bench, given.id)
      await expectSound(bench)
    },
  },
  {
    name: 'a start with a decided input says when the run is due',
    async run(bench) {
      const given = decidedRun(bench, { due: inMs(50) }, { due: inMs(7) })
      const [answer] = await bench.store.start([given])
      assert.deepEqual([answer?.run?.readiness, answer?.run?.due], ['timed', bench.clock.now() + 50])
      assert.deepEqual((await bench.claim()).runs, [])
      await bench.clock.advance(50)
      assert.deepEqual(ids((await bench.claim()).runs), [given.id])
    },
  },
  {
    name: 'a start with a decided input that is repeated is answered as before, also when the run has moved on',
    async run(bench) {
      const given = decidedRun(bench)
      const first = await bench.store.start([given])
      assert.deepEqual(await bench.store.start([given]), first)
      await decide(bench, given.id)
      const [again] = await bench.store.start([given])
      assert.deepEqual([again?.created, again?.run], [true, await bench.run(given.id)])
      assert.equal((await bench.journal(given.id)).length, 3)
    },
  },
  {
    name: 'IF-U3 of many that start one instance at once, one creates it, and nothing of the others is left',
    async run(bench) {
      const idempotencyKey = 'order:42'
      const rivals = Array.from({ length: 8 }, (_, index) =>
        decidedRun(bench, { append: [event(`by${index}`)] }, { idempotencyKey }),
      )
      const answers = await atOnce(
        rivals.length,
        async (index) => (await bench.store.start(rivals.slice(index, index + 1)))[0],
      )
      const created = answers.filter((one) => one?.created === true)
      assert.equal(created.length, 1)
      const winner = created[0]?.run?.id ?? ''
      for (const answer of answers) assert.equal(answer?.run?.id, winner)
      assert.equal((await bench.journal(winner)).length, 2)
      assert.equal(await bench.store.count({}, 100), 1)
    },
  },
  {
    name: 'IF-U3 an instance that a live one keeps from its key is not started, and nothing follows',
    async run(bench) {
      const first = decidedRun(bench, {}, { key: 'k' })
      await bench.store.start([first])
      const second = decidedRun(bench, {}, { key: 'k' })
      const child = bench.child(second.id)
      const decided = unheld(bench, { id: second.id, seq: 1 }, { outbound: outbound({ starts: [child] }) })
      const [answer] = await bench.store.start([{ ...second, decided }])
      assert.deepEqual([answer?.created, answer?.taken, answer?.run?.id], [false, 'key', first.id])
      assert.deepEqual(await bench.store.get([second.id, child.run.id]), [undefined, undefined])
    },
  },
  {
    name: 'IF-U3 an instance that is over with its first input leaves its key free and its idempotency key taken',
    async run(bench) {
      const over = { append: [event(), ending('succeeded')], status: 'succeeded' } as const
      const given = decidedRun(bench, over, { key: 'k', idempotencyKey: 'order:1' })
      const [answer] = await bench.store.start([given])
      const now = bench.clock.now()
      const { status, readiness, seq, endedAt } = answer?.run ?? {}
      assert.deepEqual([answer?.created, status, readiness, seq, endedAt], [true, 'succeeded', 'idle', 3, now])
      const [again] = await bench.store.start([decidedRun(bench, {}, { idempotencyKey: 'order:1' })])
      assert.deepEqual([again?.created, again?.taken], [false, 'idempotency-key'])
      await bench.start({ key: 'k' })
      await expectSound(bench)
    },
  },
  {
    name: 'IF-E2 children of a first input begin to exist with the run',
    async run(bench) {
      const run = bench.newRun({ feed: true })
      const children = [bench.child(run.id, { feed: true }), bench.child(run.id)]
      const decided = unheld(bench, { id: run.id, seq: 1 }, { outbound: outbound({ starts: children }) })
      const given = { ...run, decided }
      const first = await bench.store.start([given])
      assert.deepEqual(await bench.store.start([given]), first)
      const [row] = first
      assert.deepEqual([row?.created, row?.run?.seq, row?.run?.watched], [true, 2, true])
      for (const child of children) assert.equal((await bench.run(child.run.id)).status, 'pending')
      const { runs } = await bench.claim({ session: 's' })
      assert.equal(runs.length, 2)
      const [claimed] = runs
      assert.ok(claimed)
      const held = { runId: claimed.id, lease: { session: 's', token: claimed.token }, seq: 1 }
      await bench.commit(held, { append: [ending('failed')], status: 'failed' })
      await expectWoken(bench, run.id, 1)
      await expectSound(bench)
    },
  },
  {
    name: 'a message that comes with a decided start wakes the run',
    async run(bench) {
      const given = decidedRun(bench, { due: inMs(5_000) })
      const messages = [bench.message(given.id)]
      const [answer] = await bench.store.start([{ ...given, messages }])
      assert.deepEqual(answer?.run, await bench.run(given.id))
      await expectWoken(bench, given.id, 1)
    },
  },
  {
    name: 'decided starts, plain starts and repeated ones are answered one by one in one batch',
    async run(bench) {
      const [a, b, c] = [decidedRun(bench), bench.newRun(), decidedRun(bench)]
      const over = decidedRun(bench, { append: [ending('failed')], status: 'failed' })
      await bench.store.start([c])
      const answers = await bench.store.start([a, b, c, over, a])
      assert.deepEqual(
        answers.map(({ created, run }) => [created, run?.id, run?.status, run?.seq]),
        [
          [true, a.id, 'waiting', 2],
          [true, b.id, 'pending', 1],
          [true, c.id, 'waiting', 2],
          [true, over.id, 'failed', 2],
          [true, a.id, 'waiting', 2],
        ],
      )
      succeeded(await bench.send(unheld(bench, { id: a.id, seq: 2 })))
    },
  },
]
