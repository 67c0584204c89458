// Another open transaction holds the row of an instance: no effect waits for that when it ends, and no other instance when inputs
// of many are committed together.

import { Client } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import type { Draft } from '../../src/core/model/entry.ts'
import { ending } from '../../src/testing/contract/drafts.ts'
import { outbound } from '../../src/testing/contract/exchanges.ts'
import { decide, decidedRun, unheld } from '../../src/testing/contract/unheld.ts'
import { until } from '../support/until.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { opened } from './proxied.ts'

const input: Draft = { kind: 'input', name: 'Do', meta: { from: { kind: 'call' }, outcome: 'accepted' }, data: '1' }

async function rig() {
  const { url, schema } = await migratedSchema()
  const { store, bench } = await opened({ url, schema, storageTimeout: 3_000 })
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  const instance = async (): Promise<string> => {
    const given = decidedRun(bench, { append: [input] })
    await store.start([given])
    return given.id
  }
  const lock = async (runId: string): Promise<void> => {
    await client.query('begin')
    await client.query(`select 1 from ${schema}.runs where id = $1 for update`, [runId])
  }
  return { bench, store, instance, lock, letGo: () => client.query('rollback') }
}

it(
  'IF-C4 an effect ends although its instance is locked, and its outcome comes as a message',
  { timeout: 60_000 },
  async () => {
    const { bench, store, instance, lock, letGo } = await rig()
    const id = await instance()
    const lease = { session: 'performer', token: 1 }
    await store.beat({ session: 'performer', leaseMs: 1_000_000 })
    const effect = bench.child(id, { lease })
    await decide(bench, id, { append: [input], outbound: outbound({ starts: [effect] }) })
    const settles = unheld(bench, await bench.run(id), { append: [input] })
    const over = { append: [ending('succeeded')], status: 'succeeded', settles } as const
    const end = bench.transition({ runId: effect.run.id, lease, seq: 1 }, over)
    await lock(id)
    expect(await bench.send(end)).toMatchObject({
      outcome: 'committed',
      settled: { outcome: 'refused', reason: 'busy' },
    })
    expect((await bench.run(effect.run.id)).status).toBe('succeeded')
    await bench.chores()
    expect((await bench.run(id)).inbox).toBe(0)
    await letGo()
    await until('the instance has the message', async () => {
      await bench.chores()
      return (await bench.run(id)).inbox === 1
    })
    expect(await bench.run(id)).toMatchObject({ status: 'waiting', readiness: 'ready', seq: 3 })
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  },
)

it(
  'IF-C1 of inputs of many instances, only that of the locked one is answered as busy',
  { timeout: 60_000 },
  async () => {
    const { bench, store, instance, lock, letGo } = await rig()
    const ids = [await instance(), await instance(), await instance()]
    const given = ids.map((id) => unheld(bench, { id, seq: 2 }, { append: [input] }))
    await lock(ids[1] as string)
    const answers = await store.commit(given)
    expect(answers.map((one) => (one.outcome === 'refused' ? one.reason : one.seq))).toEqual([3, 'busy', 3])
    await letGo()
    const [again] = await store.commit([given[1] as (typeof given)[number]], { mayWait: true })
    expect(again).toMatchObject({ outcome: 'committed', seq: 3 })
  },
)
