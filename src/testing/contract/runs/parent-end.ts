// Children when their parent ends: those that are bound to it are cancelled in the same commit.

import assert from 'node:assert/strict'
import type { ChildStart } from '../../../core/model/transition.ts'
import { draftOf, ids, succeeded, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import { outbound } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { kindsOf, controlled } from '../requests.ts'

/** A held run that has started these children, and the children. */
async function parentOf(bench: ContractBench, starts: (parentId: string) => readonly ChildStart[]): Promise<Held> {
  const parent = await bench.hold()
  await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: starts(parent.runId) }) })
  return parent
}

function reasonFor(parentId: string): string {
  return `Its parent ${parentId} has ended.`
}

/** A run that was started to be cancelled with its parent, and was. */
async function expectCancelling(
  { run, journal, clock }: ContractBench,
  childId: string,
  parentId: string,
): Promise<void> {
  const { status, readiness, due, undo, session } = await run(childId)
  const expected = ['cancelling', 'ready', clock.now(), 'due', null]
  assert.deepEqual([status, readiness, due, undo, session], expected)
  const last = (await journal(childId)).at(-1)
  const meta = { reason: reasonFor(parentId) }
  assert.deepEqual(last && draftOf(last), { kind: 'cancelling', name: null, meta, data: null })
}

const cancelledByEveryEnd = endPaths.map((way): ContractCase => ({
  name: `a child that is bound to its parent is cancelled when that one ${way.name}, and one that is not goes on`,
  async run(bench) {
    const parent = await bench.hold(way.changes)
    const bound = bench.child(parent.runId, {}, { awaited: false })
    const free = bench.child(parent.runId, {}, { onParentEnd: 'abandon' })
    await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: [bound, free] }) })
    const before = await bench.run(free.run.id)
    await way.end(bench, parent)
    assert.equal((await bench.run(parent.runId)).status, way.status)
    await expectCancelling(bench, bound.run.id, parent.runId)
    assert.deepEqual(await bench.run(free.run.id), before)
    const { runs } = await bench.claim()
    assert.deepEqual(ids(runs).toSorted(), [bound.run.id, free.run.id].toSorted())
  },
}))

/** The state of a bound child when its parent ends, and its state afterwards. */
const situations: readonly {
  readonly name: string
  readonly bring: (bench: ContractBench, child: string) => Promise<unknown>
  readonly becomes: 'cancelling' | 'requested' | 'unchanged'
}[] = [
  { name: 'is pending', bring: async () => undefined, becomes: 'cancelling' },
  { name: 'is being performed', bring: (bench, child) => bench.take(child), becomes: 'requested' },
  {
    name: 'waits',
    bring: async (bench, child) => bench.park(await bench.take(child)),
    becomes: 'cancelling',
  },
  {
    name: 'waits for a time',
    bring: async (bench, child) => bench.park(await bench.take(child), { due: { at: null, afterMs: 50 } }),
    becomes: 'cancelling',
  },
  { name: 'is paused', bring: (bench, child) => bench.control(child, ask.pause), becomes: 'cancelling' },
  {
    name: 'is being cancelled already',
    bring: async (bench, child) => {
      await bench.take(child)
      return bench.control(child, ask.cancel)
    },
    becomes: 'unchanged',
  },
  {
    name: 'is over',
    bring: async (bench, child) =>
      bench.commit(await bench.take(child), { append: [ending('failed')], status: 'failed' }),
    becomes: 'unchanged',
  },
  { name: 'was removed', bring: (bench, child) => bench.control(child, ask.remove), becomes: 'unchanged' },
]

const whateverTheChildDoes = situations.map(({ name, bring, becomes }): ContractCase => ({
  name: `a parent ends while its child ${name}: ${becomes === 'unchanged' ? 'nothing happens to it' : 'it is cancelled'}`,
  async run(bench) {
    const parent = await bench.hold()
    const child = bench.child(parent.runId, {}, { awaited: false })
    await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
    await bring(bench, child.run.id)
    const before = await bench.run(child.run.id)
    await bench.clock.advance(2)
    await bench.commit(parent, { append: [ending('succeeded')], status: 'succeeded' })
    if (becomes === 'cancelling') return expectCancelling(bench, child.run.id, parent.runId)
    const controlRequest = { kind: 'cancel', reason: reasonFor(parent.runId), at: bench.clock.now() }
    const expected =
      becomes === 'requested' ? { ...before, status: 'cancelling', controlRequest, timeoutAt: null } : before
    assert.deepEqual(await bench.run(child.run.id), expected)
  },
}))

