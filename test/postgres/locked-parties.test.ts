// Another open transaction holds what one of 500 concerns: its key, a topic, the run that a signal goes to, the run that is cancelled. That
// one must wait; the 499 others of its batch end while the lock is still held. If it is only the run that waits for its end, it
// does not wait either.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { topic, workflow, type Holdfast } from 'holdfast'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

const others = 499
const all = others + 1
const patience = { timeout: '60s' } as const

interface Place {
  readonly url: string
  readonly schema: string
  readonly user: Client
  at(workflows: readonly unknown[]): Promise<Holdfast>
}

/** A schema, and a user who has begun a transaction in it. */
async function place(): Promise<Place> {
  const { url, schema } = await migratedSchema()
  const user = new Client({ connectionString: url })
  await user.connect()
  onTestFinished(() => user.end())
  const at = (workflows: readonly unknown[]): Promise<Holdfast> =>
    holdfastAt({ store: `${url}?schema=${schema}`, workflows: workflows as never })
  return { url, schema, user, at }
}

async function lockRun({ user, schema }: Place, id: string): Promise<void> {
  await user.query('begin')
  await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [id])
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

async function expectSound(holdfast: Holdfast): Promise<void> {
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
}

function numbers(): readonly number[] {
  return Array.from({ length: all }, (_, number) => number)
}

describe('one of 500 meets the lock of a stranger', { timeout: 180_000 }, () => {
  it('a child whose parent is locked ends with 499 others: that parent hears of it when it is free', async () => {
    const here = await place()
    const { opened, open } = gate()
    let begun = 0
    const child = workflow('child', async (ctx, number: number) => {
      await ctx.step('wait', async () => {
        begun += 1
        await opened
      })
      return number
    })
    const parent = workflow('parent', (ctx, number: number) => ctx.child(child, number))
    const holdfast = await here.at([child, parent])
    await holdfast.work({ concurrency: 2 * all })
    const parents = await Promise.all(numbers().map((number) => holdfast.start(parent, number)))
    await until('all children have begun', () => begun === all, 60_000)
    const waiting = async () => (await holdfast.count({ type: 'parent', status: 'waiting' })).count
    await until('all parents wait', async () => (await waiting()) === all, 60_000)
    const [locked, ...rest] = parents as [(typeof parents)[0], ...typeof parents]
    await lockRun(here, locked.id)
    open()
    const results = await Promise.all(rest.map((run) => run.result(patience)))
    expect(results).toEqual(numbers().slice(1))
    const ended = async () => (await holdfast.count({ type: 'child', status: 'succeeded' })).count
    await until('all children have ended', async () => (await ended()) === all, 60_000)
    const { rows } = await here.user.query(`select status, inbox from ${here.schema}.runs where id = $1`, [locked.id])
    expect(rows).toEqual([{ status: 'waiting', inbox: 0 }])
    await here.user.query('commit')
    expect(await locked.result(patience)).toBe(0)
    await expectSound(holdfast)
  })

  it('a start whose key is about to be taken waits alone: 499 others are accepted', async () => {
    const here = await place()
    const plain = workflow('plain', async (_ctx, number: number) => number)
    const holdfast = await here.at([plain])
    await here.user.query('begin')
    const first = await holdfast.using(here.user).start(plain, -1, { key: 'key 0' })
    let isLateSettled = false
    const starts = numbers().map((number) => holdfast.start(plain, number, { key: `key ${number}` }))
    const late = (starts[0] as (typeof starts)[0]).then(
      (run) => run.id,
      () => first.id,
    )
    void late.then(() => (isLateSettled = true))
    const rest = await Promise.all(starts.slice(1))
    expect(new Set(rest.map(({ id }) => id)).size).toBe(others)
    // What has no key is accepted, too, however often that one is sent again meanwhile.
    for (let times = 0; times < 20; times += 1) await holdfast.start(plain, times)
    expect(isLateSettled).toBe(false)
    await here.user.query('commit')
    expect(await late).toBe(first.id)
    await expectSound(holdfast)
  })

  it('a broadcast to a locked topic waits alone: 499 others are accepted', async () => {
    const here = await place()
    const topics = numbers().map((number) => topic(`topic ${number}`, { delivery: 'one' }))
    const holdfast = await here.at([])
    await Promise.all(topics.map((one) => holdfast.broadcast(one, 'first')))
    await here.user.query('begin')
    await here.user.query(`select 1 from ${here.schema}.topics where name = 'topic 0' for update`)
    const sent = topics.map((one) => holdfast.broadcast(one, 'second'))
    let isLateSettled = false
    void sent[0]?.then(() => (isLateSettled = true))
    const outcomes = await Promise.all(sent.slice(1))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(outcomes.map(() => 'queued'))
    expect(isLateSettled).toBe(false)
    await here.user.query('commit')
    expect(await sent[0]).toMatchObject({ outcome: 'queued' })
    await expectSound(holdfast)
  })

  it('signals to a locked run wait, in order: 499 others are delivered, and what they are for ends', async () => {
    const here = await place()
    const asking = workflow('asking', async (ctx, _input: number) => {
      const first = await ctx.receive<number>('number')
      const second = await ctx.receive<number>('number')
      return [first, second]
    })
    const holdfast = await here.at([asking])
    const runs = await Promise.all(numbers().map((number) => holdfast.start(asking, number)))
    const [locked, ...rest] = runs as [(typeof runs)[0], ...typeof runs]
    await lockRun(here, locked.id)
    let isLateSettled = false
    const send = (run: (typeof runs)[0]) => [holdfast.signal(run, 'number', 1), holdfast.signal(run, 'number', 2)]
    const late = Promise.all(send(locked))
    void late.then(() => (isLateSettled = true))
    const outcomes = await Promise.all(rest.flatMap(send))
    expect(outcomes.every(({ outcome }) => outcome === 'queued')).toBe(true)
    expect(isLateSettled).toBe(false)
    await here.user.query('commit')
    expect(await late).toMatchObject([{ outcome: 'queued' }, { outcome: 'queued' }])
    await holdfast.work({ concurrency: all })
    expect(await locked.result(patience)).toEqual([1, 2])
    expect(await (rest[0] as (typeof runs)[0]).result(patience)).toEqual([1, 2])
    await expectSound(holdfast)
  })

  it('a locked run is cancelled when that is possible: 499 others of the same filter are before', async () => {
    const here = await place()
    const plain = workflow('plain', async (_ctx, number: number) => number)
    const holdfast = await here.at([plain])
    const runs = await Promise.all(numbers().map((number) => holdfast.start(plain, number)))
    // The newest comes first: it is in the first page.
    const locked = runs.at(-1) as (typeof runs)[0]
    await lockRun(here, locked.id)
    const cancelled = async () => (await holdfast.count({ status: 'cancelled' })).count
    const bulk = holdfast.cancelMany({ type: 'plain' })
    await until('all others are cancelled', async () => (await cancelled()) === others, 60_000)
    expect(await locked.status()).toBe('pending')
    await here.user.query('commit')
    expect(await bulk).toMatchObject({ matched: all, changed: all, skipped: 0 })
    expect(await locked.status()).toBe('cancelled')
    await expectSound(holdfast)
  })
})
