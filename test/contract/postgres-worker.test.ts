// The Postgres store keeps the contract with the rights of a worker and no others.

import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { AsWorker } from '../support/as-worker.ts'
import { sharedPostgres } from '../support/postgres-shared.ts'
import { runContract } from './run-contract.ts'

const asWorker = new AsWorker(sharedPostgres)
afterAll(() => asWorker.drop())

runContract('Postgres, as a worker,', () => asWorker.subject())

describe('a worker', () => {
  it('that was taken over by an attacker can neither change nor delete what a journal says', async () => {
    const { store } = await asWorker.open()
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
