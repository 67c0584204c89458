// One end settles a bounded number of waiting runs: runs that are notified, and children that are cancelled. The rest is
// left as a chore, which any worker continues, in pages; each waiting run is settled once, the longest waiting first.

import assert from 'node:assert/strict'
import { defaultPageLimits } from '../../../core/model/chore.ts'
import type { Ended } from '../../../core/model/message.ts'
import type { Run } from '../../../core/model/run.ts'
import { atOnce, type ContractBench, type Held } from '../bench.ts'
import type { ContractCase } from '../contract-case.ts'
import { ending, waiting } from '../drafts.ts'
import { endPaths } from '../end-paths.ts'
import { endOf, expectSound, outbound, saidBy } from '../exchanges.ts'
import * as ask from '../requests.ts'
import { controlled } from '../requests.ts'

const over = { append: [ending('succeeded')], status: 'succeeded' } as const
const failed = { append: [ending('failed')], status: 'failed' } as const

/** A type that the claims of a case do not select. */
const other = 'contract.other'

/** How many waiting runs an end settles in its commit. */
const first = defaultPageLimits.withEnd

/** Runs that wait for the ends of others, in the order in which they will be notified. */
async function watchers(
  bench: ContractBench,
  ends: readonly Pick<Held, 'runId'>[],
  count: number,
): Promise<readonly string[]> {
  const lease = { session: 'watcher', token: 1 }
  const watches = ends.map(({ runId }) => endOf(runId))
  const all: string[] = []
  for (let from = 0; from < count; from += 250) {
    const some = Array.from({ length: Math.min(250, count - from) }, () => bench.newRun({ lease, type: other }))
    const started = await bench.store.start(some)
    await bench.store.commit(
      started.map(({ run }) =>
        bench.transition(
          { runId: run?.id ?? '', lease, seq: run?.seq ?? 0 },
          { append: [waiting()], status: 'waiting', parkIf: { inbox: 0 }, outbound: outbound({ watches }) },
        ),
      ),
    )
    all.push(...some.map(({ id }) => id).toSorted())
    await bench.clock.advance(1)
  }
  return all
}

async function rows({ store }: ContractBench, ids: readonly string[]): Promise<readonly Run[]> {
  return (await store.get(ids)) as readonly Run[]
}

/** How often each was notified. */
async function inboxes(bench: ContractBench, ids: readonly string[]): Promise<readonly number[]> {
  return (await rows(bench, ids)).map(({ inbox }) => inbox)
}

/** Expects that the first ones have been notified once, and the others not at all. */
async function expectNotified(bench: ContractBench, ids: readonly string[], count: number): Promise<void> {
  const expected = ids.map((_, index) => (index < count ? 1 : 0))
  assert.deepEqual(await inboxes(bench, ids), expected)
  await expectSound(bench)
}

/** The message that a run got about the end that it waited for. */
async function endsSeenBy(bench: ContractBench, runId: string): Promise<readonly Ended['status'][]> {
  return (await bench.mailbox(runId)).map((message) => (saidBy(message) as Ended).status)
}

/**
 * Children that are cancelled with their parent, which is not notified of their ends; in the order in which they are asked
 * to stop.
 */
async function childrenOf(bench: ContractBench, parent: Held, count: number): Promise<readonly string[]> {
  const starts = Array.from({ length: count }, () => bench.child(parent.runId, { type: other }, { awaited: false }))
  await bench.commit(parent, { append: [waiting('children')], outbound: outbound({ starts }) })
  return starts.map(({ run }) => run.id).toSorted()
}

const notifiedAtEveryEnd = endPaths.map((way): ContractCase => ({
  name: `every run that waits for another when that one ${way.name} is notified, however many there are`,
  async run(bench) {
    const held = await bench.hold(way.changes)
    const waits = await watchers(bench, [held], first + 3)
    await way.end(bench, held)
    assert.equal((await bench.run(held.runId)).status, way.status)
    await expectNotified(bench, waits, first)
    await bench.chores()
    await expectNotified(bench, waits, first + 3)
    assert.deepEqual(await endsSeenBy(bench, waits.at(-1) as string), [way.status])
  },
}))

