// Transactions of users in SQLite, through every driver that this runtime has.

import { isBuiltin } from 'node:module'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openLibsql } from '../../../../src/stores/sqlite/libsql.ts'
import { openNodeSqlite } from '../../../../src/stores/sqlite/node-sqlite.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import type { SqliteStore } from '../../../../src/stores/sqlite/store.ts'
import type { NewRun, StoreTransactions } from '../../../../src/store.ts'
import { createContractBench, createVirtualClock } from '../../../../src/testing/index.ts'
import { temporaryPaths } from './folder.ts'

interface Handle {
  exec(sql: string): unknown
  prepare(sql: string): { all(): unknown[] }
  close(): void
}

const drivers = [
  { name: 'libsql', open: openLibsql },
  { name: 'node:sqlite', open: openNodeSqlite },
] as const

const nextPath = temporaryPaths()

async function world(name: 'libsql' | 'node:sqlite'): Promise<{
  readonly store: SqliteStore
  readonly handle: Handle
  readonly newRun: () => NewRun
  readonly exists: (run: NewRun) => Promise<boolean>
}> {
  const path = nextPath()
  const clock = createVirtualClock()
  const store = await openSqliteStore({ path, driver: name, clock, storageTimeout: 200 })
  onTestFinished(() => store.close())
  await store.migrate()
  const driver = await drivers.find((one) => one.name === name)!.open(path)
  const handle = driver!.database as Handle
  onTestFinished(() => handle.close())
  const { newRun } = createContractBench({ store, clock })
  return { store, handle, newRun, exists: async ({ id }) => (await store.get([id]))[0] !== undefined }
}

describe.each(drivers)('a transaction of $name', ({ name }) => {
  const skips = name === 'node:sqlite' && !isBuiltin('node:sqlite')

  it.skipIf(skips)('on a connection of the user decides what becomes of what took place in it', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const [lost, kept] = [newRun(), newRun()]
    handle.exec('begin')
    await store.within(handle).start([lost])
    handle.exec('rollback')
    expect(await exists(lost)).toBe(false)
    handle.exec('begin')
    await store.within(handle).start([kept])
    handle.exec('commit')
    expect(await exists(kept)).toBe(true)
  })

  it.skipIf(skips)('is noticed also where a library does not tell whether one is open', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const silent = { exec: (sql: string) => handle.exec(sql), prepare: (sql: string) => handle.prepare(sql) }
    expect(() => store.within(silent)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    const run = newRun()
    handle.exec('begin immediate')
    await store.within(silent).start([run])
    handle.exec('commit')
    expect(await exists(run)).toBe(true)
  })

  it.skipIf(skips)('stays usable when a call in it fails, and nothing of that call is left', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const [whole, half] = [newRun(), newRun()]
    handle.exec('begin immediate')
    const within = store.within(handle)
    await expect(within.start([half, { ...newRun(), shard: 3 }])).rejects.toMatchObject({ code: 'BUG' })
    await within.start([whole])
    handle.exec('commit')
    expect([await exists(half), await exists(whole)]).toEqual([false, true])
  })

  it.skipIf(skips)('keeps others of this process waiting, but no longer than the storage timeout', async () => {
    const { store, handle, newRun } = await world(name)
    handle.exec('begin')
    await store.within(handle).load([{ runId: newRun().id, after: 0, limit: 1 }])
    // Nothing was written yet, so that who waited long enough may go on.
    expect(await store.start([newRun()])).toMatchObject([{ created: true }])
    handle.exec('rollback')
  })

  it.skipIf(skips)('that the store lends is nobody’s once it is over', async () => {
    const { store, newRun, exists } = await world(name)
    let escaped: { handle: Handle; within: ReturnType<StoreTransactions['within']> } | undefined
    await store.transact(async (handle, within) => {
      escaped = { handle: handle as Handle, within }
      expect((handle as Handle).prepare('select 1 as one').all()).toEqual([{ one: 1 }])
    })
    const run = newRun()
    const over = expect.objectContaining({ code: 'INVALID_OPTION' }) as Error
    expect(() => escaped!.handle.exec('delete from runs')).toThrow(over)
    await expect(escaped!.within.start([run])).rejects.toEqual(over)
    // Not even while the next one is open on the same connection.
    await store.transact(async () => {
      await expect(escaped!.within.start([run])).rejects.toEqual(over)
      expect(() => store.within(escaped!.handle)).toThrow(over)
    })
    expect(await exists(run)).toBe(false)
  })

  it.skipIf(skips)('that its function has ended by itself is refused', async () => {
    const { store, newRun, exists } = await world(name)
    const run = newRun()
    const ended = store.transact(async (handle, within) => {
      ;(handle as Handle).exec('commit')
      await within.start([run])
    })
    await expect(ended).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(await exists(run)).toBe(false)
    expect(await store.start([run])).toMatchObject([{ created: true }])
  })
})
