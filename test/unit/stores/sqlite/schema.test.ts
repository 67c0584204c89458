// The schema: applied once, by whoever comes first, and never by somebody who does not know it.

import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { schemaVersion } from '../../../../src/stores/sqlite/schema.ts'
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