export const endPageCases: readonly ContractCase[] = [
  ...notifiedAtEveryEnd,
  {
    name: 'an end is reported in pages, to each run that waits once and to the longest waiting first, however many do the chores',
    slow: true,
    async run(bench) {
      const held = await bench.hold()
      const waits = await watchers(bench, [held], first + defaultPageLimits.watchers + 20)
      await bench.commit(held, over)
      await expectNotified(bench, waits, first)
      assert.equal((await bench.store.doChores()).worked, true)
      await expectNotified(bench, waits, first + defaultPageLimits.watchers)
      await atOnce(4, () => bench.chores())
      await expectNotified(bench, waits, waits.length)
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
    },
  },
  {
    name: 'more children than one commit may cancel are cancelled with their parent, each once',
    async run(bench) {
      const parent = await bench.hold()
      const children = await childrenOf(bench, parent, first + 20)
      await bench.commit(parent, over)
      const cancelled = async (): Promise<number> =>
        (await rows(bench, children)).filter(({ status }) => status === 'cancelling').length
      assert.equal(await cancelled(), first)
      await expectSound(bench)
      await atOnce(2, () => bench.chores())
      assert.equal(await cancelled(), children.length)
      for (const id of [children[0] as string, children.at(-1) as string]) {
        const kinds = (await bench.journal(id)).map(({ kind }) => kind)
        assert.deepEqual(kinds, ['started', 'cancelling'])
      }
      await expectSound(bench)
    },
  },
  {
    name: 'a child that waits for its parent is notified and cancelled, also if a page ends between the two',
    async run(bench) {
      const parent = await bench.hold()
      const waits = await watchers(bench, [parent], first - 1)
      const child = bench.child(parent.runId, {}, { awaited: false })
      await bench.commit(parent, { append: [waiting('child')], outbound: outbound({ starts: [child] }) })
      const held = await bench.take(child.run.id)
      await bench.commit(held, { append: [waiting()], outbound: outbound({ watches: [endOf(parent.runId)] }) })
      await bench.commit(parent, over)
      await expectNotified(bench, waits, waits.length)
      await bench.chores()
      const { status, inbox } = await bench.run(child.run.id)
      assert.deepEqual([status, inbox], ['cancelling', 1])
      await expectSound(bench)
    },
  },
  {
    name: 'a run that no longer waits when its page comes is not notified, and a run that begins to wait meanwhile is notified at once',
    async run(bench) {
      const held = await bench.hold()
      const waits = await watchers(bench, [held], first + 2)
      const leaving = await bench.hold()
      const watched = endOf(held.runId)
      await bench.commit(leaving, { append: [waiting()], outbound: outbound({ watches: [watched] }) })
      await bench.commit(held, over)
      controlled(await bench.control(waits.at(-1) as string, ask.cancelNow), 'done')
      await bench.commit(leaving, { append: [waiting('gone')], outbound: outbound({ unwatches: [watched] }) })
      const late = await bench.hold()
      await bench.commit(late, { append: [waiting()], outbound: outbound({ watches: [watched] }) })
      assert.deepEqual(await endsSeenBy(bench, late.runId), ['succeeded'])
      await bench.chores()
      await expectNotified(bench, waits, first + 1)
      assert.deepEqual(await inboxes(bench, [leaving.runId, late.runId]), [0, 1])
    },
  },
  {
    name: 'a run that was not notified of an end before a retry is notified of the next end, and the children live on',
    async run(bench) {
      const held = await bench.hold()
      const waits = await watchers(bench, [held], first + 5)
      const children = await childrenOf(bench, held, 3)
      await bench.commit(held, failed)
      controlled(await bench.control(held.runId, ask.retry), 'done')
      await bench.chores()
      await expectNotified(bench, waits, first)
      for (const { status } of await rows(bench, children)) assert.equal(status, 'pending')
      await bench.commit(await bench.take(held.runId), over)
      await bench.chores()
      await expectNotified(bench, waits, waits.length)
      assert.deepEqual(await endsSeenBy(bench, waits[0] as string), ['failed'])
      assert.deepEqual(await endsSeenBy(bench, waits.at(-1) as string), ['succeeded'])
      for (const { status } of await rows(bench, children)) assert.equal(status, 'cancelling')
    },
  },
  {
    name: 'a run that ends again before the chore of its first end is done leaves no waiting run out, and notifies none twice',
    async run(bench) {
      const held = await bench.hold()
      const waits = await watchers(bench, [held], 2 * first + 5)
      await bench.commit(held, failed)
      controlled(await bench.control(held.runId, ask.retry), 'done')
      await bench.commit(await bench.take(held.runId), failed)
      await expectNotified(bench, waits, 2 * first)
      await bench.chores()
      await expectNotified(bench, waits, waits.length)
      assert.deepEqual(await bench.store.doChores(), { worked: false, nextInMs: null })
    },
  },
  {
    name: 'every run that waits for a removed run learns that it does not exist, however many there are',
    async run(bench) {
      const { id } = await bench.start()
      const waits = await watchers(bench, [{ runId: id }], first + 2)
      controlled(await bench.control(id, ask.remove), 'done')
      await expectNotified(bench, waits, first)
      await bench.chores()
      await expectNotified(bench, waits, waits.length)
      assert.deepEqual(await endsSeenBy(bench, waits.at(-1) as string), ['not-found'])
    },
  },
  {
    name: 'runs that end together with many that wait for each of them notify all of these',
    async run(bench) {
      const ends: Held[] = []
      for (let index = 0; index < 14; index += 1) ends.push(await bench.hold())
      const waits = await watchers(bench, ends, first)
      await bench.store.commit(ends.map((held) => bench.transition(held, over)))
      await expectSound(bench)
      await bench.chores()
      const expected = waits.map(() => ends.length)
      assert.deepEqual(await inboxes(bench, waits), expected)
      await expectSound(bench)
    },
  },
  {
    name: 'a run with many unread messages that many runs wait for leaves both to chores, and both are done',
    async run(bench) {
      const held = await bench.hold()
      const waits = await watchers(bench, [held], first + 2)
      await bench.store.deliver(Array.from({ length: first + 7 }, () => bench.message(held.runId)))
      await bench.commit(held, over)
      assert.equal((await bench.mailbox(held.runId)).length, 7)
      await bench.chores()
      assert.deepEqual(await bench.mailbox(held.runId), [])
      await expectNotified(bench, waits, waits.length)
    },
  },
]
