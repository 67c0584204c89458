// A store in a file of Turso: what the file is like, what is promised of it, and what error it gives when it cannot be opened.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Database } from '@tursodatabase/database/compat'
import { openTursoStore, type TursoStoreOptions } from 'holdfast/turso'
import Sqlite from 'libsql'
import { describe, expect, it, vi } from 'vitest'
import { createHoldfast, workflow } from '../../../../src/index.ts'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { withCode } from '../../../../src/stores/turso/driver.ts'
import { createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import { temporaryPaths } from '../sqlite/folder.ts'
import { turns } from '../sqlite/turns.ts'

const newPath = temporaryPaths()

const order = workflow('turso.order', async (ctx, name: string) => {
  const reserved = await ctx.step('reserve', () => `reserved for ${name}`)
  const charged = await ctx.step('charge', () => 42)
  return { reserved, charged }
})

describe('createHoldfast', () => {
  it('PQ-S3 opens turso: by its address, and runs are there when it is opened again', async () => {
    const store = `turso:${newPath()}`
    const first = await createHoldfast({ store, workflows: [order] })
    await first.work()
    const run = await first.start(order, 'Ada')
    const result = { reserved: 'reserved for Ada', charged: 42 }
    expect(await run.result()).toEqual(result)
    await first.close()

    const second = await createHoldfast({ store, workflows: [order] })
    expect(await second.run(run.id).result()).toEqual(result)
    const kinds = (await second.journal(run.id)).map(({ kind }) => kind)
    expect(kinds).toEqual(['started', 'step-succeeded', 'step-succeeded', 'succeeded'])
    expect((await second.doctor()).flatMap(({ offenders }) => offenders)).toEqual([])
    await second.close()
  })

  it('goes on after a close with what was started before it', async () => {
    const store = `turso:${newPath()}`
    const first = await createHoldfast({ store, workflows: [order] })
    const { id } = await first.start(order, 'Bob')
    await first.close()
    const second = await createHoldfast({ store, workflows: [order] })
    await second.work()
    expect(await second.run(id).result()).toMatchObject({ charged: 42 })
    await second.close()
  })

  it('opens turso::memory:', async () => {
    const holdfast = await createHoldfast({ store: 'turso::memory:', workflows: [order] })
    await holdfast.work()
    expect(await (await holdfast.start(order, 'Ada')).result()).toMatchObject({ charged: 42 })
    await holdfast.close()
  })

  it('lets two in one process share a file: what one starts, the other performs', async () => {
    const store = `turso:${newPath()}`
    const worker = await createHoldfast({ store, workflows: [order] })
    await worker.work()
    const client = await createHoldfast({ store, workflows: [order] })
    const run = await client.start(order, 'Ada')
    expect(await run.result()).toMatchObject({ charged: 42 })
    await client.close()
    await worker.close()
  })
})

describe('a file of Turso', () => {
  it('that is created belongs to its owner alone, and so does its log', async () => {
    const path = newPath()
    const store = await openTursoStore({ path })
    await store.migrate()
    expect([path, `${path}-wal`].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600])
    await store.close()
  })

  it('is synchronous=full: a commit waits for the disk', async () => {
    const exec = vi.spyOn(Database.prototype, 'exec')
    const store = await openTursoStore({ path: newPath() })
    const [database] = exec.mock.contexts as Database[]
    expect(database?.prepare('pragma synchronous').all()).toEqual([{ synchronous: 2 }])
    exec.mockRestore()
    await store.close()
  })

  it('is a SQLite file: SQLite opens what Turso wrote, and Turso what SQLite wrote', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const turso = await openTursoStore({ path, clock })
    await turso.migrate()
    const run = await createContractBench({ store: turso, clock }).start()
    await turso.close()
    const sqlite = await openSqliteStore({ path, clock, driver: 'libsql' })
    await sqlite.migrate()
    expect(await sqlite.get([run.id])).toEqual([run])
    const other = await createContractBench({ store: sqlite, clock }).start()
    await sqlite.close()
    const again = await openTursoStore({ path, clock })
    expect(await again.get([run.id, other.id])).toEqual([run, other])
    await again.close()
  })

  it('that SQLite made so that it can give pages back is refused with what to do, and opened after that', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const sqlite = await openSqliteStore({ path, clock, driver: 'libsql' })
    await sqlite.migrate()
    const run = await createContractBench({ store: sqlite, clock }).start()
    await sqlite.close()
    await expect(openTursoStore({ path, clock })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('pragma auto_vacuum = none; vacuum') as string,
    })
    const converting = new Sqlite(path)
    converting.exec('pragma auto_vacuum = none; vacuum; pragma wal_checkpoint(truncate)')
    converting.close()
    const turso = await openTursoStore({ path, clock })
    expect(await turso.get([run.id])).toEqual([run])
    await createContractBench({ store: turso, clock }).start()
    await turso.close()
  })

  it('is for one process: a second one is refused, and gets it when the first has ended', async () => {
    const path = newPath()
    const script = `
      import { Database } from '@tursodatabase/database/compat'
      const database = new Database(${JSON.stringify(path)})
      console.log('open')
      setInterval(() => database.open, 1000)`
    const first = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(first.stdout, 'data')
    await expect(openTursoStore({ path })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('one process at a time') as string,
    })
    first.kill('SIGKILL')
    await once(first, 'exit')
    const store = await openTursoStore({ path })
    expect(store.capabilities).toMatchObject({ notifies: false, multiProcess: false, transactions: false })
    await store.close()
  })

  it('in a folder that does not exist is refused with what to do', async () => {
    const path = join(dirname(newPath()), 'missing', 'app.db')
    await expect(openTursoStore({ path })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('does its folder exist') as string,
    })
  })

  it('that is no database is refused, and not overwritten', async () => {
    const path = newPath()
    const text = 'this is a letter, not a database\n'.repeat(200)
    writeFileSync(path, text)
    await expect(openTursoStore({ path })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('not a SQLite database') as string,
    })
    expect(statSync(path).size).toBe(text.length)
  })

  it.each([
    [{ path: '' }, 'needs a path'],
    [{}, 'needs a path'],
    [{ path: ':memory:', pth: 'x' }, 'path'],
  ])('%j is refused', async (options, message) => {
    await expect(openTursoStore(options as TursoStoreOptions)).rejects.toThrow(message)
  })

  it('that another connection writes to for longer than the storage timeout is unavailable, and unharmed', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const store = await openTursoStore({ path, clock, storageTimeout: 20 })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const other = new Database(path)
    other.exec('begin immediate')
    await expect(bench.start()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    other.exec('rollback')
    other.close()
    const run = await bench.start()
    expect(await store.find({}, { limit: 10 })).toEqual([run])
    await store.close()
  })
})

