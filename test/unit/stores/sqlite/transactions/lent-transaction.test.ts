// The end of a lent transaction, on a connection that refuses to be set right after it: the promise of its end settles, and the
// next write meets the error.

import { expect, it } from 'vitest'
import { Connection } from '../../../../../src/stores/sqlite/driver/connection.ts'
import { loadFileDriver } from '../../../../../src/stores/sqlite/driver/file-driver.ts'
import { openSqliteStore, type SqliteStoreOptions } from '../../../../../src/stores/sqlite/index.ts'
import { LentTransaction } from '../../../../../src/stores/sqlite/transactions/lent-transaction.ts'
import { temporaryPaths } from '../folder.ts'

const nextPath = temporaryPaths()

function setUp() {
  const said: string[] = []
  const driver = { isRefusing: true }
  const db = new Connection({
    name: 'libsql',
    database: {},
    prepare: () => {
      throw new Error('Nothing is prepared here')
    },
    exec: (sql) => {
      if (driver.isRefusing && sql.startsWith('pragma')) throw new Error('database is locked')
      said.push(sql)
    },
    close: () => undefined,
  })
  const over: boolean[] = []
  const aborting = new AbortController()
  const transaction = new LentTransaction({
    db,
    storageMs: 60_000,
    signal: aborting.signal,
    onOver: (isCommitted) => void over.push(isCommitted),
  })
  return { db, driver, said, over, aborting, transaction }
}

it('a function that fails settles its transaction, also if the connection refuses a pragma at its end', async () => {
  const { transaction, over } = setUp()
  await expect(transaction.perform(() => Promise.reject(new Error('theirs')))).rejects.toThrow('theirs')
  expect(over).toEqual([false])
})

it('a signal that is aborted settles its transaction, also if the connection refuses a pragma at its end', async () => {
  const { transaction, over, aborting } = setUp()
  const ended = transaction.perform(() => new Promise(() => undefined))
  aborting.abort(new Error('enough'))
  await expect(ended).rejects.toThrow('enough')
  expect(over).toEqual([false])
})

it('the next write allows writes again, which a function may have forbidden, or reports why it cannot', async () => {
  const { transaction, db, driver, said } = setUp()
  await expect(transaction.perform(() => Promise.reject(new Error('theirs')))).rejects.toThrow('theirs')
  expect(() => db.write(() => 1)).toThrow('database is locked')
  expect(() => db.begin()).toThrow('database is locked')
  driver.isRefusing = false
  said.length = 0
  expect(db.write(() => 1)).toBe(1)
  expect(said[0]).toContain('query_only = off')
  said.length = 0
  expect(db.write(() => 1)).toBe(1)
  expect(said).toEqual(['begin immediate', 'commit'])
})

it('a user who closes the database inside a transaction learns of it there, and with the next call', async () => {
  const database = (await loadFileDriver('libsql'))(nextPath()).database as NonNullable<
    SqliteStoreOptions['handle']
  > & {
    close(): void
  }
  const store = await openSqliteStore({ handle: database })
  await store.migrate()
  const ended = store.transact(() => {
    database.close()
    return Promise.reject(new Error('theirs'))
  })
  await expect(ended).rejects.toThrow('theirs')
  await expect(store.get(['r'])).rejects.toThrow('not open')
  await store.close()
})
