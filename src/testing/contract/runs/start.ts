// Starting a run: exactly once, even if answers are lost.

import assert from 'node:assert/strict'
import { atOnce, ids } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { inMs, started, step } from '../drafts.ts'

export const startCases: readonly ContractCase[] = [
  {
    name: 'a started run is stored with its input as entry 1',
    async run({ store, clock, newRun, run, journal }) {
      const given = newRun({
        type: 'shop.checkout',
        version: 7,
        feed: true,
        priority: 3,
        first: started('{"total":99}'),
      })
      const [answer] = await store.start([given])
      assert.equal(answer?.created, true)
      const now = clock.now()
      const expected = {
        id: given.id,
        shard: given.shard,
        type: 'shop.checkout',
        version: 7,
        key: null,
        keyScope: 'workflow',
        idempotencyKey: null,
        parentId: null,
        tags: [],
        metadata: null,
        feed: true,
        keyId: null,
        status: 'pending',
        readiness: 'ready',
        priority: 3,
        due: now,
        seq: 1,
        base: 1,
        inbox: 0,
        wakeNames: null,
        watched: false,
        controlRequest: null,
        undo: 'none',
        crashes: 0,
        token: 0,
        session: null,
        deadline: null,
        timeoutAt: null,
        expiresAt: null,
        createdAt: now,
        updatedAt: now,
        endedAt: null,
        deletedAt: null,
        deleteReason: null,
      }
      assert.deepEqual(answer?.run, expected)
      assert.deepEqual(await run(given.id), expected)
      assert.deepEqual(await journal(given.id), [{ ...given.first, seq: 1, at: now, transition: given.transition }])
    },
  },
  {
    name: 'many starts are answered one by one, in order',
    async run({ store, newRun }) {
      assert.deepEqual(await store.start([]), [])
      const given = Array.from({ length: 50 }, (_, index) => newRun({ priority: index % 3 })).toReversed()
      const answers = await store.start(given)
      assert.deepEqual(
        answers.map(({ created, run }) => [created, run?.id, run?.priority]),
        given.map(({ id, priority }) => [true, id, priority]),
      )
    },
  },
  {
    name: 'a start that is repeated because its answer was lost is one run and says created again',
    async run({ store, newRun, journal, claim }) {
      const given = newRun()
      const first = await store.start([given])
      const second = await store.start([given])
      assert.deepEqual(second, first)
      assert.equal((await journal(given.id)).length, 1)
      assert.deepEqual(ids((await claim()).runs), [given.id])
    },
  },
  {
    name: 'a start that is repeated after the run moved on takes nothing back',
    async run({ store, newRun, take, commit, run, journal }) {
      const given = newRun()
      await store.start([given])
      const held = await take(given.id)
      await commit(held, { append: [step()] })
      const [again] = await store.start([given])
      assert.equal(again?.created, true)
      assert.equal(again.run.status, 'running')
      assert.equal(again.run.seq, 2)
      assert.deepEqual(await run(given.id), again.run)
      assert.equal((await journal(given.id)).length, 2)
    },
  },
  {
    name: 'another start of a taken id is refused and changes nothing',
    async run({ store, newRun, start, unique, run, journal }) {
      const before = await start()
      const entries = await journal(before.id)
      const lease = { session: unique('session'), token: 1 }
      const [answer] = await store.start([newRun({ id: before.id, type: 'other', priority: 9, lease })])
      assert.deepEqual(answer, { created: false, taken: 'id', run: before })
      assert.deepEqual(await run(before.id), before)
      assert.deepEqual(await journal(before.id), entries)
    },
  },
  {
    name: 'an id that comes twice in one batch is one run, and the others of the batch are unharmed',
    near: true,
    async run({ store, newRun, journal, claim }) {
      const [one, two] = [newRun(), newRun()]
      const answers = await store.start([one, two, { ...one }, newRun({ id: one.id })])
      assert.deepEqual(
        answers.map(({ created, taken, run }) => [created, taken, run?.id]),
        [
          [true, null, one.id],
          [true, null, two.id],
          [true, null, one.id],
          [false, 'id', one.id],
        ],
      )
      assert.equal((await journal(one.id)).length, 1)
      assert.deepEqual(ids((await claim()).runs), [one.id, two.id])
    },
  },
  {
    name: 'of many that start one id at once, one creates the run',
    async run({ store, newRun, journal }) {
      const { id } = newRun()
      const rivals = Array.from({ length: 10 }, () => newRun({ id }))
      const answers = await atOnce(
        rivals.length,
        async (index) => (await store.start(rivals.slice(index, index + 1)))[0],
      )
      const winners = rivals.filter((_, index) => answers[index]?.created)
      assert.equal(winners.length, 1, 'exactly one is answered that it created the run')
      const entries = await journal(id)
      assert.deepEqual(
        entries.map(({ transition }) => transition),
        winners.map(({ transition }) => transition),
      )
    },
  },
  {
    name: 'an eager start is leased to its caller in the same insert, and no other session can claim it',
    async run({ store, newRun, claim }) {
      const [answer] = await store.start([newRun({ lease: { session: 'me', token: 1 } })])
      assert.equal(answer?.created, true)
      const { status, readiness, session, token, crashes, due, seq } = answer.run
      assert.deepEqual(
        { status, readiness, session, token, crashes, due, seq },
        { status: 'running', readiness: 'leased', session: 'me', token: 1, crashes: 0, due: null, seq: 1 },
      )
      assert.deepEqual((await claim()).runs, [])
    },
  },
  {
    name: 'an eager start that is repeated still finds the lease with its caller',
    async run({ store, newRun, commit }) {
      const lease = { session: 'me', token: 1 }
      const given = newRun({ lease })
      const first = await store.start([given])
      assert.deepEqual(await store.start([given]), first)
      await commit({ runId: given.id, lease, seq: 1 })
    },
  },
  {
    name: 'PQ-T1 a delayed run is never claimed early, and is claimed when its delay has passed',
    async run({ clock, start, claim }) {
      const createdAt = clock.now()
      const delayed = await start({ due: inMs(60_000) })
      assert.equal(delayed.status, 'pending')
      assert.equal(delayed.readiness, 'timed')
      assert.equal(delayed.due, createdAt + 60_000)
      assert.deepEqual((await claim()).runs, [])
      await clock.advance(59_999)
      assert.deepEqual((await claim()).runs, [], 'one millisecond too early')
      await clock.advance(1)
      assert.deepEqual(ids((await claim()).runs), [delayed.id])
    },
  },
  {
    name: 'a delay of nothing is no delay',
    async run({ start, claim }) {
      const { id, readiness } = await start({ due: inMs(0) })
      assert.equal(readiness, 'ready')
      assert.deepEqual(ids((await claim()).runs), [id])
    },
  },
]