export const parentEndCases: readonly ContractCase[] = [
  ...cancelledByEveryEnd,
  ...whateverTheChildDoes,
  {
    name: 'a child that is started by the commit that ends its parent is cancelled by it',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId, {}, { awaited: false })
      const free = bench.child(parent.runId, {}, { awaited: false, onParentEnd: 'abandon' })
      const over = { append: [ending('succeeded')], status: 'succeeded', emptyAt: 0 } as const
      await bench.commit(parent, { ...over, outbound: outbound({ starts: [child, free] }) })
      await expectCancelling(bench, child.run.id, parent.runId)
      assert.equal((await bench.run(free.run.id)).status, 'pending')
    },
  },
  {
    name: 'grandchildren are cancelled by and by: each when its own parent has ended',
    async run(bench) {
      const parent = await bench.hold()
      const child = bench.child(parent.runId)
      await bench.commit(parent, { append: [waiting()], outbound: outbound({ starts: [child] }) })
      const held = await bench.take(child.run.id)
      const grandchild = bench.child(held.runId)
      await bench.park(held, { append: [waiting()], outbound: outbound({ starts: [grandchild] }) })
      await bench.commit(parent, { append: [ending('failed')], status: 'failed' })
      assert.equal((await bench.run(child.run.id)).status, 'cancelling')
      assert.equal((await bench.run(grandchild.run.id)).status, 'pending')
      const { runs } = await bench.claim({ session: 'undoer' })
      const claimed = runs.find(({ id }) => id === child.run.id)
      assert.ok(claimed, 'a worker may perform its undo work')
      const undoer = { runId: claimed.id, lease: { session: 'undoer', token: claimed.token }, seq: claimed.seq }
      await bench.commit(undoer, { append: [ending('cancelled')], status: 'cancelled' })
      const { status, controlRequest } = await bench.run(grandchild.run.id)
      assert.deepEqual([status, controlRequest?.kind], ['cancelling', 'cancel'], 'a worker had claimed it')
    },
  },
  {
    name: 'many children are started by one commit, and cancelled by one end',
    async run(bench) {
      const parent = await parentOf(bench, (id) => Array.from({ length: 120 }, () => bench.child(id)))
      assert.equal(await bench.store.count({ parentId: parent.runId, statuses: ['pending'] }, 1_000), 120)
      await bench.commit(parent, { append: [ending('succeeded')], status: 'succeeded' })
      await bench.chores()
      assert.equal(await bench.store.count({ parentId: parent.runId, statuses: ['cancelling'] }, 1_000), 120)
    },
  },
  {
    name: 'a parent and its child that end in one batch, in either order, end',
    async run(bench) {
      for (const isParentFirst of [true, false]) {
        const child = bench.newRun()
        const parent = await parentOf(bench, (id) => [bench.child(id, { ...child, parentId: id })])
        const held = await bench.take(child.id)
        const over = { append: [ending('succeeded')], status: 'succeeded' } as const
        const pair = [bench.transition(parent, over), bench.transition(held, over)]
        const answers = await bench.store.commit(isParentFirst ? pair : pair.toReversed())
        const [ofParent, ofChild] = isParentFirst ? answers : answers.toReversed()
        assert.equal(succeeded(ofParent).released, true)
        const { status } = await bench.run(child.id)
        // In either order: a child that is being cancelled cannot succeed.
        assert.equal(status, ofChild?.outcome === 'committed' ? 'succeeded' : 'cancelling')
        controlled(await bench.control(parent.runId, ask.remove), 'done')
        if (status === 'cancelling') await bench.control(child.id, ask.cancelNow)
      }
    },
  },
  {
    name: 'a child that ends while its parent does, at once, leaves neither behind',
    async run(bench) {
      for (let round = 0; round < 10; round += 1) {
        const child = bench.newRun()
        const parent = await parentOf(bench, (id) => [bench.child(id, { ...child, parentId: id })])
        const held = await bench.take(child.id)
        const over = { append: [ending('succeeded')], status: 'succeeded' } as const
        const ends = [bench.transition(parent, over), bench.transition(held, over)]
        const [ofParent, ofChild] = await Promise.all(ends.map((one) => bench.send(one)))
        assert.equal(ofParent?.outcome, 'committed')
        const kinds = await kindsOf(bench, child.id)
        if (ofChild?.outcome === 'committed') assert.deepEqual(kinds, ['started', 'succeeded'])
        else assert.equal((await bench.run(child.id)).status, 'cancelling')
        await bench.control(child.id, ask.cancelNow)
      }
    },
  },
]
