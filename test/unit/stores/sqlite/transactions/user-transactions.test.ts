// Transactions of users in SQLite, through every driver that this runtime has.

import { isBuiltin } from 'node:module'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadFileDriver } from '../../../../../src/stores/sqlite/driver/file-driver.ts'
import { openSqliteStore } from '../../../../../src/stores/sqlite/index.ts'
import type { SqliteStore } from '../../../../../src/stores/sqlite/store.ts'
import type { NewRun, StoreTransactions } from '../../../../../src/store.ts'
import { createRecordingLogger, createVirtualClock } from '../../../../../src/testing/index.ts'
import { createContractBench } from '../../../../../src/testing/contract/index.ts'
import { temporaryPaths } from '../folder.ts'
import { turns } from '../turns.ts'

interface Handle {
  exec(sql: string): unknown
  prepare(sql: string): { all(): unknown[] }
  close(): void
}

const drivers = [{ name: 'libsql' }, { name: 'node:sqlite' }] as const

const nextPath = temporaryPaths()

async function world(name: 'libsql' | 'node:sqlite'): Promise<{
  readonly store: SqliteStore
  readonly handle: Handle
  readonly newRun: () => NewRun
  readonly exists: (run: NewRun) => Promise<boolean>
  readonly warnings: () => readonly string[]
}> {
  const path = nextPath()
  const clock = createVirtualClock()
  const logger = createRecordingLogger()
  const store = await openSqliteStore({ path, driver: name, clock, storageTimeout: 200, logger })
  onTestFinished(() => store.close())
  await store.migrate()
  const open = await loadFileDriver(name)
  const handle = open(path).database as Handle
  onTestFinished(() => {
    try {
      handle.close()
    } catch {
      // The test has closed it, and node:sqlite objects to a second time.
    }
  })
  const { newRun } = createContractBench({ store, clock })
  const exists = async ({ id }: NewRun): Promise<boolean> => (await store.get([id]))[0] !== undefined
  return { store, handle, newRun, exists, warnings: () => logger.lines.map(({ message }) => message) }
}

const unavailable = { code: 'STORE_UNAVAILABLE' } as const

