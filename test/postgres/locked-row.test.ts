// Somebody's open transaction holds the row of one run. That run must wait; nobody else has a reason to.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { until } from '../chaos/crew.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

const others = 499

describe('a run whose row is locked by somebody else', { timeout: 120_000 }, () => {
  it('IF-C1 waits alone: 499 others that are committed with it end while the lock is still held', async () => {
    const { url, schema } = await freshSchema()
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
    expect((await holdfast.check()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})
