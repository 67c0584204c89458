// The schema: applied once, by whoever comes first, and never by somebody who does not know it.

import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { migrations, schemaVersion } from '../../../../src/stores/sqlite/schema.ts'
import { createContractBench, createVirtualClock } from '../../../../src/testing/index.ts'
import { temporaryPaths } from './folder.ts'

const newPath = temporaryPaths()

function versionsIn(path: string): unknown[] {
  const database = new Database(path)
  const rows = database.prepare('select version from migrations order by version').all([]) as { version: number }[]
  database.close()
  return rows.map(({ version }) => version)
}

describe('migrating', () => {
  it('again changes nothing, and what was stored is there', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const first = await openSqliteStore({ path, driver: 'libsql', clock })
    await first.migrate()
    const run = await createContractBench({ store: first, clock }).start()
    await first.migrate()
    await first.close()
    const second = await openSqliteStore({ path, driver: 'libsql', clock })
    await second.migrate()
    expect(await second.get([run.id])).toEqual([run])
    await second.close()
    expect(versionsIn(path)).toEqual(Array.from({ length: schemaVersion }, (_, index) => index + 1))
  })

  it('keeps what an older schema holds, and makes it what it would be now', async () => {
    const path = newPath()
    const database = new Database(path)
    database.exec('create table migrations (version integer primary key, at integer not null) strict')
    database.exec(migrations[0] ?? '')
    database.exec('insert into migrations (version, at) values (1, 0)')
    const insert = `insert into runs (shard, id, type, version, priority, due, timeout_at, created_at, updated_at)
      values (0, ?, 'old', 1, 0, 5, ?, 5, 5)`
    database.prepare(insert).run(['a', null])
    database.prepare(insert).run(['b', 1_000_000])
    database.close()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver: 'libsql', clock })
    await store.migrate()
    const [a] = await store.get(['a'])
    expect(a).toMatchObject({ key: null, keyScope: 'workflow', tags: [], wish: null, undo: 'none', deletedAt: null })
    const { ended } = await store.rescue({
      limit: 10,
      maxCrashes: 5,
      failures: { crashed: '1', 'timed-out': '2', expired: '3' },
    })
    expect(ended).toEqual([{ runId: 'b', type: 'old', reason: 'timed-out' }])
    const { runs } = await store.claim({ session: 's', selectors: [{ type: 'old', version: 1 }], limit: 5 })
    expect(runs.map(({ id }) => id)).toEqual(['a'])
    await store.close()
  })

  it('SW-U1 HE-U3 keys are unique by the database itself, whatever the code looked up before', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver: 'libsql', clock })
    await store.migrate()
    const { start } = createContractBench({ store, clock })
    await start({ key: 'k', idempotencyKey: 'i' })
    const other = await start({ key: 'l', idempotencyKey: 'j' })
    const database = new Database(path)
    for (const [column, value] of [
      ['unique_key', 'workflow contract.plain k'],
      ['idempotency_key', 'i'],
    ]) {
      const change = database.prepare(`update runs set ${column} = ? where id = ?`)
      expect(() => change.run([value, other.id])).toThrow(/unique/i)
    }
    database.close()
    await store.close()
  })

  it('refuses a schema that a newer Holdfast made, and touches nothing', async () => {
    const path = newPath()
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await store.migrate()
    const database = new Database(path)
    database.prepare('insert into migrations (version, at) values (?, ?)').run([schemaVersion + 1, 0])
    database.close()
    await expect(store.migrate()).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
      details: { found: schemaVersion + 1, known: schemaVersion },
    })
    await store.close()
    expect(versionsIn(path).length).toBe(schemaVersion + 1)
  })

  it('never touches tables of somebody else that have our names', async () => {
    const path = newPath()
    const database = new Database(path)
    database.exec('create table journal (mine text)')
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await expect(store.migrate()).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { found: ['journal'] } })
    const tables = database.prepare(`select name from sqlite_master where type = 'table'`).all([])
    expect(tables).toEqual([{ name: 'journal' }])
    database.close()
    await store.close()
  })

  it('SW-S4 is not needed for a new workflow type', async () => {
    const path = newPath()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver: 'libsql', clock })
    await store.migrate()
    const bench = createContractBench({ store, clock })
    await bench.start({ type: 'never.heard.of' })
    const { runs } = await bench.claim({ selectors: [{ type: 'never.heard.of', version: 1 }] })
    expect(runs.length).toBe(1)
    await store.close()
  })
})
