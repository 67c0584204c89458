// Another open transaction holds runs that an end concerns and that only get something by it: who waits for it, its children.
// The end is committed while the lock is held, and so is what stands behind it. Each of them gets its own when it is free, once.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { defaultPageLimits } from '../../src/core/model/chore.ts'
import type { ContractBench, Held } from '../../src/testing/contract/bench.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { endPaths } from '../../src/testing/contract/end-paths.ts'
import { endOf, outbound } from '../../src/testing/contract/exchanges.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

const over = { append: [ending('succeeded')], status: 'succeeded' } as const

interface Rig extends ContractBench {
  lock(runIds: readonly string[]): Promise<void>
  /** The strangers go, and chores are done until that is so. */
  letGo(what: string, isSo: () => Promise<boolean>): Promise<void>
}

/** Three runs, each of which waits for a child whose step ends when the test says so. */
async function threeParents() {
  const { url, schema } = await migratedSchema()
  const gates: (() => void)[] = []
  const gated = workflow('gated', (ctx, number: number) =>
    ctx.step('wait', () => new Promise<number>((resolve) => gates.push(() => resolve(number)))),
  )
  const parent = workflow('parent', (ctx, number: number) => ctx.child(gated, number))
  const plain = workflow('plain', (ctx, number: number) => ctx.step('add', () => number + 1))
  const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [gated, parent, plain] })
  await holdfast.work({ concurrency: 20 })
  const parents = await Promise.all([0, 1, 2].map((number) => holdfast.start(parent, number)))
  await until('all children have begun', () => gates.length === 3)
  return { url, schema, gates, parent, plain, holdfast, parents }
}

