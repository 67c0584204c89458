// What a transaction of a user finds on its connection on Postgres, and what it leaves there: the settings are those of the
// server, and nothing that it does to the session reaches another run.

import { describe, expect, it, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { until } from '../support/until.ts'
import { connectedTo, perform, place, type Tx } from './lent.ts'

describe('the settings of a transaction', { timeout: 60_000 }, () => {
  it('are those of the server, the database and the user', async () => {
    const { url } = await place()
    const admin = await connectedTo(url)
    const name = new URL(url).pathname.slice(1)
    await admin.query(`alter database "${name}" set lock_timeout = '7s'; alter database "${name}" set jit = 'off'`)
    const settings = `select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'jit',
      'idle_in_transaction_session_timeout', 'enable_seqscan', 'enable_sort', 'plan_cache_mode') order by name`

    const store = await openPostgresStore({ url, connections: 2, storageTimeout: '2s', listen: false })
    onTestFinished(() => store.close())
    await store.migrate()
    const expected = (await (await connectedTo(url)).query(settings)).rows
    expect(expected).toContainEqual({ name: 'lock_timeout', setting: '7000' })
    const ours = (handle: unknown): Promise<unknown> => (handle as Tx).query(settings).then(({ rows }) => rows)
    expect(await store.transact(ours)).toEqual(expected)
    // What they set for the whole connection does not become ours.
    await store.transact((handle) => (handle as Tx).query("set statement_timeout = '1ms'; set search_path = nowhere"))
    expect(await store.count({}, 1)).toBe(0)
    expect(await store.transact(ours)).toEqual(expected)
  })

  it('and roles, advisory locks, temporary tables, cursors and channels end with it, and reach no other run', async () => {
    const { url } = await place()
    const admin = await connectedTo(url)
    const schema = 'holdfast'
    const store = await openPostgresStore({ url, connections: 2, storageTimeout: '2s', listen: false })
    onTestFinished(() => store.close())
    await store.migrate()
    const role = `tenant_${new URL(url).pathname.slice(1)}`
    await admin.query(`create role "${role}"; grant usage on schema ${schema} to "${role}"`)
    onTestFinished(() => admin.query(`drop owned by "${role}"; drop role "${role}"`).then(() => undefined))
    const state = `select current_user as current, session_user as session, pg_backend_pid() as pid,
      (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
      (select count(*)::int from pg_cursors where name = 'theirs') as cursors, to_regclass('scratch') as scratch,
      array(select pg_listening_channels()) as channels`
    const now = (handle: unknown): Promise<unknown> => (handle as Tx).query(state).then(({ rows }) => rows[0])
    const before = await store.transact(now)
    for (const leaves of [
      `set role "${role}"`,
      `set session authorization "${role}"`,
      'select pg_advisory_lock(42)',
      'create temp table scratch (secret text)',
      'declare theirs cursor with hold for select 1',
      'listen theirs',
    ]) {
      await store.transact((handle) => (handle as Tx).query(leaves))
      expect([leaves, await store.transact(now)]).toEqual([leaves, before])
    }
  })

  it('let a statement wait for a lock, and a function do nothing, for longer than ours may', async () => {
    const here = await place({ storageTimeout: '300ms' })
    await here.client.query("begin; update accounts set balance = 5 where id = 'a'")
    const done = perform(here, async (tx) => {
      await tx.query("update accounts set balance = balance + 1 where id = 'a'")
      await new Promise((resolve) => setTimeout(resolve, 600))
      return tx.query('select 1').then(() => 'done')
    })
    const watcher = await connectedTo(here.url)
    await until('it waits for the lock', async () => {
      const { rows } = await watcher.query(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and clock_timestamp() - query_start > '1 s'`,
      )
      return rows.length > 0
    })
    await here.client.query('commit')
    expect(await done).toMatchObject({ result: 'done' })
    expect(await here.balances()).toEqual({ a: 6, b: 0 })
  })
})
