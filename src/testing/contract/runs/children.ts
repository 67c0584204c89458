// Runs that are started by another one: its commit creates them or they do not exist, it is notified of their end or
// refusal, and they are cancelled with it if they are bound to it.

import assert from 'node:assert/strict'
import type { ChildStart } from '../../../core/model/transition.ts'
import { ids, succeeded, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { expectAsleep, expectWoken, messages, outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'

/** Transitions of a holder that a store refuses. */
const refusals: readonly {
  readonly name: string
  readonly refuse: (bench: ContractBench, held: Held, child: ChildStart) => Promise<unknown>
}[] = [
  {
    name: 'is stale',
    refuse: ({ transition, send }, held, child) =>
      send(transition({ ...held, seq: held.seq + 1 }, { outbound: outbound({ starts: [child] }) })),
  },
  {
    name: 'comes from one that does not hold the run',
    refuse: ({ transition, send }, held, child) =>
      send(
        transition(
          { ...held, lease: { ...held.lease, session: 'thief' } },
          { outbound: outbound({ starts: [child] }) },
        ),
      ),
  },
  {
    name: 'comes too late, because the run is being cancelled',
    async refuse({ transition, send, control }, held, child) {
      await control(held.runId, ask.cancel)
      const over = { append: [ending('succeeded')], status: 'succeeded' } as const
      return send(transition(held, { ...over, outbound: outbound({ starts: [child] }) }))
    },
  },
  {
    name: 'would let the run begin anew where its key is taken',
    async refuse({ transition, send, start }, held, child) {
      await start({ type: 'contract.other', key: 'mine' })
      const continues = { type: 'contract.other', version: 1, feed: false }
      const append = [{ kind: 'continued', name: null, meta: continues, data: '1' }] as const
      return send(transition(held, { append, continues, outbound: outbound({ starts: [child] }) }))
    },
  },
]

const refusedWithTheirParent = refusals.map(({ name, refuse }): ContractCase => ({
  name: `a transition that ${name} starts no run`,
  async run(bench) {
    const parent = await bench.hold({ key: 'mine' })
    const child = bench.child(parent.runId)
    const answer = (await refuse(bench, parent, child)) as { readonly outcome: string }
    assert.equal(answer.outcome, 'refused')
    assert.deepEqual(await bench.store.get([child.run.id]), [undefined])
    const { watched, inbox } = await bench.run(parent.runId)
    assert.deepEqual([watched, inbox], [false, 0])
  },
}))

/** The ids and keys that a child may need and not get. */
const takenThings = [
  { taken: 'key', has: { key: 'k' } },
  { taken: 'idempotency-key', has: { idempotencyKey: 'k' } },
] as const

const refusedChildren = takenThings.map(({ taken, has }): ContractCase => ({
  name: `a child whose ${taken} is taken is refused in the mailbox of its parent, and nothing else is lost`,
  async run(bench) {
    const other = await bench.start(has)
    const before = await bench.run(other.id)
    const parent = await bench.hold()
    const [first, refused, last] = [
      bench.child(parent.runId),
      bench.child(parent.runId, has),
      bench.child(parent.runId),
    ]
    const starts = [first, refused, last]
    const answer = await bench.park(parent, { append: [waiting()], outbound: outbound({ starts }) })
    assert.deepEqual([answer.seq, answer.inbox, answer.released], [2, 1, false], 'there is something to look at')
    const said = { taken, by: other.id }
    assert.deepEqual(await messages(bench, parent.runId), [['refused', refused.run.id, said]])
    const rows = await bench.store.get(starts.map(({ run }) => run.id))
    assert.deepEqual(
      rows.map((row) => row?.status),
      ['pending', undefined, 'pending'],
    )
    assert.deepEqual(await bench.run(other.id), before)
  },
}))

export const childCases: readonly ContractCase[] = [
  {
    name: 'a child begins to exist in the commit of its parent, as if it had been started, and can be claimed',
    async run(bench) {
      const parent = await bench.hold()
      const changes = { tags: ['a'], priority: 3, key: 'k', metadata: '{"a":1}' }
      const child = bench.child(parent.runId, changes)
      await bench.clock.advance(7)
      const answer = await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      assert.deepEqual([answer.released, answer.inbox], [true, 0])
      const row = await bench.run(child.run.id)
      const now = bench.clock.now()
      const { id, parentId, status, readiness, due, seq, tags, key, watched, createdAt, token } = row
      assert.deepEqual(
        { id, parentId, status, readiness, due, seq, tags, key, watched, createdAt, token },
        {
          id: child.run.id,
          parentId: parent.runId,
          status: 'pending',
          readiness: 'ready',
          due: now,
          seq: 1,
          tags: ['a'],
          key: 'k',
          watched: true,
          createdAt: now,
          token: 0,
        },
      )
      const { first, transition } = child.run
      assert.deepEqual(await bench.journal(child.run.id), [{ ...first, seq: 1, at: now, transition }])
      assert.equal((await bench.run(parent.runId)).watched, true, 'its end ends the child')
      assert.deepEqual(ids(await bench.store.find({ parentId: parent.runId }, { limit: 5 })), [child.run.id])
      await bench.take(child.run.id)
    },
  },
  {
    name: 'a parent that awaits its child is notified of its end, and woken',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId)
      await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      const held = await bench.take(child.run.id)
      await bench.commit(held, { append: [ending('failed')], status: 'failed' })
      await expectWoken(bench, parent.runId, 1)
      const said = { status: 'failed', seq: 2, data: '"failed"', reason: null }
      assert.deepEqual(await messages(bench, parent.runId), [['ended', child.run.id, said]])
    },
  },
  {
    name: 'a child that is neither awaited nor bound notifies no run of its end',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId, {}, { awaited: false, onParentEnd: 'abandon' })
      await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      assert.deepEqual(
        [(await bench.run(parent.runId)).watched, (await bench.run(child.run.id)).watched],
        [false, false],
      )
      const held = await bench.take(child.run.id)
      await bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' })
      await expectAsleep(bench, parent.runId)
    },
  },
  {
    name: 'a child that is due later is not claimed before that',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId, { due: { at: null, afterMs: 100 } })
      await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      await bench.clock.advance(99)
      assert.deepEqual((await bench.claim()).runs, [])
      await bench.clock.advance(1)
      await bench.take(child.run.id)
    },
  },
  {
    name: 'a child may begin with messages',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId)
      const run = { ...child.run, messages: [bench.message(child.run.id)] }
      await bench.park(parent, { append: [waiting()], outbound: outbound({ starts: [{ ...child, run }] }) })
      assert.equal((await bench.mailbox(run.id)).length, 1)
      assert.equal((await bench.run(run.id)).inbox, 1)
    },
  },
  ...refusedChildren,
  {
    name: 'a child whose id is taken is refused, and the run that has it stays as it is',
    async run(bench) {
      const other = await bench.start()
      const parent = await bench.hold()
      const child = bench.child(parent.runId, { id: other.id, shard: other.shard })
      await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      const said = { taken: 'id', by: other.id }
      assert.deepEqual(await messages(bench, parent.runId), [['refused', other.id, said]])
      assert.deepEqual(await bench.run(other.id), other)
    },
  },
  {
    name: 'of two children with one key the second is refused',
    async run(bench) {
      const parent = await bench.hold()
      const starts = [bench.child(parent.runId, { key: 'k' }), bench.child(parent.runId, { key: 'k' })] as const
      await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts }) })
      const said = { taken: 'key', by: starts[0].run.id }
      assert.deepEqual(await messages(bench, parent.runId), [['refused', starts[1].run.id, said]])
    },
  },
  {
    name: 'two parents that want children with one key in one batch: one gets it, the other learns which run has it',
    async run(bench) {
      const parents = [await bench.hold(), await bench.hold()]
      const wanted = parents.map(({ runId }) => bench.child(runId, { key: 'k' }))
      const answers = await bench.store.commit(
        parents.map((parent, index) =>
          bench.transition(parent, { outbound: outbound({ starts: wanted.slice(index, index + 1) }) }),
        ),
      )
      for (const answer of answers) succeeded(answer)
      const [winner, ...others] = ids(await bench.store.find({ key: 'k' }, { limit: 5 }))
      assert.deepEqual(others, [])
      const loser = wanted.findIndex(({ run }) => run.id !== winner)
      const said = { taken: 'key', by: winner }
      const expected = ['refused', wanted[loser]?.run.id, said]
      assert.deepEqual(await messages(bench, parents[loser]?.runId ?? ''), [expected])
      assert.deepEqual(await messages(bench, parents[1 - loser]?.runId ?? ''), [])
    },
  },
  ...refusedWithTheirParent,
  {
    name: 'a commit that started children and is sent again starts no run and refuses none',
    async run(bench) {
      await bench.start({ key: 'taken' })
      const parent = await bench.hold()
      const starts = [bench.child(parent.runId), bench.child(parent.runId, { key: 'taken' })] as const
      const given = bench.transition(parent, { append: [waiting()], outbound: outbound({ starts }) })
      const first = succeeded(await bench.send(given))
      assert.deepEqual(await bench.send(given), first)
      assert.equal((await bench.mailbox(parent.runId)).length, 1)
      await bench.control(starts[0].run.id, ask.cancelNow)
      await bench.send(given)
      assert.equal((await bench.run(parent.runId)).inbox, 2, 'one refusal and one end')
      assert.equal((await bench.run(starts[0].run.id)).status, 'cancelled')
    },
  },
]