async function rig(shards = 1): Promise<Rig> {
  const { url, schema } = await migratedSchema(shards)
  const { store, bench } = await opened({ url, schema, shards, storageTimeout: 3_000 })
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  onTestFinished(async () => {
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
  return {
    ...bench,
    lock: async (ids) => void (await client.query(`select 1 from ${schema}.runs where id = any($1) for update`, [ids])),
    async letGo(what, isSo) {
      await client.query('rollback')
      await until(what, async () => {
        await bench.chores()
        return isSo()
      })
    },
  }
}

async function watcherOf(bench: ContractBench, { runId }: Pick<Held, 'runId'>): Promise<string> {
  const held = await bench.hold()
  await bench.park(held, { outbound: outbound({ watches: [endOf(runId)] }) })
  return held.runId
}

const inboxes = async (bench: ContractBench, ids: readonly string[]): Promise<readonly number[]> =>
  (await bench.store.get(ids)).map((run) => run?.inbox ?? -1)

describe('runs that another transaction has locked and that an end concerns', { timeout: 60_000 }, () => {
  it.each(endPaths)('a run that $name does not wait for one that waits for it', async (lockPolicy) => {
    const bench = await rig()
    const held = await bench.hold(lockPolicy.changes)
    const [locked, free] = [await watcherOf(bench, held), await watcherOf(bench, held)]
    await bench.lock([locked])
    await lockPolicy.end(bench, held)
    await until('it has ended', async () => {
      // A look that comes too early finds nothing.
      if (lockPolicy.status === 'failed') await bench.rescue()
      return (await bench.run(held.runId)).status === lockPolicy.status
    })
    await bench.chores()
    expect(await inboxes(bench, [locked, free])).toEqual([0, 1])
    await bench.letGo('it is notified', async () => (await bench.run(locked)).inbox > 0)
    expect(await inboxes(bench, [locked, free])).toEqual([1, 1])
    expect(await bench.store.doChores()).toEqual({ worked: false, nextInMs: null })
  })

  it.each([1, 4])(
    'a child is cancelled when it is free, and its parent has ended long before: %i shards',
    async (shards) => {
      const bench = await rig(shards)
      const parent = await bench.hold()
      const starts = Array.from({ length: 3 }, () => bench.child(parent.runId, {}, { awaited: false }))
      await bench.commit(parent, { outbound: outbound({ starts }) })
      const [first, second, third] = starts.map(({ run }) => run.id) as [string, string, string]
      await bench.lock([first, third])
      expect(await bench.commit(parent, over)).toMatchObject({ outcome: 'committed', released: true })
      const statuses = async () => (await bench.store.get([first, second, third])).map((run) => run?.status)
      expect(await statuses()).toEqual(['pending', 'cancelling', 'pending'])
      await bench.letGo('both are cancelled', async () => (await statuses()).every((status) => status === 'cancelling'))
      const kinds = (await bench.journal(first)).map(({ kind }) => kind)
      expect(kinds).toEqual(['started', 'cancelling'])
    },
  )

  it('more locked ones than a page has keep no run from being notified that comes behind them', async () => {
    const bench = await rig()
    const held = await bench.hold()
    const lease = { session: 'watcher', token: 1 }
    const count = defaultPageLimits.withEnd + defaultPageLimits.watchers + 20
    const watchers: string[] = []
    for (let from = 0; from < count; from += 310) {
      const some = Array.from({ length: Math.min(310, count - from) }, () => bench.newRun({ lease }))
      await bench.store.start(some)
      const parks = some.map(({ id }) =>
        bench.transition({ runId: id, lease, seq: 1 }, { outbound: outbound({ watches: [endOf(held.runId)] }) }),
      )
      await bench.store.commit(parks)
      watchers.push(...some.map(({ id }) => id).toSorted())
      await bench.clock.advance(1)
    }
    const locked = watchers.slice(0, count - 10)
    await bench.lock(locked)
    expect(await bench.commit(held, over)).toMatchObject({ outcome: 'committed' })
    await bench.chores()
    expect(await inboxes(bench, watchers)).toEqual(watchers.map((_, index) => (index < locked.length ? 0 : 1)))
    // Nobody comes back to them without a pause. On a busy machine a pause may be over when it is asked for: another follows.
    const next = async (): Promise<unknown> => {
      const { worked, nextInMs } = await bench.store.doChores()
      return [worked, (nextInMs ?? 0) > 0]
    }
    await expect.poll(next).toEqual([false, true])
    await bench.letGo('all are notified', async () => !(await inboxes(bench, watchers)).includes(0))
    expect(await inboxes(bench, watchers)).toEqual(watchers.map(() => 1))
  })

  it('two ends with locked watchers keep no other run of the worker from going on', async () => {
    const { url, schema, gates, plain, holdfast, parents } = await threeParents()
    const waiting = async () => (await holdfast.count({ type: 'parent', status: 'waiting' })).count
    await until('all parents wait', async () => (await waiting()) === 3)
    const stranger = new Client({ connectionString: url })
    await stranger.connect()
    onTestFinished(() => stranger.end())
    await stranger.query('begin')
    await stranger.query(`select 1 from ${schema}.runs where type = 'parent' for update`)
    for (const open of gates) open()
    for (let number = 0; number < 5; number += 1) {
      const run = await holdfast.start(plain, number)
      expect(await run.result({ timeout: '60s' })).toBe(number + 1)
    }
    // They have ended, and nothing has happened to the locks: no clock is asked.
    const ended = async () => (await holdfast.count({ type: 'gated', status: 'succeeded' })).count
    await until('all children have ended', async () => (await ended()) === 3)
    await stranger.query('commit')
    expect(await Promise.all(parents.map((run) => run.result({ timeout: '60s' })))).toEqual([0, 1, 2])
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})

describe('runs that another transaction has locked themselves', { timeout: 60_000 }, () => {
  it('take no place of the usual flushes when they end and another run waits for them', async () => {
    const { url, schema, gates, parent, plain, holdfast, parents } = await threeParents()
    const stranger = new Client({ connectionString: url })
    await stranger.connect()
    onTestFinished(() => stranger.end())
    await stranger.query('begin')
    await stranger.query(`select 1 from ${schema}.runs where type = 'gated' for update`)
    for (const open of gates) {
      open()
      const run = await holdfast.start(plain, 1)
      expect(await run.result({ timeout: '60s' })).toBe(2)
    }
    for (let number = 0; number < 5; number += 1) {
      const run = await holdfast.start(parent, 10 + number)
      await until('its child has begun', () => gates.length === 4 + number)
      gates.at(-1)?.()
      expect(await run.result({ timeout: '60s' })).toBe(10 + number)
    }
    // All of them have ended, and nothing has happened to the locks: no clock is asked.
    const { rows } = await stranger.query(`select status from ${schema}.runs where type = 'gated' order by created_at`)
    expect(rows.slice(0, 3)).toEqual([{ status: 'running' }, { status: 'running' }, { status: 'running' }])
    await stranger.query('commit')
    expect(await Promise.all(parents.map((run) => run.result({ timeout: '60s' })))).toEqual([0, 1, 2])
  })
})

const news = { name: 'news', delivery: 'all', retainMs: 0 } as const
const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const

async function subscriberOf(bench: ContractBench, topic: typeof news | typeof jobs): Promise<string> {
  const held = await bench.hold()
  await bench.park(held, { outbound: outbound({ watches: [{ kind: 'topic', ...topic }] }) })
  return held.runId
}

describe('runs that another transaction has locked and that wait on a topic', { timeout: 60_000 }, () => {
  const said = async (bench: ContractBench, runId: string): Promise<readonly string[]> =>
    (await bench.mailbox(runId)).map(({ data }) => data)
  const send = (bench: ContractBench, topic: typeof news | typeof jobs, data: string) =>
    bench.deliver(bench.broadcast({ topic, data }))

  it.each([1, 4])(
    'hold up no other subscriber, and get all they missed, once and in order: %i shards',
    async (shards) => {
      const bench = await rig(shards)
      const [first, second, third] = [
        await subscriberOf(bench, news),
        await subscriberOf(bench, news),
        await subscriberOf(bench, news),
      ]
      await bench.lock([first, third])
      const all = Array.from({ length: defaultPageLimits.missed + 10 }, (_, number) => String(number))
      for (const data of all) expect(await send(bench, news, data)).toMatchObject({ outcome: 'delivered', runs: 1 })
      await bench.chores()
      expect([await said(bench, first), await said(bench, second)]).toEqual([[], all])
      const { worked, nextInMs } = await bench.store.doChores()
      expect([worked, (nextInMs ?? 0) > 0]).toEqual([false, true])
      await bench.letGo('both have all', async () => {
        const inboxesOfLate = await inboxes(bench, [first, third])
        return inboxesOfLate.every((inbox) => inbox === all.length)
      })
      for (const runId of [first, third]) expect(await said(bench, runId)).toEqual(all)
      expect(await send(bench, news, 'last')).toMatchObject({ outcome: 'delivered', runs: 3 })
      expect(await bench.store.doChores()).toEqual({ worked: false, nextInMs: null })
    },
  )

  it('stop no queue: the next who waits takes it, and what nobody can take goes to them when they are free', async () => {
    const bench = await rig()
    const [first, second] = [await subscriberOf(bench, jobs), await subscriberOf(bench, jobs)]
    await bench.lock([first])
    expect(await send(bench, jobs, 'one')).toMatchObject({ outcome: 'delivered', runs: 1 })
    expect(await said(bench, second)).toEqual(['one'])
    expect(await send(bench, jobs, 'two')).toMatchObject({ outcome: 'queued' })
    expect(await send(bench, jobs, 'three')).toMatchObject({ outcome: 'queued' })
    const third = await bench.hold()
    await bench.commit(third, { outbound: outbound({ watches: [{ kind: 'topic', ...jobs }] }) })
    expect(await said(bench, third.runId)).toEqual(['two'])
    await bench.letGo('it has the other', async () => (await bench.run(first)).inbox > 0)
    expect(await said(bench, first)).toEqual(['three'])
  })

  it('hold up no page of what an end passes on to a topic', async () => {
    const bench = await rig()
    const [locked, free] = [await subscriberOf(bench, news), await subscriberOf(bench, news)]
    const held = await bench.hold()
    const policy = { onUnread: 'broadcast', delivery: 'all', retainMs: 0 } as const
    await bench.deliver(bench.message(held.runId, { name: 'news', data: 'unread', policy }))
    await bench.lock([locked])
    expect(await bench.commit(held, over)).toMatchObject({ outcome: 'committed', released: true })
    expect([await said(bench, locked), await said(bench, free)]).toEqual([[], ['unread']])
    await bench.letGo('it has it', async () => (await bench.run(locked)).inbox > 0)
    expect(await said(bench, locked)).toEqual(['unread'])
  })
})
