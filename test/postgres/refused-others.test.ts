// A policy of row-level security refuses to change runs that only get something by an end or a broadcast: who waits for it, a
// child that is to be cancelled, a subscriber. The end or the broadcast is committed all the same, all others get their own,
// and those that were refused get it when the policy is gone, once.

import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import type { Transition } from 'holdfast/store'
import { openPostgresStore } from 'holdfast/postgres'
import { createContractBench, type ContractBench } from '../../src/testing/contract/bench.ts'
import type { Held } from '../../src/testing/contract/bench.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { endPaths } from '../../src/testing/contract/end-paths.ts'
import { endOf, outbound } from '../../src/testing/contract/exchanges.ts'
import { until } from '../support/until.ts'
import { keepLines } from '../holdfast/open.ts'
import { underRole } from './under-role.ts'

const over = { append: [ending('succeeded')], status: 'succeeded' } as const
const news = { name: 'news', delivery: 'all', retainMs: 0 } as const
const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const

/** How long it may take until something that was refused is tried again. */
const againMs = 40_000

interface Rig extends ContractBench {
  readonly logger: ReturnType<typeof keepLines>
  /** A run that the policy will refuse to change. */
  refusable(changes?: Parameters<ContractBench['hold']>[0]): Promise<Held>
  /** From here on nobody may change such a run. */
  refuse(): Promise<void>
  /** The policy goes, and chores are done until that is so. */
  allow(what: string, isSo: () => Promise<boolean>): Promise<void>
}

async function rig(shards = 1): Promise<Rig> {
  const { store: url, schema, ask } = await underRole([], shards)
  const logger = keepLines()
  const store = await openPostgresStore({ url, listen: false, connections: 4, logger })
  onTestFinished(() => store.close())
  onTestFinished(async () => {
    const found = (await store.doctor()).filter(({ offenders }) => offenders.length > 0)
    // Runs of a bench are parked without an entry that says what they wait for.
    expect(found.filter(({ name }) => name !== 'waits_for_something')).toEqual([])
  })
  const bench = createContractBench({ store, clock: { now: () => Date.now(), advance: () => undefined } })
  return {
    ...bench,
    logger,
    refusable: (changes) => bench.hold({ ...changes, key: bench.unique('forbidden') }),
    refuse: () =>
      ask(
        `alter table ${schema}.runs enable row level security`,
        `create policy refusing on ${schema}.runs using (true) with check (coalesce(key, '') not like 'forbidden%')`,
      ),
    async allow(what, isSo) {
      await ask(`alter table ${schema}.runs disable row level security`)
      const look = async (): Promise<boolean> => {
        await bench.chores()
        return isSo()
      }
      await until(what, look, againMs)
    },
  }
}

/** The run waits for the end of another one. */
async function waitFor(bench: ContractBench, held: Held, { runId }: Pick<Held, 'runId'>): Promise<string> {
  await bench.park(held, { outbound: outbound({ watches: [endOf(runId)] }) })
  return held.runId
}

async function subscribe(bench: ContractBench, held: Held, topic: typeof news | typeof jobs): Promise<string> {
  await bench.park(held, { outbound: outbound({ watches: [{ kind: 'topic', ...topic }] }) })
  return held.runId
}

const inboxes = async (bench: ContractBench, ids: readonly string[]): Promise<readonly number[]> =>
  (await bench.store.get(ids)).map((run) => run?.inbox ?? -1)

