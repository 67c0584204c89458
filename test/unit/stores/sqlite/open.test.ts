// Opening: what the file and the connection are like before the first run is in it.

import { statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../../src/core/model/entry.ts'
import { createHoldfast, workflow } from '../../../../src/index.ts'
import type { Hint } from '../../../../src/store.ts'
import { openSqliteStore, type SqliteStoreOptions } from '../../../../src/stores/sqlite/index.ts'
import { createRecordingLogger, createVirtualClock } from '../../../../src/testing/index.ts'
import { createContractBench } from '../../../../src/testing/contract/index.ts'
import { temporaryPaths } from './folder.ts'

const newPath = temporaryPaths()
const driver = 'libsql'

describe('a file', () => {
  it('that is created belongs to its owner alone, and so do its companions', async () => {
    const path = newPath()
    const store = await openSqliteStore({ path, driver })
    await store.migrate()
    const modes = [path, `${path}-wal`, `${path}-shm`].map((file) => statSync(file).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600])
    await store.close()
  })

  it('that existed keeps its rights', async () => {
    const path = newPath()
    writeFileSync(path, '', { mode: 0o644 })
    await (await openSqliteStore({ path, driver })).close()
    expect(statSync(path).mode & 0o777).toBe(0o644)
  })

  it('in a folder that does not exist is refused with what to do', async () => {
    const path = join(dirname(newPath()), 'missing', 'app.db')
    await expect(openSqliteStore({ path, driver })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('does its folder exist') as string,
    })
  })
})

describe('the settings', () => {
  const settings = async (options: SqliteStoreOptions): Promise<readonly string[]> => {
    const logger = createRecordingLogger()
    const store = await openSqliteStore({ driver, logger, ...options })
    await store.close()
    return logger.lines.map(({ message }) => message)
  }

  it('are durable by default, and nothing is said', async () => {
    expect(await settings({ path: newPath() })).toEqual([])
  })

  it('warn when what was answered as committed may be lost', async () => {
    const [warning] = await settings({ path: newPath(), synchronous: 'normal' })
    expect(warning).toContain('synchronous=normal')
  })

  it.each([
    [{}, 'either a path or a handle'],
    [{ path: '' }, 'needs a path'],
    [{ path: ':memory:', synchronous: 'fast' }, 'off, normal, full, extra'],
    [{ path: ':memory:', sychronous: 'full' }, 'synchronous'],
  ])('%j is refused', async (options, message) => {
    await expect(openSqliteStore(options as SqliteStoreOptions)).rejects.toThrow(message)
  })
})

describe('a connection that the user opened', () => {
  it('is used, and stays open and as it was set up', async () => {
    const handle = new Database(':memory:')
    handle.exec('pragma synchronous = normal')
    const store = await openSqliteStore({ handle, clock: createVirtualClock() })
    await store.migrate()
    await store.close()
    await expect(store.get(['x'])).rejects.toMatchObject({ code: 'CLOSED' })
    expect(handle.prepare('select count(*) as count from runs').get([])).toMatchObject({ count: 0 })
    expect(handle.prepare('pragma synchronous').get([])).toMatchObject({ synchronous: 1 })
    handle.close()
  })
})

describe('who writes for longer than the storage timeout', () => {
  it('makes the others unavailable, and unharmed when it is done', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver, clock, storageTimeout: 20 })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const other = new Database(path)
    other.exec('begin immediate')
    await expect(bench.start()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await store.find({}, { limit: 10 })).toEqual([])
    other.exec('rollback')
    other.close()
    const run = await bench.start()
    expect(await store.find({}, { limit: 10 })).toEqual([run])
    await store.close()
  })
})

describe('a batch', () => {
  it('IF-S7 with an entry that can never be stored leaves nothing behind, and the others can be sent again', async () => {
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path: ':memory:', driver, clock })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const [sound, poison] = [await bench.hold({ feed: true }), await bench.hold({ feed: true })]
    const good = bench.transition(sound)
    const draft = { kind: null, name: null, meta: null, data: '1' } as unknown as Draft
    const before = await store.find({}, { limit: 10 })
    const sending = store.commit([good, bench.transition(poison, { append: [draft] })])
    await expect(sending).rejects.toMatchObject({ code: 'ENTRY_REJECTED' })
    expect(await store.find({}, { limit: 10 })).toEqual(before)
    expect(await store.changes(0, 10)).toHaveLength(2)
    expect(await store.commit([good])).toMatchObject([{ outcome: 'committed', seq: 2 }])
    await store.close()
  })
})

describe('time', () => {
  it('IF-S8 comes from the database', async () => {
    const store = await openSqliteStore({ path: ':memory:', driver })
    await store.migrate()
    const before = Date.now()
    const { now } = await store.claim({ session: 's', selectors: [], limit: 1 })
    expect(now).toBeGreaterThanOrEqual(before - 1)
    expect(now).toBeLessThanOrEqual(Date.now() + 1)
    await store.close()
  })
})

describe('listeners in the same process', () => {
  it('are notified of what this store wrote, after it can be read', async () => {
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path: ':memory:', driver, clock })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    const heard: Hint[] = []
    const stop = await store.listen((hint) => heard.push(hint))
    const held = await bench.hold()
    await bench.commit(held, { status: 'pending' })
    await bench.start({ type: 'other' })
    const again = await bench.take(held.runId)
    const append = [{ kind: 'succeeded', name: null, meta: null, data: '1' } as const]
    await bench.commit(again, { append, status: 'succeeded' })
    await clock.advance(0)
    expect(heard).toEqual([
      { kind: 'ready', type: 'contract.plain' },
      { kind: 'ready', type: 'other' },
      { kind: 'ended', runId: held.runId },
    ])
    stop()
    await bench.start()
    await clock.advance(0)
    expect(heard.length).toBe(3)
    await store.close()
  })
})

describe('createHoldfast', () => {
  it('opens sqlite: by its address, and runs are there when it is opened again', async () => {
    const store = `sqlite:${newPath()}`
    const greet = workflow('sqlite.greet', async (ctx, name: string) => ctx.step('greet', () => `Hello ${name}`))
    const first = await createHoldfast({ store, workflows: [greet] })
    await first.work()
    const run = await first.start(greet, 'Ada')
    expect(await run.result()).toBe('Hello Ada')
    await first.close()
    const second = await createHoldfast({ store, workflows: [greet] })
    expect(await second.run(run.id).result()).toBe('Hello Ada')
    await second.close()
  })

  it('offers the nearest address when there is no such store', async () => {
    await expect(createHoldfast({ store: 'sqlit:app.db' })).rejects.toThrow(/Did you mean "?sqlite:/i)
  })
})
