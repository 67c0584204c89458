// Another open transaction holds the row of one run. That run must wait; nobody else has a reason to.

import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

const others = 499

describe('a run whose row is locked by another transaction', { timeout: 120_000 }, () => {
  it('IF-C1 waits alone: 499 others that are committed with it end while the lock is still held', async () => {
    const { url, schema } = await migratedSchema()
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    let begun = 0
    const gated = workflow('gated', async (ctx, number: number) => {
      await ctx.step('wait', async () => {
        begun += 1
        await gate
      })
      return number
    })
    const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [gated] })
    await holdfast.work({ concurrency: others + 1 })
    const locked = await holdfast.start(gated, -1)
    const runs = await Promise.all(Array.from({ length: others }, (_, number) => holdfast.start(gated, number)))
    await until('all have begun', () => begun === others + 1, 60_000)

    const user = new Client({ connectionString: url })
    await user.connect()
    onTestFinished(() => user.end())
    await user.query('begin')
    await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [locked.id])
    open()
    const results = await Promise.all(runs.map((run) => run.result({ timeout: '40s' })))
    // They have all ended, and nothing has happened to the lock: no clock is asked.
    expect(results).toEqual(runs.map((_, number) => number))
    const { rows } = await user.query(`select status, seq from ${schema}.runs where shard = 0 and id = $1`, [locked.id])
    expect(rows).toEqual([{ status: 'running', seq: 1 }])
    await user.query('commit')
    expect(await locked.result({ timeout: '40s' })).toBe(-1)
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })

  it('keeps nobody from the next one: claims of one run pass it over, and find it when it is free', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema })
    const other = { type: 'other', version: 1 }
    const [first, second, third] = [await bench.start(), await bench.start(other), await bench.start()]
    const selectors = [bench.selector, other]
    const user = await lockerOf(url, schema, first.id)
    const claimed = [await bench.claim({ selectors, limit: 1 }), await bench.claim({ selectors, limit: 1 })]
    expect(claimed.map(({ runs }) => runs.map(({ id }) => id))).toEqual([[second.id], [third.id]])
    // The locked one is still to be had, some time.
    expect(await bench.claim({ selectors, limit: 1 })).toMatchObject({ runs: [], more: true })
    await user.query('rollback')
    expect((await bench.claim({ selectors, limit: 1 })).runs.map(({ id }) => id)).toEqual([first.id])
  })

  it('is found in its turn when it is free, however far claims got meanwhile', async () => {
    const { url, schema } = await migratedSchema()
    const { bench, store } = await opened({ url, schema })
    const other = { type: 'other', version: 1 }
    const selectors = [bench.selector, other]
    const locked = await bench.start()
    await store.start(Array.from({ length: 300 }, (_, index) => bench.newRun(index % 2 === 0 ? {} : other)))
    const user = await lockerOf(url, schema, locked.id)
    // So much is left that claims begin where the last one ended.
    for (let turn = 0; turn < 10; turn += 1) {
      const { runs, more } = await bench.claim({ selectors, limit: 5 })
      expect([runs.length, runs.some(({ id }) => id === locked.id), more]).toEqual([5, false, true])
    }
    await user.query('rollback')
    expect((await bench.claim({ selectors, limit: 1 })).runs.map(({ id }) => id)).toEqual([locked.id])
  })

  it.each([40, 500])(
    '%i of them at the head keep nobody from the next one: a claim of one run gets it',
    async (count) => {
      const { url, schema } = await migratedSchema()
      const { bench, store } = await opened({ url, schema })
      await store.start(Array.from({ length: count }, () => bench.newRun({ priority: 1 })))
      const others = [await bench.start(), await bench.start()]
      const user = await lockerOf(url, schema, null)
      await user.query(`select 1 from ${schema}.runs where shard = 0 and rank < 0 for update`)
      for (const { id } of others) {
        const { runs, more } = await bench.claim({ limit: 1 })
        expect([runs.map((run) => run.id), more]).toEqual([[id], true])
      }
      expect(await bench.claim({ limit: 1 })).toMatchObject({ runs: [], more: true })
      await user.query('rollback')
      expect((await bench.claim({ limit: count })).runs).toHaveLength(count)
    },
  )

  it('makes claims that meet many of them begin further on, behind no urgent run, and none is forgotten', async () => {
    const { url, schema } = await migratedSchema()
    const { bench, store } = await opened({ url, schema })
    await store.start(Array.from({ length: 60 }, () => bench.newRun()))
    const user = await lockerOf(url, schema, null)
    await user.query(`select 1 from ${schema}.runs where shard = 0 for update`)
    await store.start(Array.from({ length: 240 }, () => bench.newRun()))
    const claimed = new Set<string>()
    for (let turn = 0; turn < 12; turn += 1) {
      const urgent = [await bench.start({ priority: 1 }), await bench.start({ priority: 2 })].map(({ id }) => id)
      const { runs } = await bench.claim({ limit: 10 })
      expect(runs.slice(0, 2).map(({ id }) => id)).toEqual(urgent.toReversed())
      for (const { id } of runs) claimed.add(id)
    }
    await user.query('rollback')
    for (let more = true; more;) {
      const next = await bench.claim({ limit: 10 })
      for (const { id } of next.runs) claimed.add(id)
      more = next.runs.length > 0
    }
    expect(claimed.size).toBe(300 + 2 * 12)
  })

  it('is found at once when it is free, also behind the last run that a claim of all got', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema })
    const [first, second] = [await bench.start(), await bench.start()]
    const user = await lockerOf(url, schema, null)
    await user.query(`update ${schema}.runs set due = due - case id when $1 then 60000 else 30000 end`, [first.id])
    await user.query('commit; begin')
    await user.query(`select 1 from ${schema}.runs where id = $1 for update`, [second.id])
    expect((await bench.claim({ limit: 5 })).runs.map(({ id }) => id)).toEqual([first.id])
    await user.query('rollback')
    expect((await bench.claim({ limit: 5 })).runs.map(({ id }) => id)).toEqual([second.id])
  })

  it.each([40, 500])('%i suspects of them keep nobody from the next one that is claimed apart', async (count) => {
    const { url, schema } = await migratedSchema()
    const { bench, store } = await opened({ url, schema })
    await store.start(Array.from({ length: count }, () => bench.newRun({ priority: 1 })))
    const last = await bench.start()
    const user = await lockerOf(url, schema, null)
    await user.query(
      `update ${schema}.runs set readiness = 'isolated', crashes = 2, due = due - 1000 + case rank when 0 then 1 else 0 end`,
    )
    await user.query('commit; begin')
    await user.query(`select 1 from ${schema}.runs where shard = 0 and rank < 0 for update`)
    const claimed = await bench.claim({ limit: 1, isolated: true })
    expect([claimed.runs.map(({ id }) => id), claimed.more]).toEqual([[last.id], true])
  })

  it('keeps no suspect from being claimed apart', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema })
    const [first, second] = [await bench.start(), await bench.start()]
    const user = new Client({ connectionString: url })
    await user.connect()
    onTestFinished(() => user.end())
    await user.query(`update ${schema}.runs set readiness = 'isolated', crashes = 2, due = due - 1000`)
    await user.query('begin')
    await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [first.id])
    const claimed = await bench.claim({ limit: 1, isolated: true })
    expect(claimed.runs.map(({ id }) => id)).toEqual([second.id])
    expect(claimed.more).toBe(true)
    await user.query('rollback')
    expect((await bench.claim({ limit: 1, isolated: true })).runs.map(({ id }) => id)).toEqual([first.id])
  })

  it('that has come due is more to be had, and hides neither what has come due beside it nor what comes due next', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema })
    const runs = [await bench.start(), await bench.start(), await bench.start()]
    const [locked, beside, later] = runs.map(({ id }) => id)
    const user = await lockerOf(url, schema, null)
    await user.query(
      `update ${schema}.runs set readiness = 'timed', due = due + case id when $1 then 9000 else -1000 end`,
      [later],
    )
    await user.query('commit')
    await user.query('begin')
    await user.query(`select 1 from ${schema}.runs where id = $1 for update`, [locked])
    const { runs: claimed, more, nextDue, now } = await bench.claim({ limit: 5 })
    expect([claimed.map(({ id }) => id), more]).toEqual([[beside], true])
    expect(nextDue).toBe((runs[2]?.due ?? 0) + 9000)
    expect(nextDue).toBeGreaterThan(now)
    expect(await bench.claim({ limit: 5 })).toMatchObject({ runs: [], more: true, nextDue })
    await user.query('rollback')
    const freed = await bench.claim({ limit: 5 })
    expect([freed.runs.map(({ id }) => id), freed.more, freed.nextDue]).toEqual([[locked], false, nextDue])
  })

  it('keeps no worker busy: one with a free slot hardly asks for it again', async () => {
    const { url, schema } = await migratedSchema()
    let claims = 0
    const onStatement = (name: string): void => void (claims += name === 'claim.lease' ? 1 : 0)
    const { store } = await opened({ url, schema, onStatement })
    const noted = workflow('noted', async (_, number: number) => number)
    const holdfast = await holdfastAt({ store, workflows: [noted] })
    const locked = await holdfast.start(noted, 7)
    const user = await lockerOf(url, schema, locked.id)
    await holdfast.work({ concurrency: 1 })
    // Each pause is twice as long as the one before, from 5 ms to 500, and jitter makes the longest at least 250.
    await until('its pauses are long', () => claims > 7, 30_000)
    claims = 0
    await setTimeout(2_000)
    expect(claims).toBeLessThan(10)
    await user.query('rollback')
    expect(await locked.result({ timeout: '40s' })).toBe(7)
  })

  it('lets a worker with one slot perform all the others', async () => {
    const { url, schema } = await migratedSchema()
    const done: number[] = []
    const noted = workflow('noted', async (_, number: number) => void done.push(number))
    const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [noted] })
    const first = await holdfast.start(noted, 0)
    const runs = await Promise.all([1, 2, 3, 4].map((number) => holdfast.start(noted, number)))
    const user = await lockerOf(url, schema, first.id)
    await holdfast.work({ concurrency: 1 })
    await Promise.all(runs.map((run) => run.result({ timeout: '40s' })))
    expect(done.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4])
    await user.query('rollback')
    expect(await first.result({ timeout: '40s' })).toBe(undefined)
  })
})

/** Opens a transaction of a user that holds the row of a run, if one is named. */
async function lockerOf(url: string, schema: string, runId: string | null): Promise<Client> {
  const user = new Client({ connectionString: url })
  await user.connect()
  onTestFinished(() => user.end())
  await user.query('begin')
  if (runId !== null) await user.query(`select 1 from ${schema}.runs where shard = 0 and id = $1 for update`, [runId])
  return user
}
