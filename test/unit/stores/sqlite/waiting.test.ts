// Another process has the right to write: what wants to write waits, in order and not for ever, while the process goes on. Each of
// these tests counts turns of the event loop between two things that must happen in this order; a store that lets SQLite wait
// makes none.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import Database from 'libsql'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { NewRun } from '../../../../src/store.ts'
import { createHoldfast, workflow } from '../../../../src/index.ts'
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from '../../../../src/stores/sqlite/index.ts'
import { createRecordingLogger, createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import { temporaryPaths } from './folder.ts'
import { turns } from './turns.ts'

const newPath = temporaryPaths()

async function world(options: Partial<SqliteStoreOptions> = {}): Promise<{
  readonly path: string
  readonly store: SqliteStore
  readonly newRun: () => NewRun
}> {
  const path = newPath()
  const clock = createVirtualClock()
  const where = options.handle === undefined ? { path, driver: 'libsql' as const } : {}
  const store = await openSqliteStore({ ...where, clock, ...options })
  onTestFinished(() => store.close())
  await store.migrate()
  const bench = createContractBench({ store, clock })
  return { path, store, newRun: () => bench.newRun({ feed: true }) }
}

/** Another process that has begun to write, and ends that when it is asked to. */
async function writer(path: string): Promise<{ readonly end: () => void; readonly ended: Promise<unknown> }> {
  const script = `
    import Database from 'libsql'
    const db = new Database(${JSON.stringify(path)})
    db.exec('begin immediate')
    console.log('begun')
    process.stdin.once('data', () => {
      db.exec('commit')
      process.exit(0)
    })`
  const child = run(script)
  await once(child.stdout!, 'data')
  return { end: () => void child.stdin!.write('end\n'), ended: once(child, 'exit') }
}

/** A process that runs this, and ends with the test. */
function run(script: string): ChildProcess {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

function connect(path: string): Database.Database {
  const database = new Database(path)
  onTestFinished(() => void database.close())
  return database
}

/** Whether it has settled by now. */
function watched(call: Promise<unknown>): () => boolean {
  let isSettled = false
  const settle = (): void => void (isSettled = true)
  call.then(settle, settle)
  return () => isSettled
}

describe('while another process writes', { timeout: 60_000 }, () => {
  it('the event loop turns, reads are answered, and what waits is written in order when it is done', async () => {
    const { path, store, newRun } = await world()
    const { end, ended } = await writer(path)
    const runs = [newRun(), newRun(), newRun()]
    const order: number[] = []
    const waiting = Promise.all(runs.map((run, index) => store.start([run]).then(() => order.push(index))))
    const isSettled = watched(waiting)
    await turns(300)
    expect(await store.get(runs.map(({ id }) => id))).toEqual([undefined, undefined, undefined])
    expect(isSettled()).toBe(false)
    end()
    await waiting
    await ended
    expect(order).toEqual([0, 1, 2])
    expect(await store.changes(0, 10)).toMatchObject(runs.map(({ id }) => ({ runId: id })))
  })

  it('a worker goes on with what needs no write, and with the rest afterwards', async () => {
    const { path, store } = await world()
    const flow = workflow('flow', async (ctx) => {
      const first = await ctx.step('first', () => 1)
      return first + (await ctx.step('second', () => 1))
    })
    const holdfast = await createHoldfast({ store, workflows: [flow] })
    await holdfast.work()
    const { end } = await writer(path)
    const results = Promise.all([1, 2, 3].map(async () => (await holdfast.start(flow)).result()))
    const isSettled = watched(results)
    await turns(300)
    expect(isSettled()).toBe(false)
    end()
    expect(await results).toEqual([2, 2, 2])
    await holdfast.close()
  })

  it('a call that waits is given up after the storage timeout, and nothing of it is written later', async () => {
    const { path, store, newRun } = await world({ storageTimeout: 50 })
    const { end, ended } = await writer(path)
    const [one, two] = [newRun(), newRun()]
    const unavailable = { code: 'STORE_UNAVAILABLE' }
    await Promise.all([one, two].map((run) => expect(store.start([run])).rejects.toMatchObject(unavailable)))
    end()
    await ended
    const next = newRun()
    await store.start([next])
    expect((await store.get([one.id, two.id, next.id])).map((run) => run?.id)).toEqual([undefined, undefined, next.id])
  })

  it('a caller that gives calls up sooner hears of it before that, and nothing of it is done later', async () => {
    // A storage timeout in which no test would end.
    const { path, store, newRun } = await world({ storageTimeout: '1h' })
    const first = newRun()
    await store.start([first])
    const unlimit = store.limit(100)
    const { end, ended } = await writer(path)
    const run = newRun()
    const selectors = [{ type: first.type, version: first.version }]
    const given = await Promise.allSettled([
      store.start([run]),
      store.claim({ session: 'late', selectors, limit: 1 }),
      store.beat({ session: 'late', leaseMs: 1_000 }),
      store.doChores(),
    ])
    const refused = { reason: { code: 'STORE_UNAVAILABLE' } }
    expect(given).toMatchObject([refused, refused, refused, { value: { worked: false } }])
    unlimit()
    // One batch may have less time than the others.
    const late = newRun()
    await expect(store.start([late], { timeoutMs: 50 })).rejects.toMatchObject(refused.reason)
    const waiting = store.start([newRun()])
    end()
    await ended
    await waiting
    const [before, ...others] = await store.get([first.id, run.id, late.id])
    expect([before?.session, ...others]).toEqual([null, undefined, undefined])
  })

  it('a worker takes that for a store that is away, and no run for a poisonous one', async () => {
    const { path, store } = await world()
    let [isBegun, open] = [false, (): void => undefined]
    const gate = new Promise<void>((resolve) => (open = resolve))
    const flow = workflow('flow', (ctx) =>
      ctx.step('one', async () => {
        isBegun = true
        await gate
        return 1
      }),
    )
    const logger = createRecordingLogger()
    const holdfast = await createHoldfast({ store, workflows: [flow], logger })
    // Calls are given up after a second.
    await holdfast.work({ lease: '4s' })
    const run = await holdfast.start(flow)
    await expect.poll(() => isBegun).toBe(true)
    const { end } = await writer(path)
    open()
    const messages = (): readonly string[] => logger.lines.map(({ message }) => message)
    await expect.poll(messages).toContainEqual(expect.stringMatching(/sent (?:again|alone)/))
    end()
    expect(await run.result()).toBe(1)
    expect(messages()).not.toContainEqual(expect.stringMatching(/sent alone/))
    await holdfast.close()
  })

  it('closing the store waits for nobody', async () => {
    const { path, store, newRun } = await world()
    await writer(path)
    const waiting = store.start([newRun()]).catch((error: unknown) => error)
    await store.close()
    expect(await waiting).toMatchObject({ code: 'CLOSED' })
    await expect(store.start([newRun()])).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('two processes that write all the time', { timeout: 60_000 }, () => {
  it('both make progress', async () => {
    const { path, store, newRun } = await world()
    // It never leaves the lock for longer than it takes to ask for it again, and says so every 100 transactions.
    const child = run(`
      import Database from 'libsql'
      const db = new Database(${JSON.stringify(path)})
      db.exec('create table busy (n integer)')
      db.exec('pragma busy_timeout = 30000')
      const insert = db.prepare('insert into busy values (?)')
      const write = (n) => {
        for (let i = 0; i < 10; i += 1) {
          db.exec('begin immediate')
          insert.run([n])
          db.exec('commit')
        }
        if (n % 10 === 0) console.log(n)
        setImmediate(write, n + 1)
      }
      write(1)`)
    let theirs = 0
    child.stdout!.on('data', () => void (theirs += 1))
    await once(child.stdout!, 'data')
    const before = theirs
    let ours = 0
    while (ours < 50 || theirs < before + 3) {
      await store.start([newRun()])
      ours += 1
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect((await store.changes(0, 1)).length).toBe(1)
    expect(await store.count({}, 1_000_000)).toBe(ours)
  })
})

describe('while the application itself writes in this process', () => {
  it('a call beside it waits for it, and not it for the call', async () => {
    const { path, store, newRun } = await world()
    const own = connect(path)
    own.exec('begin immediate')
    const starting = store.start([newRun()])
    const isSettled = watched(starting)
    await turns(100)
    expect(isSettled()).toBe(false)
    own.exec('commit')
    expect(await starting).toMatchObject([{ created: true }])
  })

  it('on the very connection that the store was given, a call waits as well', async () => {
    const handle = connect(newPath())
    const { store, newRun } = await world({ handle })
    handle.exec('begin')
    const starting = store.start([newRun()])
    const isSettled = watched(starting)
    await turns(100)
    expect(isSettled()).toBe(false)
    handle.exec('rollback')
    expect(await starting).toMatchObject([{ created: true }])
  })

  it('the busy timeout of a connection of theirs is not ours, and stays what it was', async () => {
    const path = newPath()
    const handle = connect(path)
    handle.exec('pragma journal_mode = wal')
    handle.exec('pragma busy_timeout = 15000')
    const { store, newRun } = await world({ handle })
    const other = connect(path)
    other.exec('begin immediate')
    const starting = store.start([newRun()])
    const isSettled = watched(starting)
    await turns(100)
    expect(isSettled()).toBe(false)
    other.exec('commit')
    expect(await starting).toMatchObject([{ created: true }])
    expect(handle.prepare('pragma busy_timeout').get([])).toMatchObject({ timeout: 15_000 })
  })

  it('a transaction of theirs that has not written yet waits for the lock without stopping the process', async () => {
    const { path, store, newRun } = await world()
    const [using, other] = [connect(path), connect(path)]
    using.exec('pragma busy_timeout = 15000')
    other.exec('begin immediate')
    using.exec('begin')
    const run = newRun()
    const starting = store.inTransaction(using).start([run])
    const isSettled = watched(starting)
    await turns(100)
    expect(isSettled()).toBe(false)
    other.exec('rollback')
    expect(await starting).toMatchObject([{ created: true }])
    using.exec('commit')
    expect((await store.get([run.id]))[0]?.id).toBe(run.id)
  })

  it('a transaction of theirs that has read what is old by now is refused at once: no waiting helps', async () => {
    const { path, store, newRun } = await world()
    const [using, other] = [connect(path), connect(path)]
    other.exec('create table own (n integer)')
    using.exec('begin')
    using.prepare('select count(*) from own').get([])
    other.exec('insert into own values (1)')
    await expect(store.inTransaction(using).start([newRun()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    using.exec('rollback')
  })
})

describe('the file', () => {
  it('can give pages back, and its log does not stay as long as it once was', async () => {
    const { path, store } = await world()
    const { db } = store as unknown as { readonly db: { get(sql: string, values: []): Record<string, unknown> } }
    expect(db.get('pragma auto_vacuum', [])).toMatchObject({ auto_vacuum: 2 })
    expect(Number(db.get('pragma journal_size_limit', [])['journal_size_limit'])).toBeGreaterThan(0)
    expect(db.get('pragma busy_timeout', [])).toMatchObject({ timeout: 0 })
    const own = connect(path)
    own.exec('create table own (text text)')
    const insert = own.prepare('insert into own values (?)')
    for (let row = 0; row < 200; row += 1) insert.run(['x'.repeat(4_000)])
    own.exec('pragma wal_checkpoint(truncate)')
    const full = statSync(path).size
    own.exec('delete from own')
    own.exec('pragma incremental_vacuum')
    own.exec('pragma wal_checkpoint(truncate)')
    expect(statSync(path).size).toBeLessThan(full / 2)
  })

  it('that had tables before keeps what it has', async () => {
    const path = newPath()
    const before = new Database(path)
    before.exec('create table own (n integer)')
    before.close()
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await store.migrate()
    await store.close()
    expect(connect(path).prepare('pragma auto_vacuum').get([])).toMatchObject({ auto_vacuum: 0 })
  })

  it('that is a folder, or ends like one, is refused with what to do', async () => {
    const folder = newPath()
    mkdirSync(folder)
    for (const path of [folder, `${folder}/`]) {
      const refused = { code: 'INVALID_OPTION', message: expect.stringContaining('is a folder') as string }
      await expect(createHoldfast({ store: `sqlite:${path}` })).rejects.toMatchObject(refused)
      await expect(createHoldfast({ store: `turso:${path}` })).rejects.toMatchObject(refused)
      await expect(createHoldfast({ store: `libsql:${path}` })).rejects.toMatchObject(refused)
    }
    await expect(createHoldfast({ store: `sqlite:${newPath()}/` })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('that is a text is refused without a second try, and not changed', async () => {
    const path = newPath()
    const text = 'this is a letter, not a database\n'.repeat(100)
    writeFileSync(path, text)
    // A storage timeout in which no test would end: who tries again is never heard.
    await expect(openSqliteStore({ path, driver: 'libsql', storageTimeout: '1h' })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('not a SQLite database') as string,
    })
    expect(readFileSync(path, 'utf8')).toBe(text)
  })
})