describe('while another connection of this process writes to a file of Turso', () => {
  it('what wants to write waits without stopping the process', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const store = await openTursoStore({ path, clock })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const other = new Database(path)
    other.exec('begin immediate')
    const starting = bench.start()
    await turns(100)
    other.exec('rollback')
    other.close()
    const run = await starting
    expect(await store.find({}, { limit: 10 })).toEqual([run])
    await store.close()
  })
})

describe('time', () => {
  it('comes from the database', async () => {
    const store = await openTursoStore({ path: ':memory:' })
    await store.migrate()
    const before = Date.now()
    const { now } = await store.claim({ session: 's', selectors: [], limit: 1 })
    expect(now).toBeGreaterThanOrEqual(before - 1)
    expect(now).toBeLessThanOrEqual(Date.now() + 1)
    await store.close()
  })
})

describe('what Turso says', () => {
  it.each([
    ['database is locked', 'SQLITE_BUSY'],
    ['step failed: Database is busy', 'SQLITE_BUSY'],
    ['step failed: Runtime error: database table is locked', 'SQLITE_LOCKED'],
    ['step failed: Runtime error: UNIQUE constraint failed: runs.(shard, id) (19)', 'SQLITE_CONSTRAINT'],
    ['step failed: Runtime error: NOT NULL constraint failed: x.b (19)', 'SQLITE_CONSTRAINT'],
    ['step failed: Runtime error: cannot store TEXT value in integer column x.a (19)', 'SQLITE_CONSTRAINT'],
    ['Database schema changed', 'SQLITE_SCHEMA'],
    ['Corrupt database: page 7', 'SQLITE_CORRUPT'],
    ['failed to open database a.db: Corrupt database: invalid page size', 'SQLITE_NOTADB'],
    ['failed to open database a.db: I/O error (open): is a directory', 'SQLITE_CANTOPEN'],
    ['step failed: Database is full: no pages', 'SQLITE_FULL'],
    ['I/O error: storage full', 'SQLITE_FULL'],
    ['I/O error: partial write', 'SQLITE_IOERR'],
    ['string or blob too big', 'SQLITE_TOOBIG'],
    ['Error: Resource is read-only', 'SQLITE_READONLY'],
  ])('%s: it gets the code that SQLite has for it', (message, code) => {
    expect(withCode(new Error(message))).toMatchObject({ code, message })
  })

  it('is left alone if SQLite has no code for it', () => {
    expect(withCode(new Error('prepare failed: near "selec": syntax error'))).not.toHaveProperty('code')
    expect(withCode('not even an error')).toBe('not even an error')
    expect(withCode(new TypeError('The value is too large'))).not.toHaveProperty('code')
  })
})
