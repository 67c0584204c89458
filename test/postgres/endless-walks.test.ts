// While a transaction holds an old snapshot, millions of dead entries may lie at the front of an index, and a walk that begins there
// takes the database longer than it may. A worker that has only just come knows no other place to begin: it begins all the same.

import { Pool, type PoolClient } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { workflow } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { holdfastAt, opened } from './proxied.ts'

/** As a statement timeout: it takes its time, and that is what the rest after it is measured by. */
const refusal = `do $$ begin
  perform pg_sleep(0.5);
  raise exception 'canceling statement due to statement timeout' using errcode = '57014';
end $$`

interface Query {
  readonly text: string
  readonly values?: readonly unknown[]
}

/** A pool on which no walk from the front ever comes to its end. */
function endlessPool(url: string): { readonly pool: Pool; readonly cut: string[] } {
  const pool = new Pool({ connectionString: url, max: 6, pipeline: true })
  onTestFinished(() => pool.end())
  const cut: string[] = []
  const isWalk = ({ text, values = [] }: Query): string | null => {
    if (text.includes('with recursive') && text.includes('holder')) return 'look'
    const isFront = values.some((value) => String(value).includes('-2147483648'))
    return isFront && text.includes('token = run.token + 1') ? 'claim' : null
  }
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client) as (config: Query) => unknown
    client.query = ((config: Query) => {
      const walk = isWalk(config)
      if (walk !== null) cut.push(walk)
      return query(walk === null ? config : { text: refusal })
    }) as typeof client.query
  })
  return { pool, cut }
}

describe('where no walk from the front comes to its end', { timeout: 60_000 }, () => {
  it('a worker begins, claims what is started now, and takes over from those that die now', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema })
    const { pool, cut } = endlessPool(url)
    const store = await openPostgresStore({ pool, schema, listen: false })
    onTestFinished(() => store.close())
    const flow = workflow('flow', (ctx) => ctx.step('one', () => 1))
    const holdfast = await holdfastAt({ store, workflows: [flow] })
    await holdfast.work({ lease: '5s' })
    // Started elsewhere, so that only a claim finds it.
    const elsewhere = await holdfastAt({ store: (await opened({ url, schema })).store, workflows: [flow] })
    expect(await (await elsewhere.start(flow)).result({ timeout: '30s' })).toBe(1)
    const held = await bench.hold({ lease: { session: 'dead', token: 1 } })
    await bench.beat('dead', { leaseMs: 1 })
    await until('the run of the dead is taken over', async () => (await bench.run(held.runId)).session === null, 30_000)
    expect(new Set(cut)).toEqual(new Set(['look', 'claim']))
  })
})