describe.each(drivers)('a transaction of $name', ({ name }) => {
  const skips = name === 'node:sqlite' && !isBuiltin('node:sqlite')

  it.skipIf(skips)('on a connection of the user decides what becomes of what took place in it', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const [lost, kept] = [newRun(), newRun()]
    handle.exec('begin')
    await store.inTransaction(handle).start([lost])
    handle.exec('rollback')
    expect(await exists(lost)).toBe(false)
    handle.exec('begin')
    await store.inTransaction(handle).start([kept])
    handle.exec('commit')
    expect(await exists(kept)).toBe(true)
  })

  it.skipIf(skips)('is noticed also where a library does not say whether one is open', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const silent = { exec: (sql: string) => handle.exec(sql), prepare: (sql: string) => handle.prepare(sql) }
    expect(() => store.inTransaction(silent)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    const run = newRun()
    handle.exec('begin immediate')
    await store.inTransaction(silent).start([run])
    handle.exec('commit')
    expect(await exists(run)).toBe(true)
  })

  it.skipIf(skips)('stays usable when a call in it fails, and nothing of that call is left', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const [whole, half] = [newRun(), newRun()]
    handle.exec('begin immediate')
    const within = store.inTransaction(handle)
    await expect(within.start([half, { ...newRun(), shard: 3 }])).rejects.toMatchObject({ code: 'BUG' })
    await within.start([whole])
    handle.exec('commit')
    expect([await exists(half), await exists(whole)]).toEqual([false, true])
  })

  it.skipIf(skips)('that stays open keeps who writes waiting, one after the other, and says so once', async () => {
    const { store, handle, newRun, exists, warnings } = await world(name)
    const [first, second, late] = [newRun(), newRun(), newRun()]
    handle.exec('begin')
    await store.inTransaction(handle).load([{ runId: first.id, after: 0, limit: 1 }])
    // The storage timeout ends each call, not the transaction.
    await expect(store.start([first])).rejects.toMatchObject(unavailable)
    await expect(store.start([second])).rejects.toMatchObject(unavailable)
    const waiting = store.start([late])
    // Who only reads does not wait for a transaction on another connection.
    expect(await exists(late)).toBe(false)
    handle.exec('rollback')
    expect(await waiting).toMatchObject([{ created: true }])
    expect(await Promise.all([first, second, late].map(exists))).toEqual([false, false, true])
    expect(warnings()).toEqual([expect.stringContaining('Commit it or roll it back')])
  })

  it.skipIf(skips)('is over when its connection is closed', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const run = newRun()
    handle.exec('begin')
    await store.inTransaction(handle).load([{ runId: run.id, after: 0, limit: 1 }])
    handle.close()
    await store.start([run])
    expect(await exists(run)).toBe(true)
  })

  it.skipIf(skips)('that waits for another of this process may be asked for several things at once', async () => {
    const { store, handle, newRun, exists } = await world(name)
    const [one, two] = [newRun(), newRun()]
    const asked = store.transact(async () => {
      handle.exec('begin')
      const within = store.inTransaction(handle)
      return { both: Promise.all([within.start([one]), within.start([two])]) }
    })
    const { both } = await asked
    expect(await both).toMatchObject([[{ created: true }], [{ created: true }]])
    handle.exec('commit')
    expect([await exists(one), await exists(two)]).toEqual([true, true])
  })

  it.skipIf(skips)('that is aborted leaves nothing, and its function cannot go on with it', async () => {
    const { store, newRun, exists } = await world(name)
    const run = newRun()
    const stopping = new AbortController()
    const reason = new Error('Enough')
    let lent: Handle | undefined
    let statement: ReturnType<Handle['prepare']> | undefined
    const hanging = store.transact(
      async (handle, within) => {
        lent = handle as Handle
        statement = lent.prepare('select 1')
        await within.start([run])
        return new Promise<never>(() => undefined)
      },
      { signal: stopping.signal },
    )
    const next = store.start([newRun()])
    await turns(20)
    stopping.abort(reason)
    await expect(hanging).rejects.toBe(reason)
    expect(await next).toMatchObject([{ created: true }])
    expect(await exists(run)).toBe(false)
    const over = expect.objectContaining({ code: 'INVALID_OPTION' }) as Error
    expect(() => lent!.exec('delete from runs')).toThrow(over)
    expect(() => statement!.all()).toThrow(over)
  })

  it.skipIf(skips)('that waits for another is gone from the queue when it is aborted', async () => {
    const { store } = await world(name)
    const stopping = new AbortController()
    let calls = 0
    await store.transact(async () => {
      const waiting = store.transact(async () => void (calls += 1), { signal: stopping.signal })
      stopping.abort(new Error('Enough'))
      await expect(waiting).rejects.toThrow('Enough')
    })
    await store.transact(async () => undefined)
    expect(calls).toBe(0)
  })

  it.skipIf(skips)('is rolled back when the store is closed, and everyone who waits gets an error', async () => {
    const { store, handle, newRun } = await world(name)
    const run = newRun()
    const hanging = store.transact(async (_handle, within) => {
      await within.start([run])
      return new Promise<never>(() => undefined)
    })
    const waiting = [store.start([newRun()]), store.get([run.id]), store.transact(async () => undefined)]
    await turns(5)
    const closed = { code: 'CLOSED' }
    const refused = [hanging, ...waiting].map((one) => expect(one).rejects.toMatchObject(closed))
    await store.close()
    await Promise.all(refused)
    expect(handle.prepare('select id from runs').all()).toEqual([])
    handle.exec('begin immediate')
    handle.exec('rollback')
  })

  it.skipIf(skips)('that the store lends is nobody’s once it is over', async () => {
    const { store, newRun, exists } = await world(name)
    let escaped: { handle: Handle; within: ReturnType<StoreTransactions['inTransaction']> } | undefined
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
      expect(() => store.inTransaction(escaped!.handle)).toThrow(over)
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

  it.skipIf(skips).each(['commit', 'rollback'])(
    'that its function has ended with %s, and begun anew, is not taken for the one that was lent',
    async (end) => {
      const { store, newRun, exists } = await world(name)
      const [run, next] = [newRun(), newRun()]
      const ended = store.transact(async (given, within) => {
        const handle = given as Handle
        handle.exec('create table notes (text text)')
        handle.exec(end)
        handle.exec('begin immediate')
        await within.start([run])
      })
      await expect(ended).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      expect(await exists(run)).toBe(false)
      expect(await store.start([next])).toMatchObject([{ created: true }])
    },
  )

  it.skipIf(skips)(
    'whose function closes the connection fails alone, and one that forbids writes forbids only its own',
    async () => {
      const { store, newRun, exists } = await world(name)
      const closing = store.transact(async (handle) => (handle as Handle).close())
      await expect(closing).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('close()') as string,
      })
      await store.transact(async (handle) => void (handle as Handle).exec('pragma query_only = on'))
      const run = newRun()
      await store.transact(async (handle, within) => {
        ;(handle as Handle).exec('pragma query_only = on')
        await within.start([run])
      })
      expect(await exists(run)).toBe(true)
      expect(await store.start([newRun()])).toMatchObject([{ created: true }])
    },
  )

  it.skipIf(skips).each(['max_page_count = 1', 'locking_mode = exclusive'])(
    'whose function sets "%s" sets it for itself alone',
    async (setting) => {
      const { store, newRun, exists } = await world(name)
      const pragma = `pragma ${setting.replace(/ .*/, '')}`
      const value = () => store.transact(async (handle) => (handle as Handle).prepare(pragma).all())
      const before = await value()
      await store.transact(async (handle) => void (handle as Handle).exec(`pragma ${setting}`))
      expect(await value()).toEqual(before)
      const many = Array.from({ length: 200 }, () => newRun())
      expect(await store.start(many)).toHaveLength(200)
      expect(await exists(many[199] as (typeof many)[0])).toBe(true)
    },
  )

  it.skipIf(skips).each(['runs', 'journal', 'messages', 'notes', 'odd"name'])(
    'whose function makes a temporary table "%s" leaves nothing of it to others',
    async (table) => {
      const { store, newRun, exists } = await world(name)
      const [first, second, third] = [newRun(), newRun(), newRun()]
      const quoted = `"${table.replaceAll('"', '""')}"`
      for (const run of [first, second]) {
        await store.transact(async (given, within) => {
          const handle = given as Handle
          handle.exec(`create temp table ${quoted} (text text); create temp view seen as select * from ${quoted}`)
          handle.exec(`insert into ${quoted} values ('theirs')`)
          await within.start([run])
        })
        expect(await exists(run)).toBe(true)
      }
      expect(await store.start([third])).toMatchObject([{ created: true }])
    },
  )

  it.skipIf(skips)('may be left with savepoints of its function open', async () => {
    const { store, newRun, exists } = await world(name)
    const run = newRun()
    await store.transact(async (given, within) => {
      const handle = given as Handle
      handle.exec('savepoint theirs')
      await within.start([run])
      handle.exec('savepoint theirs_too')
    })
    expect(await exists(run)).toBe(true)
  })

  it.skipIf(skips)('whose store is closed as it begins comes to its end', async () => {
    const { store } = await world(name)
    let calls = 0
    const begun = store.transact(async () => void (calls += 1)).catch((error: unknown) => error)
    await store.close()
    expect(await begun).toMatchObject({ code: 'CLOSED' })
    expect(calls).toBe(0)
  })
})
