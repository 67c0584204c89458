// A role, a database or a server may make SERIALIZABLE its default. Our statements are written for READ COMMITTED, and a
// transaction of a user is serializable only if it asks for that: otherwise each message for its run would refuse it.

import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow } from '../../src/index.ts'
import { openPostgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/index.ts'
import { databaseClock } from '../../src/stores/postgres/dialect.ts'
import { migratedSchema } from '../support/postgres-shared.ts'
import { connectedTo, type Tx } from './lent.ts'

/** The time, which a statement gets under READ COMMITTED alone. */
const now = `(${databaseClock} + 0 * (1 / (current_setting('transaction_isolation') = 'read committed')::integer))`

interface Place {
  readonly url: string
  readonly schema: string
}

/** A schema, and the address of a role whose transactions are serializable by default. */
async function serializableByDefault(): Promise<Place> {
  const { url, schema } = await migratedSchema()
  const admin = await connectedTo(url)
  const role = `strict_${randomBytes(4).toString('hex')}`
  await admin.query(`create role ${role} login superuser password 'known'`)
  await admin.query(`alter role ${role} set default_transaction_isolation = 'serializable'`)
  onTestFinished(() => admin.query(`drop role ${role}`).then(() => undefined))
  const own = new URL(url)
  own.username = role
  own.password = 'known'
  const client = await connectedTo(own.href)
  expect((await client.query(`show transaction_isolation`)).rows).toEqual([{ transaction_isolation: 'serializable' }])
  return { url: own.href, schema }
}

const kinds: readonly { readonly kind: string; readonly of: (place: Place) => PostgresStoreOptions }[] = [
  { kind: 'the address', of: ({ url, schema }) => ({ url, schema, now }) },
  {
    kind: 'a pool',
    of: ({ url, schema }) => {
      const pool = new Pool({ connectionString: url, max: 6 })
      onTestFinished(() => pool.end())
      return { pool, schema, now, listen: false }
    },
  },
]

describe.each(kinds)('a store by $kind of a role whose default is SERIALIZABLE', { timeout: 60_000 }, ({ of }) => {
  it('sends its own statements under READ COMMITTED, also outside of transactions', async () => {
    const store = await openPostgresStore(of(await serializableByDefault()))
    onTestFinished(() => store.close())
    const done = workflow('done', async (ctx, n: number) => {
      await ctx.step('a', () => n)
      await ctx.transaction('b', (tx: Tx) => tx.query('select 1').then(() => n))
      return n
    })
    const holdfast = await createHoldfast({ store, workflows: [done] })
    onTestFinished(() => holdfast.close())
    await holdfast.work({ signals: false })
    const runs = await Promise.all(Array.from({ length: 20 }, (_, n) => holdfast.start(done, n)))
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 20 }, (_, n) => n))
    const entries = (await Promise.all(runs.map((run) => holdfast.journal(run)))).flat()
    expect(entries.filter(({ kind }) => kind === 'attempt-failed')).toEqual([])
  })

  it("lends transactions under READ COMMITTED, and as 'serializable' if that is asked for", async () => {
    const store = await openPostgresStore(of(await serializableByDefault()))
    onTestFinished(() => store.close())
    const read = (handle: unknown): Promise<unknown> =>
      (handle as Tx).query('show transaction_isolation').then(({ rows }) => rows)
    expect(await store.transact(read)).toEqual([{ transaction_isolation: 'read committed' }])
    expect(await store.transact(read, { isolation: 'serializable' })).toEqual([
      { transaction_isolation: 'serializable' },
    ])
  })
})
