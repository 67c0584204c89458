// Keys: one live run for each business key in its scope, one run for each idempotency key, however many starts race.

import assert from 'node:assert/strict'
import { keyScopes } from '../../../core/model/key.ts'
import type { NewRun, Started } from '../../../store.ts'
import { atOnce, ids, type ContractBench } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending } from '../drafts.ts'
import { expectSound } from '../exchanges.ts'
import { cancel, cancelNow, failedRun, pause, remove, resume, retry, controlled } from '../requests.ts'

async function startOne({ store }: ContractBench, run: NewRun): Promise<Started> {
  const [answer] = await store.start([run])
  assert.ok(answer !== undefined && answer.taken !== 'busy')
  return answer
}

/** Makes this many starts at once, and checks that they create one run, which all of them return. */
async function race(bench: ContractBench, changes: Partial<NewRun>, taken: Started['taken']): Promise<void> {
  const rivals = Array.from({ length: 50 }, () => bench.newRun(changes))
  const answers = await atOnce(rivals.length, (index) => startOne(bench, rivals[index] as NewRun))
  const [winner] = answers.filter(({ created }) => created)
  assert.equal(answers.filter(({ created }) => created).length, 1, 'exactly one is answered that it created the run')
  for (const { created, taken: by, run } of answers) {
    assert.deepEqual([run.id, by], [winner?.run.id, created ? null : taken])
  }
  assert.equal((await bench.store.find({}, { limit: 100 })).length, 1)
}

