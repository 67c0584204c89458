// Strangers hold rows of runs that this process wants to commit to, each in a flush of its own. Nobody else has a reason to wait:
// an unrelated run ends while the locks are held, whatever the lease is, and however many rows there are.

import { setImmediate } from 'node:timers/promises'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow, type Holdfast } from 'holdfast'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** What becomes of it shows that a caller was not held up for as long as this takes: the server shows it, and no clock here. */
async function beforeStranger(
  stranger: Client,
  seconds: number,
  work: () => Promise<void>,
): Promise<readonly string[]> {
  const order: string[] = []
  const slept = stranger.query(`select pg_sleep(${seconds})`).then(() => order.push('stranger'))
  await Promise.all([slept, work().then(() => order.push('unrelated'))])
  return order
}

async function expectSound(holdfast: Holdfast): Promise<void> {
  expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
}

describe('rows that strangers hold while their runs want to commit', { timeout: 120_000 }, () => {
  it.each([
    { lease: '2s', rows: 2 },
    { lease: '5s', rows: 2 },
    { lease: '30s', rows: 2 },
    { lease: '5s', rows: 40 },
  ] as const)('keep no place of the usual flushes: lease $lease, $rows rows', async ({ lease, rows }) => {
    const { url, schema } = await migratedSchema()
    const gates: (() => void)[] = []
    const gated = workflow('gated', (ctx, number: number) =>
      ctx.step('wait', () => new Promise<number>((resolve) => gates.push(() => resolve(number)))),
    )
    const plain = workflow('plain', (ctx, number: number) => ctx.step('add', () => number + 1))
    const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [gated, plain] })
    await holdfast.work({ lease, concurrency: rows + 10 })
    const locked = await Promise.all(Array.from({ length: rows }, (_, number) => holdfast.start(gated, number)))
    await until('all have begun', () => gates.length === rows, 60_000)
    const stranger = await connected(url)
    await stranger.query('begin')
    const ids = locked.map(({ id }) => id)
    await stranger.query(`select 1 from ${schema}.runs where id = any($1) for update`, [ids])

    const order = await beforeStranger(stranger, 2, async () => {
      // One after the other, so that each goes by itself.
      for (const open of gates) {
        open()
        await setImmediate()
      }
      for (let number = 0; number < 3; number += 1) {
        const run = await holdfast.start(plain, number)
        expect(await run.result({ timeout: '60s' })).toBe(number + 1)
      }
    })
    expect(order).toEqual(['unrelated', 'stranger'])
    await stranger.query('commit')
    expect(await Promise.all(locked.map((run) => run.result({ timeout: '60s' })))).toEqual(locked.map((_, at) => at))
    await expectSound(holdfast)
  })
})

describe('an entry that takes the database longer than it may', { timeout: 120_000 }, () => {
  it.each([
    { lease: '5s', count: 2, seconds: 10 },
    { lease: '5s', count: 200, seconds: 10 },
    { lease: '30s', count: 200, seconds: 28 },
  ] as const)(
    'holds its neighbours up for two storage timeouts at most: lease $lease, $count of them',
    async ({ lease, count, seconds }) => {
      const { url, schema } = await migratedSchema()
      const { opened, open } = gate()
      let begun = 0
      const noted = workflow('noted', (ctx, name: string) =>
        ctx.step(name, async () => {
          begun += 1
          await opened
        }),
      )
      const holdfast = await holdfastAt({ store: `${url}?schema=${schema}`, workflows: [noted] })
      await holdfast.work({ lease, concurrency: count + 1 })
      const stranger = await connected(url)
      await stranger.query(`
        create function ${schema}.poison() returns trigger language plpgsql as
          $$ begin perform pg_sleep(600); return new; end $$;
        create trigger poison before insert on ${schema}.journal for each row when (new.name = 'poison')
          execute function ${schema}.poison()`)
      const names = Array.from({ length: count }, (_, number) => `step ${number}`)
      names.splice(count >> 1, 0, 'poison')
      const runs = await Promise.all(names.map((name) => holdfast.start(noted, name)))
      await until('all have begun', () => begun === names.length, 60_000)
      const order = await beforeStranger(stranger, seconds, async () => {
        open()
        const rest = runs.filter((_, at) => names[at] !== 'poison')
        await Promise.all(rest.map((run) => run.result({ timeout: '60s' })))
      })
      expect(order).toEqual(['unrelated', 'stranger'])
      const poisoned = runs[count >> 1] as (typeof runs)[0]
      expect(await poisoned.status()).toBe('running')
      await stranger.query(`drop trigger poison on ${schema}.journal`)
      await poisoned.result({ timeout: '90s' })
      await expectSound(holdfast)
    },
  )
})

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}
