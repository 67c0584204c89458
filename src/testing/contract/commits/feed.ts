// The feed: every entry of the runs that ask for it, and of no others, once, in an order that never changes and that keeps
// the order of each journal.

import assert from 'node:assert/strict'
import type { Change, Store } from '../../../store.ts'
import type { Draft } from '../../../core/model/entry.ts'
import { atOnce, eventually, spoil, succeeded, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, step } from '../drafts.ts'
import { expectSound, outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'

/** Follows the feed in pages until this many entries have come: it may lag behind. */
async function follow(store: Store, count: number, pageSize: number): Promise<readonly Change[]> {
  const seen: Change[] = []
  return eventually(async () => {
    for (;;) {
      const page = await store.changes(seen.length, pageSize)
      assert.ok(page.length <= pageSize, 'a page is not longer than its limit')
      seen.push(...page)
      if (page.length === 0) return seen.length >= count ? seen : null
    }
  }, `${count} entries are in the feed`)
}

function places(changes: readonly Change[]): readonly unknown[] {
  return changes.map(({ runId, entry }) => [runId, entry.seq])
}

/** Positions are 1, 2, 3 …, and the entries of each run come in order, without a gap. */
function assertInOrder(changes: readonly Change[]): void {
  const last = new Map<string, number>()
  for (const [index, { position, runId, entry }] of changes.entries()) {
    assert.equal(position, index + 1)
    assert.equal(entry.seq, (last.get(runId) ?? 0) + 1, `run ${runId} at position ${position}`)
    last.set(runId, entry.seq)
  }
}

export const feedCases: readonly ContractCase[] = [
  {
    name: 'the feed has every entry once, at dense positions from 1, in the order of the commits',
    async run({ store, clock, hold, commit, journal }) {
      assert.deepEqual(await store.changes(0, 10), [])
      const a = await hold({ feed: true })
      const b = await hold({ feed: true })
      await commit(b, { append: [step('b1'), step('b2')] })
      await clock.advance(5)
      await commit(a, { append: [ending('succeeded')], status: 'succeeded' })
      const changes = await follow(store, 5, 100)
      assertInOrder(changes)
      assert.deepEqual(places(changes), [
        [a.runId, 1],
        [b.runId, 1],
        [b.runId, 2],
        [b.runId, 3],
        [a.runId, 2],
      ])
      const [first, , , , last] = changes
      assert.deepEqual([first?.entry, last?.entry], await journal(a.runId))
    },
  },
  {
    name: 'the feed is read in pages that neither overlap nor leave anything out, and twice the same',
    async run({ store, hold, commit }) {
      for (let index = 0; index < 5; index += 1) await commit(await hold({ feed: true }), { append: [step(), step()] })
      const whole = structuredClone(await follow(store, 15, 100))
      assert.equal(whole.length, 15)
      assertInOrder(whole)
      assert.deepEqual(await follow(store, 15, 4), whole)
      assert.deepEqual(await store.changes(7, 3), whole.slice(7, 10))
      spoil(await store.changes(0, 100))
      assert.deepEqual(await store.changes(0, 100), whole, 'changing an answer changes nothing')
      assert.deepEqual(await store.changes(15, 3), [])
      assert.deepEqual(await store.changes(0, 0), [])
    },
  },
  {
    name: 'runs that are started together are in the feed in the order of their batch, for any keys',
    near: true,
    async run({ store, newRun }) {
      const names = [{ key: 'm' }, {}, { key: 'a' }, { idempotencyKey: 'z' }, { idempotencyKey: 'b' }, {}]
      const runs = names.map((has) => newRun({ ...has, feed: true }))
      if ((store.capabilities.shards ?? 1) > 1) return
      await store.start(runs)
      assert.deepEqual(
        places(await follow(store, runs.length, 100)),
        runs.map(({ id }) => [id, 1]),
      )
    },
  },
  {
    name: 'a run that starts others comes before them in the feed, with the entry that says so, and they come in its order',
    async run(bench) {
      const { store, hold, transition } = bench
      const parents = [await hold({ feed: true }), await hold({ feed: true })]
      const families = parents.map((parent) => ({
        parent,
        starts: [
          bench.child(parent.runId, { feed: true }),
          bench.child(parent.runId, { feed: true }, { awaited: false, onParentEnd: 'abandon' }),
        ],
      }))
      const transitions = families.map(({ parent, starts }) =>
        transition(parent, { append: [step('one'), step('two')], outbound: outbound({ starts }) }),
      )
      for (const answer of await store.commit(transitions)) succeeded(answer)
      const changes = await follow(store, 10, 100)
      assertInOrder(changes)
      for (const { parent, starts } of families) {
        const family = [parent.runId, ...starts.map(({ run }) => run.id)]
        const own = places(changes.filter(({ runId }) => family.includes(runId)))
        const expected = [
          [parent.runId, 1],
          [parent.runId, 2],
          [parent.runId, 3],
        ]
        assert.deepEqual(own.slice(0, 3), expected)
        const after = own.slice(3)
        const children = starts.map(({ run }) => [run.id, 1])
        const isSharded = (store.capabilities.shards ?? 1) > 1
        if (isSharded) assert.equal(after.length, 2, 'both are there, behind it')
        else assert.deepEqual(after, children)
      }
    },
  },
  {
    name: 'a child that was started before, by the same request, is in the feed once',
    async run(bench) {
      const parent = await bench.hold({ feed: true })
      const start = bench.child(parent.runId, { feed: true })
      await bench.store.start([start.run])
      await bench.commit(parent, { outbound: outbound({ starts: [start] }) })
      assert.deepEqual(places(await follow(bench.store, 3, 100)), [
        [parent.runId, 1],
        [start.run.id, 1],
        [parent.runId, 2],
      ])
      assert.deepEqual(await bench.store.changes(3, 10), [])
    },
  },
  {
    name: 'what was refused or repeated, claims and messages are not in the feed',
    async run({ store, start, take, transition, send, deliver, message }) {
      const { id } = await start({ feed: true })
      const held = await take(id)
      const given = transition(held)
      await send(given)
      await send(given)
      await send(transition(held))
      await deliver(message(id))
      await store.release([{ runId: id, ...held.lease }])
      assert.deepEqual(places(await follow(store, 2, 100)), [
        [id, 1],
        [id, 2],
      ])
    },
  },
  {
    name: 'a reader that follows the feed while many write misses nothing and sees no run backwards',
    async run({ store, newRun, transition }) {
      // Every third run is not in the feed.
      const made = Array.from({ length: 18 }, (_, index) =>
        newRun({ lease: { session: `s${index}`, token: 1 }, feed: index % 3 !== 2 }),
      )
      const following = follow(store, 12 * 6, 7)
      await atOnce(made.length, async (index) => {
        const given = made[index] as (typeof made)[number]
        await store.start([given])
        for (let seq = 1; seq <= 5; seq += 1) {
          const held = { runId: given.id, lease: given.lease ?? { session: '', token: 0 }, seq }
          const [answer] = await store.commit([transition(held)])
          succeeded(answer)
        }
      })
      const changes = await following
      assert.equal(changes.length, 12 * 6)
      assertInOrder(changes)
      assert.deepEqual(await follow(store, 12 * 6, 100), changes, 'the order stays what it was')
    },
  },
  {
    name: 'a run that does not ask for it is not in the feed, however it begins, goes on and ends, alone or beside one that does',
    async run(bench) {
      const { store, newRun, transition, commit, control, run } = bench
      const held = (runId: string): Held => ({ runId, lease: { session: 's', token: 1 }, seq: 1 })
      const made = [true, false, false, true].map((feed) => newRun({ feed, lease: { session: 's', token: 1 } }))
      await store.start(made)
      const [loud, quiet, alone, parent] = made.map(({ id }) => held(id)) as [Held, Held, Held, Held]
      await commit(alone)
      await commit(alone, { append: [step(), ending('succeeded')], status: 'succeeded' })
      for (const answer of await store.commit([transition(quiet), transition(loud)])) succeeded(answer)
      quiet.seq = 2
      // For each child, its own workflow decides.
      const born = { quiet: bench.child(parent.runId, { feed: false }), loud: bench.child(quiet.runId, { feed: true }) }
      await commit(parent, { outbound: outbound({ starts: [born.quiet] }) })
      await commit(quiet, { outbound: outbound({ starts: [born.loud] }) })
      await control(born.quiet.run.id, ask.cancelNow)
      await control(born.loud.run.id, ask.cancelNow)
      await control(quiet.runId, ask.cancelNow)
      await bench.chores()
      assert.deepEqual([(await run(quiet.runId)).feed, (await run(loud.runId)).feed], [false, true])
      const changes = await follow(store, 6, 100)
      assertInOrder(changes)
      const expected = [loud.runId, loud.runId, parent.runId, parent.runId, born.loud.run.id, born.loud.run.id]
      assert.deepEqual(changes.map(({ runId }) => runId).toSorted(), expected.toSorted())
      await expectSound(bench)
    },
  },
  {
    name: 'a run that goes on as another workflow is in the feed from its input on, up to it, or not at all',
    async run(bench) {
      const { store, selector, hold, commit, run } = bench
      const go = async (feed: boolean, next: boolean): Promise<readonly unknown[]> => {
        const position = (await store.changes(0, 1_000)).length
        const held = await hold({ feed })
        await commit(held)
        const continues = { ...selector, version: 2, feed: next }
        const input: Draft = { kind: 'continued', name: null, meta: { ...selector, version: 2 }, data: '1' }
        await commit(held, { append: [step(), input], continues })
        assert.equal((await run(held.runId)).feed, next)
        await commit(held, { feed: next })
        await commit(held, { feed: next, append: [ending('succeeded')], status: 'succeeded' })
        return (await store.changes(position, 100)).map(({ entry }) => entry.seq)
      }
      assert.deepEqual(await go(false, true), [4, 5, 6])
      assert.deepEqual(await go(true, false), [1, 2, 3, 4])
      assert.deepEqual(await go(true, true), [1, 2, 3, 4, 5, 6])
      assert.deepEqual(await go(false, false), [])
      await expectSound(bench)
    },
  },
  {
    name: 'the row of a run decides whether it is in the feed, and a holder that is wrong does not',
    async run(bench) {
      const { store, hold, commit, transition } = bench
      const loud = await hold({ feed: true })
      const quiet = await hold({ feed: false })
      for (const [held, feed] of [
        [loud, false],
        [quiet, true],
      ] as const) {
        await commit(held, { feed })
        await commit(held, { feed, append: [step(), step()] })
      }
      const both = (feed: boolean) => [transition(loud, { feed }), transition(quiet, { feed })]
      for (const feed of [false, true]) {
        for (const answer of await store.commit(both(feed))) succeeded(answer)
        loud.seq += 1
        quiet.seq += 1
      }
      await commit(loud, { feed: false, append: [ending('succeeded')], status: 'succeeded' })
      await commit(quiet, { feed: true, append: [ending('succeeded')], status: 'succeeded' })
      const changes = await follow(store, 7, 100)
      assertInOrder(changes)
      assert.deepEqual(
        places(changes),
        [1, 2, 3, 4, 5, 6, 7].map((seq) => [loud.runId, seq]),
      )
      await expectSound(bench)
    },
  },
]
