// Another open transaction holds what a chore is about. That chore waits; those behind it do not.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { defaultPageLimits } from '../../src/core/model/chore.ts'
import type { ContractBench } from '../../src/testing/contract/bench.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

/** A run that has ended with more unread than goes with its end. */
async function leftover(bench: ContractBench): Promise<string> {
  const held = await bench.hold()
  const messages = Array.from({ length: defaultPageLimits.withEnd + 5 }, () => bench.message(held.runId))
  await bench.store.deliver(messages)
  await bench.commit(held, { append: [ending('succeeded')], status: 'succeeded' })
  return held.runId
}

describe('a chore whose target another transaction has locked', { timeout: 60_000 }, () => {
  it('is passed over: the others are done while the lock is held, and it is done afterwards', async () => {
    const { url, schema } = await migratedSchema()
    const { bench } = await opened({ url, schema, storageTimeout: 3_000 })
    const locked = await leftover(bench)
    const others = [await leftover(bench), await leftover(bench)]
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    await client.query('begin')
    await client.query(`select 1 from ${schema}.runs where id = $1 for update`, [locked])
    // Each of them in a call of its own, in the order in which they were left; then none is left that may be taken.
    for (const _chore of [locked, ...others]) expect(await bench.store.doChores()).toMatchObject({ worked: true })
    for (const runId of others) expect(await bench.mailbox(runId)).toEqual([])
    expect(await bench.mailbox(locked)).toHaveLength(5)
    const { worked, nextInMs } = await bench.store.doChores()
    expect([worked, nextInMs !== null]).toEqual([false, true])
    await client.query('rollback')
    await until('it is done', async () => {
      await bench.store.doChores()
      return (await bench.mailbox(locked)).length === 0
    })
  })
})