export const keyCases: readonly ContractCase[] = [
  {
    name: 'what a start says of a run is stored with it: keys, parent, tags, metadata',
    async run(bench) {
      const named = {
        key: 'orderid::42',
        keyScope: 'global',
        idempotencyKey: 'request 7',
        parentId: bench.newRun().id,
        tags: ['eu', "o'clock", '日本'],
        metadata: '{"by":"Ada"}',
      } as const
      const { run } = await startOne(bench, bench.newRun({ ...named, timeoutMs: 9, expiresInMs: 8, priority: 2 }))
      const { key, keyScope, idempotencyKey, parentId, tags, metadata } = run
      assert.deepEqual({ key, keyScope, idempotencyKey, parentId, tags, metadata }, named)
      assert.deepEqual(await bench.run(run.id), run)
      const leased = await bench.hold({ key: 'other', leaseMs: 5 })
      assert.deepEqual((await bench.run(leased.runId)).key, 'other')
    },
  },
  {
    name: 'HE-U3 of 50 starts at once with one key, one creates a run, and the others are answered with it',
    run: (bench) => race(bench, { key: 'orderid::42' }, 'key'),
  },
  {
    name: 'SW-U1 HE-U3 of 50 starts at once with one idempotency key, one creates a run, and the others are answered with it',
    run: (bench) => race(bench, { idempotencyKey: 'once' }, 'idempotency-key'),
  },
  {
    name: 'SW-U2 a key that is taken creates nothing and answers with the run that has it, as it is now',
    async run(bench) {
      const held = await bench.hold({ key: 'k' })
      await bench.commit(held)
      const before = await bench.run(held.runId)
      const late = bench.newRun({ key: 'k', lease: { session: 'me', token: 1 } })
      assert.deepEqual(await startOne(bench, late), { created: false, taken: 'key', run: before })
      assert.deepEqual(await bench.store.get([late.id]), [undefined])
      assert.deepEqual(await bench.journal(late.id), [])
      assert.deepEqual(await bench.run(held.runId), before)
    },
  },
  {
    name: 'within one batch the first with a key is created, and the second is answered with it',
    async run(bench) {
      const { store, newRun, claim } = bench
      const batch = [
        newRun({ key: 'k' }),
        newRun({ key: 'k' }),
        newRun({ idempotencyKey: 'i' }),
        newRun({ idempotencyKey: 'i', key: 'l' }),
        newRun({ key: 'l' }),
        newRun(),
      ]
      const answers = await store.start(batch)
      const at = (index: number): string | undefined => batch[index]?.id
      assert.deepEqual(
        answers.map(({ created, taken, run }) => [created, taken, run?.id]),
        [
          [true, null, at(0)],
          [false, 'key', at(0)],
          [true, null, at(2)],
          [false, 'idempotency-key', at(2)],
          [true, null, at(4)],
          [true, null, at(5)],
        ],
      )
      const claimed = ids((await claim()).runs)
      assert.deepEqual(new Set(claimed), new Set([at(0), at(2), at(4), at(5)]))
      assert.equal(claimed.length, 4)
    },
  },
  {
    name: 'what is in the way is reported in order: the id, then the idempotency key, then the key',
    async run(bench) {
      const { newRun, start } = bench
      const one = await start({ idempotencyKey: 'i' })
      const two = await start({ key: 'k' })
      const three = await start()
      const all = { idempotencyKey: 'i', key: 'k' }
      const second = [await startOne(bench, newRun({ ...all, id: three.id })), await startOne(bench, newRun(all))]
      assert.deepEqual(
        second.map(({ taken, run }) => [taken, run.id]),
        [
          ['id', three.id],
          ['idempotency-key', one.id],
        ],
      )
      const { taken, run } = await startOne(bench, newRun({ ...all, idempotencyKey: 'other' }))
      assert.deepEqual([taken, run.id], ['key', two.id])
    },
  },
  {
    name: 'a start with keys that is repeated because its answer was lost says created again',
    async run(bench) {
      const given = bench.newRun({ key: 'k', idempotencyKey: 'i', tags: ['t'] })
      const first = await startOne(bench, given)
      assert.equal(first.created, true)
      assert.deepEqual(await startOne(bench, given), first)
      assert.equal((await bench.journal(given.id)).length, 1)
    },
  },
  {
    name: 'HE-U2 each scope says which runs are in the way of each other',
    async run(bench) {
      const { newRun } = bench
      const others = [
        { type: 'a', version: 1 },
        { type: 'a', version: 2 },
        { type: 'b', version: 1 },
      ]
      const expected = {
        workflow: ['key', 'key', null],
        version: ['key', null, null],
        global: ['key', 'key', 'key'],
        none: [null, null, null],
      }
      for (const keyScope of keyScopes) {
        const key = `key of ${keyScope}`
        await startOne(bench, newRun({ type: 'a', version: 1, key, keyScope }))
        const taken: unknown[] = []
        for (const other of others) taken.push((await startOne(bench, newRun({ ...other, key, keyScope }))).taken)
        assert.deepEqual(taken, expected[keyScope], keyScope)
      }
    },
  },
  {
    name: 'keys of different scopes, and of types whose names run into them, are not in the way of each other',
    async run(bench) {
      const { newRun } = bench
      const all = [
        newRun({ key: 'k' }),
        newRun({ key: 'k', keyScope: 'version' }),
        newRun({ key: 'k', keyScope: 'global' }),
        newRun({ key: 'K' }),
        newRun({ key: 'k ' }),
        newRun({ type: 'a', key: 'b c' }),
        newRun({ type: 'a.b', key: 'c' }),
        newRun({ type: 'a', version: 1, key: '1 k', keyScope: 'version' }),
        newRun({ type: 'a', version: 11, key: 'k', keyScope: 'version' }),
        newRun({ key: "'; drop table runs; --" }),
      ]
      const answers = await bench.store.start(all)
      assert.deepEqual(new Set(answers.map(({ taken }) => taken)), new Set([null]))
    },
  },
  {
    name: 'HE-U2 a key is taken while its run lives, whatever it does, and free when it is over',
    async run(bench) {
      const { newRun, hold, commit, park, control } = bench
      const held = await hold({ key: 'k' })
      const taken = async (): Promise<unknown> => (await startOne(bench, newRun({ key: 'k' }))).run.id
      await park(held)
      assert.equal(await taken(), held.runId)
      controlled(await control(held.runId, pause), 'done')
      assert.equal(await taken(), held.runId)
      controlled(await control(held.runId, resume), 'done')
      assert.equal(await taken(), held.runId)
      const again = await bench.take(held.runId)
      await commit(again, { append: [ending('succeeded')], status: 'succeeded' })
      const next = await startOne(bench, newRun({ key: 'k' }))
      assert.equal(next.created, true)
      controlled(await control(next.run.id, cancelNow), 'done')
      assert.equal((await startOne(bench, newRun({ key: 'k' }))).created, true)
    },
  },
  {
    name: 'a key is free when a rescue has ended its run',
    async run(bench) {
      await bench.start({ key: 'k', expiresInMs: 5 })
      await bench.clock.advance(5)
      assert.equal((await bench.rescue()).ended.length, 1)
      assert.equal((await startOne(bench, bench.newRun({ key: 'k' }))).created, true)
    },
  },
  {
    name: 'a key is free when the holder of its run has given that back to be cancelled',
    async run(bench) {
      const held = await bench.hold({ key: 'k' })
      await bench.control(held.runId, cancel)
      await bench.store.release([{ runId: held.runId, ...held.lease }])
      assert.equal((await bench.run(held.runId)).status, 'cancelled')
      assert.equal((await startOne(bench, bench.newRun({ key: 'k' }))).created, true)
    },
  },
  {
    name: 'a start that is refused for one of its keys keeps neither, and one whose run is over takes none again',
    async run(bench) {
      const { newRun, hold, commit } = bench
      const held = await hold({ key: 'k', idempotencyKey: 'i' })
      const byKey = await startOne(bench, newRun({ key: 'k', idempotencyKey: 'j' }))
      assert.deepEqual([byKey.taken, byKey.run.id], ['key', held.runId])
      const bySame = await startOne(bench, newRun({ key: 'l', idempotencyKey: 'i' }))
      assert.deepEqual([bySame.taken, bySame.run.id], ['idempotency-key', held.runId])
      const both = newRun({ key: 'l', idempotencyKey: 'j' })
      assert.equal((await startOne(bench, both)).created, true)
      await commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      const twin = await startOne(bench, newRun({ id: held.runId, key: 'k' }))
      assert.deepEqual([twin.taken, twin.run.id], ['id', held.runId])
      assert.equal((await startOne(bench, newRun({ key: 'k' }))).created, true)
      await expectSound(bench)
    },
  },
  {
    name: 'SW-U2 an idempotency key belongs to a type, and is taken also when its run is over',
    async run(bench) {
      const { newRun, hold, commit } = bench
      const held = await hold({ type: 'a', idempotencyKey: 'i' })
      await commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      const same = await startOne(bench, newRun({ type: 'a', version: 2, idempotencyKey: 'i' }))
      assert.deepEqual([same.taken, same.run.id], ['idempotency-key', held.runId])
      assert.equal((await startOne(bench, newRun({ type: 'b', idempotencyKey: 'i' }))).created, true)
    },
  },
  {
    name: 'SW-U1 SW-P1 removing a run frees both of its keys',
    async run(bench) {
      const { newRun, start, control } = bench
      const { id } = await start({ key: 'k', idempotencyKey: 'i' })
      controlled(await control(id, remove), 'done')
      const { created, run } = await startOne(bench, newRun({ key: 'k', idempotencyKey: 'i' }))
      assert.equal(created, true)
      const third = await startOne(bench, newRun({ key: 'k', idempotencyKey: 'i' }))
      assert.deepEqual([third.taken, third.run.id], ['idempotency-key', run.id])
    },
  },
  {
    name: 'a retry learns which run has the key of the run meanwhile, and takes the key again when that one is over',
    async run(bench) {
      const { start, control, run, newRun } = bench
      const id = await failedRun(bench, { key: 'k' })
      const rival = await start({ key: 'k' })
      const before = await run(id)
      assert.deepEqual(await control(id, retry), { outcome: 'key-taken', by: rival.id, run: before })
      assert.deepEqual(await run(id), before)
      controlled(await control(rival.id, cancelNow), 'done')
      controlled(await control(id, retry), 'done')
      const late = await startOne(bench, newRun({ key: 'k' }))
      assert.deepEqual([late.taken, late.run.id], ['key', id])
    },
  },
]
