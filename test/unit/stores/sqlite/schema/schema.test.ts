// The schema: applied once, by the process that comes first, and never by one that does not know it.

import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../../../../src/stores/sqlite/index.ts'
import { migrations, schemaVersion } from '../../../../../src/stores/sqlite/schema/schema.ts'
import { createVirtualClock } from '../../../../../src/testing/index.ts'
import { createContractBench } from '../../../../../src/testing/contract/index.ts'
import { temporaryPaths } from '../folder.ts'

const newPath = temporaryPaths()

function versionsIn(path: string): unknown[] {
  const database = new Database(path)
  const rows = database.prepare('select version from migrations order by version').all([]) as { version: number }[]
  database.close()
  return rows.map(({ version }) => version)
}

/** A file as an older Holdfast has left it. */
function olderSchema(path: string, version: number): InstanceType<typeof Database> {
  const database = new Database(path)
  database.exec('create table migrations (version integer primary key, at integer not null) strict')
  for (const [index, sql] of migrations.slice(0, version).entries()) {
    database.exec(sql)
    database.prepare('insert into migrations (version, at) values (?, 0)').run([index + 1])
  }
  return database
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
    const database = olderSchema(path, 1)
    const insert = `insert into runs (shard, id, type, version, priority, due, timeout_at, created_at, updated_at)
      values (0, ?, 'old', 1, 0, 5, ?, 5, 5)`
    database.prepare(insert).run(['a', null])
    database.prepare(insert).run(['b', 1_000_000])
    database.close()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver: 'libsql', clock })
    await store.migrate()
    const [a] = await store.get(['a'])
    expect(a).toMatchObject({
      key: null,
      keyScope: 'workflow',
      tags: [],
      controlRequest: null,
      undo: 'none',
      deletedAt: null,
    })
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

  it('makes signals of the messages that a schema of version 2 holds, and lets their run record its end', async () => {
    const path = newPath()
    const database = olderSchema(path, 2)
    database.exec(`
      insert into runs (shard, id, type, version, status, readiness, priority, token, session, inbox, created_at, updated_at)
      values (0, 'a', 'old', 1, 'running', 'leased', 0, 1, 's', 3, 5, 5);
      insert into journal (shard, run_id, seq, kind, data, at, transition_id) values (0, 'a', 1, 'started', '1', 5, 't');
      insert into feed (shard, position, entries) values (0, 1, '[["a",1,1]]');
      insert into messages (shard, run_id, position, id, name, data, at, outcome, taken_by) values
        (0, 'a', 1, 'm1', 'go', '1', 5, 'delivered', 1),
        (0, 'a', 2, 'm2', 'go', '2', 6, 'queued', null),
        (0, 'a', 3, 'm3', 'stop', '3', 7, 'queued', null)`)
    database.close()
    const clock = createVirtualClock()
    const store = await openSqliteStore({ path, driver: 'libsql', clock })
    await store.migrate()
    expect(await store.get(['a'])).toMatchObject([{ inbox: 3, watched: false }])
    const old = { runId: 'a', kind: 'signal', policy: null } as const
    const [loaded] = await store.load([{ runId: 'a', after: 1, limit: 1 }])
    expect(loaded?.messages).toEqual([
      { ...old, id: 'm2', name: 'go', data: '2', position: 2, at: 6 },
      { ...old, id: 'm3', name: 'stop', data: '3', position: 3, at: 7 },
    ])
    const again = { ...old, id: 'm1', name: 'go', data: '1' }
    expect(await store.deliver([again])).toEqual([{ outcome: 'delivered', repeated: true }])
    const bench = createContractBench({ store, clock })
    const watcher = await bench.hold()
    const outbound = { starts: [], unwatches: [], watches: [{ kind: 'run', runId: 'a' }] } as const
    await bench.park(watcher, { outbound })
    await bench.control('a', { kind: 'cancel', mode: 'now', reason: 'old' })
    expect(await bench.mailbox(watcher.runId)).toMatchObject([{ kind: 'ended', name: 'a' }])
    expect(await bench.mailbox('a')).toEqual([])
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

  it('never touches tables of another program that have our names', async () => {
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

  it('never touches a table of another program whose name an older schema left free', async () => {
    const path = newPath()
    const database = olderSchema(path, 2)
    database.exec('create table topics (mine text)')
    const store = await openSqliteStore({ path, driver: 'libsql' })
    await expect(store.migrate()).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { found: ['topics'] } })
    expect(database.prepare('select max(version) as version from migrations').get([])).toMatchObject({ version: 2 })
    database.close()
    await store.close()
    expect(versionsIn(path)).toEqual([1, 2])
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