describe('runs that a policy refuses to change and that an end concerns', { timeout: 90_000 }, () => {
  it.each(endPaths)('a run that $name ends although one that waits for it is refused', async (lockPolicy) => {
    const bench = await rig()
    const held = await bench.hold(lockPolicy.changes)
    const refused = await waitFor(bench, await bench.refusable(), held)
    const free = await waitFor(bench, await bench.hold(), held)
    await bench.refuse()
    await lockPolicy.end(bench, held)
    await until('it has ended', async () => {
      // A look that comes too early finds nothing.
      if (lockPolicy.status === 'failed') await bench.rescue()
      return (await bench.run(held.runId)).status === lockPolicy.status
    })
    await bench.chores()
    expect(await inboxes(bench, [refused, free])).toEqual([0, 1])
    const named = bench.logger.lines.filter(({ message }) => message.includes('refuses to change run'))
    expect(named.map(({ details }) => details['run'])).toEqual([refused])
  })

  it('are notified when they may be changed, once, and their children are cancelled then', async () => {
    const bench = await rig()
    const parent = await bench.hold()
    const waiting = await waitFor(bench, await bench.refusable(), parent)
    const starts = ['forbidden child', 'child'].map((key) => bench.child(parent.runId, { key }, { awaited: false }))
    await bench.commit(parent, { outbound: outbound({ starts }) })
    const children = starts.map(({ run }) => run.id)
    await bench.refuse()
    expect(await bench.commit(parent, over)).toMatchObject({ outcome: 'committed', released: true })
    const statuses = async () => (await bench.store.get(children)).map((run) => run?.status)
    expect(await statuses()).toEqual(['pending', 'cancelling'])
    const { worked, nextInMs } = await bench.store.doChores()
    expect([worked, (nextInMs ?? 0) > 0]).toEqual([false, true])
    await bench.allow('both have got it', async () => {
      return (await bench.run(waiting)).inbox > 0 && (await statuses()).every((status) => status === 'cancelling')
    })
    expect(await inboxes(bench, [waiting])).toEqual([1])
    expect(await bench.store.doChores()).toEqual({ worked: false, nextInMs: null })
  })

  it.each([1, 4])('keep no run from being notified that comes with them, or behind them: %i shards', async (shards) => {
    const bench = await rig(shards)
    const held = await bench.hold()
    const count = 260
    const isRefused = (n: number): boolean => n % 40 === 1
    const some = Array.from({ length: count }, (_, n) => {
      const key = `${isRefused(n) ? 'forbidden' : 'order'} ${n}`
      return bench.newRun({ key, lease: { session: 'watcher', token: 1 } })
    })
    await bench.store.start(some)
    const watch = { outbound: outbound({ watches: [endOf(held.runId)] }) }
    const lease = { session: 'watcher', token: 1 }
    const transitions = some.map(({ id }) => bench.transition({ runId: id, lease, seq: 1 }, watch))
    // The shards commit at the same time, and all lock the run that is watched: on a busy machine some are answered as busy.
    for (const [n, answer] of (await bench.store.commit(transitions)).entries()) {
      if (answer.outcome !== 'refused') continue
      expect([answer.reason, shards]).toEqual(['busy', 4])
      expect(await bench.send(transitions[n] as Transition)).toMatchObject({ outcome: 'committed' })
    }
    await bench.refuse()
    expect(await bench.commit(held, over)).toMatchObject({ outcome: 'committed' })
    await bench.chores()
    const ids = some.map(({ id }) => id)
    expect(await inboxes(bench, ids)).toEqual(some.map((_, n) => (isRefused(n) ? 0 : 1)))
  })

  it('of which one ends in the same batch are reported to no other caller: that one alone is refused', async () => {
    const bench = await rig()
    const first = await bench.hold()
    const second = await bench.refusable()
    await bench.commit(second, { outbound: outbound({ watches: [endOf(first.runId)] }) })
    await bench.refuse()
    const both = [first, second].map((held) => bench.transition(held, over))
    await expect(bench.store.commit(both)).rejects.toMatchObject({ code: 'STORE_REFUSED', details: { row: true } })
    await expect(bench.send(both[1] as (typeof both)[0])).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    expect(await bench.send(both[0] as (typeof both)[0])).toMatchObject({ outcome: 'committed', released: true })
  })

  it('hold no place of a worker: the child ends, and its parent goes on when it may', async () => {
    const gates: (() => void)[] = []
    const gated = workflow('others.gated', (ctx, number: number) =>
      ctx.step('wait', () => new Promise<number>((resolve) => gates.push(() => resolve(number)))),
    )
    const parent = workflow('others.parent', (ctx, number: number) => ctx.child(gated, number))
    const { holdfast, ask, schema } = await underRole([gated, parent])
    await holdfast.work({ concurrency: 2, shutdownTimeout: '1s' })
    const run = await holdfast.start(parent, 7, { key: 'forbidden' })
    await until('the child has begun', () => gates.length === 1)
    await until('the parent waits', async () => (await holdfast.count({ type: parent.type, status: 'waiting' })).count)
    await ask(
      `alter table ${schema}.runs enable row level security`,
      `create policy refusing on ${schema}.runs using (true) with check (coalesce(key, '') not like 'forbidden%')`,
    )
    gates[0]?.()
    await until('it has ended', async () => (await holdfast.count({ type: gated.type, status: 'succeeded' })).count)
    await ask(`alter table ${schema}.runs disable row level security`)
    expect(await run.result({ timeout: '60s' })).toBe(7)
  })
})

describe('runs that a policy refuses to change and that wait on a topic', { timeout: 90_000 }, () => {
  const said = async (bench: ContractBench, runId: string): Promise<readonly string[]> =>
    (await bench.mailbox(runId)).map(({ data }) => data)
  const send = (bench: ContractBench, topic: typeof news | typeof jobs, data: string) =>
    bench.deliver(bench.broadcast({ topic, data }))

  it('hold up no other subscriber, and get all they missed, once and in order', async () => {
    const bench = await rig()
    const refused = await subscribe(bench, await bench.refusable(), news)
    const free = await subscribe(bench, await bench.hold(), news)
    await bench.refuse()
    const all = ['1', '2', '3']
    for (const data of all) expect(await send(bench, news, data)).toMatchObject({ outcome: 'delivered', runs: 1 })
    expect([await said(bench, refused), await said(bench, free)]).toEqual([[], all])
    await bench.allow('it has all', async () => (await bench.run(refused)).inbox === all.length)
    expect(await said(bench, refused)).toEqual(all)
  })

  it('stop no queue, however many of them stand in front', async () => {
    const bench = await rig()
    for (let n = 0; n < 12; n += 1) await subscribe(bench, await bench.refusable(), jobs)
    const free = await subscribe(bench, await bench.hold(), jobs)
    await bench.refuse()
    expect(await send(bench, jobs, 'one')).toMatchObject({ outcome: 'delivered', runs: 1 })
    expect(await said(bench, free)).toEqual(['one'])
  })
})
