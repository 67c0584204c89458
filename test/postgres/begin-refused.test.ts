// A `begin` can be refused as every statement can: by a timeout, or by an operator who cancels what is under way. What is already
// on its way behind it would then be executed without a transaction, each statement by itself.

import { Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { topic, workflow } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt } from './proxied.ts'

const refusal = `do $$ begin raise exception 'canceling statement' using errcode = '57014'; end $$`

interface Refusing {
  readonly pool: Pool
  /** From here on some begins are refused, and the first statement that would give up what was not read. */
  readonly arm: () => void
  /** What was refused. */
  readonly refused: readonly string[]
}

const mostBegins = 6

function refusingPool(url: string): Refusing {
  const pool = new Pool({ connectionString: url, max: 4, pipeline: true })
  onTestFinished(() => pool.end())
  let isArmed = false
  const refused: string[] = []
  const isRefused = (text: string): boolean => {
    const name = text.startsWith('begin') ? 'begin' : text.includes('fate = ') ? 'mail' : null
    if (!isArmed || name === null) return false
    const times = refused.filter((one) => one === name).length
    if (times >= (name === 'begin' ? mostBegins : 1)) return false
    refused.push(name)
    return true
  }
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client) as (config: { readonly text: string }) => unknown
    client.query = ((config: { readonly text: string }) =>
      query(isRefused(config.text) ? { text: refusal } : config)) as typeof client.query
  })
  return { pool, refused, arm: () => void (isArmed = true) }
}

describe('a transaction whose begin is refused', { timeout: 60_000 }, () => {
  it('IF-S7 does nothing: a run that ends with unread mail does so with its dead letter, or not at all', async () => {
    const { url, schema } = await migratedSchema()
    const offers = topic<number>('offers', { onUnread: 'dead-letter' })
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    let begun = false
    const deaf = workflow('deaf', async (ctx) => {
      await ctx.step('work', async () => {
        begun = true
        await gate
      })
    })
    const { pool, refused, arm } = refusingPool(url)
    const store = await openPostgresStore({ pool, schema, listen: false })
    const holdfast = await holdfastAt({ store, workflows: [deaf] })
    await holdfast.work({ lease: '30s', heartbeat: '10s' })
    const run = await holdfast.start(deaf)
    await until('the step is under way', () => begun, 10_000)
    expect(await run.signal(offers, 1, { id: 'one' })).toMatchObject({ outcome: 'queued' })
    arm()
    open()
    await run.result({ timeout: '40s' })
    expect(refused).toContain('begin')
    expect(refused).toContain('mail')
    const { letters } = await holdfast.deadLetters({ name: offers })
    expect(letters).toMatchObject([{ runId: run.id, id: 'one' }])
  })
})
