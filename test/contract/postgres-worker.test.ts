// The Postgres store keeps the contract with the rights of a worker and no others. Encrypting payloads anew changes what stands in
// a journal, which no worker may: that one call is made as migrator.

import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Store, StoreAdmin } from '../../src/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { createRoles, type Roled } from '../support/postgres-roles.ts'
import { freshSchema, sharedPostgres } from '../support/postgres-shared.ts'
import { openTestStore, type TestStore } from '../support/postgres-store.ts'
import { runContract } from './run-contract.ts'

let making: Promise<Roled> | null = null
const roles = (): Promise<Roled> => (making ??= make())
afterAll(async () => (await making)?.drop())

async function make(): Promise<Roled> {
  const { schema } = await freshSchema()
  return createRoles(await sharedPostgres(), schema)
}

async function openAsWorker(): Promise<TestStore & { readonly roled: Roled }> {
  const roled = await roles()
  // Who may log in is known once the first schema has the roles.
  const opened = await openTestStore({
    hears: true,
    url: roled.urlOf('worker'),
    onMade: (schema) => roled.grant(schema),
  })
  return { ...opened, roled }
}

/** The same store, whose payloads are rewritten by another one. */
function rewrittenBy(store: Store & StoreAdmin, migrator: () => Promise<StoreAdmin & Pick<Store, 'close'>>) {
  const rewritePayloads: StoreAdmin['rewritePayloads'] = async (request) => {
    const other = await migrator()
    try {
      return await other.rewritePayloads(request)
    } finally {
      await other.close()
    }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'rewritePayloads') return rewritePayloads
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

runContract('Postgres, as a worker,', async () => {
  const { store, clock, schema, roled } = await openAsWorker()
  const now = clock.expression
  const migrator = () => openPostgresStore({ url: roled.urlOf('migrator'), schema, now, listen: false, connections: 1 })
  return { store: rewrittenBy(store, migrator), clock }
})

describe('a worker', () => {
  it('that was taken over by an attacker can neither change nor delete what a journal says', async () => {
    const { store } = await openAsWorker()
    onTestFinished(() => store.close())
    const change = (sql: string): Promise<unknown> =>
      store.transact((client) => (client as { query(text: string): Promise<unknown> }).query(sql))
    const quoted = store.dialect.schema
    for (const sql of [
      `update ${quoted}.journal set data = 'forged'`,
      `delete from ${quoted}.journal`,
      `delete from ${quoted}.runs`,
      `delete from ${quoted}.messages`,
      `update ${quoted}.secrets set token_key = 'known'`,
      `update ${quoted}.settings set value = '99'`,
      `create table ${quoted}.mine (id integer)`,
      `drop table ${quoted}.tags`,
    ]) {
      await expect(change(sql)).rejects.toMatchObject({ code: '42501' })
    }
  })
})
