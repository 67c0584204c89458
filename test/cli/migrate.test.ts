// `holdfast migrate`: what it says that it did, and what it would do, on each store.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { Pool } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { migrations } from '../../src/stores/postgres/schema/schema.ts'
import { quoteSchema } from '../../src/stores/postgres/schema/schema-name.ts'
import { schemaVersion } from '../../src/stores/sqlite/schema/schema.ts'
import { patiently } from '../support/patiently.ts'
import { freshSchema } from '../support/postgres-shared.ts'
import { begin, cli, folder } from './world.ts'

/** The version of the schema on Postgres. */
const latest = migrations.length

interface Postgres {
  readonly url: string
  readonly schema: string
  readonly rows: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
}

async function postgres(): Promise<Postgres> {
  const { url, schema } = await freshSchema()
  const pool = new Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  return { url, schema, rows: async (sql) => (await patiently(() => pool.query(sql))).rows as never }
}

const schemasLike = async ({ rows, schema }: Postgres): Promise<readonly unknown[]> => {
  const found = await rows(`select nspname as name from pg_namespace where nspname like '${schema}%' order by 1`)
  return found.map((row) => row['name'])
}

describe('migrating SQLite', () => {
  it('says from which version to which it went', async () => {
    const store = `sqlite:${join(folder(), 'app.db')}`
    const { stdout } = await cli(['migrate', '--store', store, '--json'])
    expect(JSON.parse(stdout)).toEqual({ store, from: 0, to: schemaVersion, isCurrent: true })
    const again = await cli(['migrate', '--store', store, '--json'])
    expect(JSON.parse(again.stdout)).toEqual({ store, from: schemaVersion, to: schemaVersion, isCurrent: true })
  })

  it('without doing it creates no file, and prints what would make the same tables', async () => {
    const path = join(folder(), 'app.db')
    const { code, stdout } = await cli(['migrate', '--store', `sqlite:${path}`, '--dry-run'])
    expect(code).toBe(0)
    expect(stdout).toContain(`-- The tables of sqlite:${path} would go from version 0 to ${schemaVersion}.\n`)
    expect(existsSync(path)).toBe(false)
    // As if a user had piped it into sqlite3.
    const database = new Database(path)
    database.exec(stdout)
    database.close()
    const after = await cli(['migrate', '--store', `sqlite:${path}`])
    expect(after.stdout).toBe(`The tables of sqlite:${path} are up to date: version ${schemaVersion}, nothing to do.\n`)
    const dry = await cli(['migrate', '--store', `sqlite:${path}`, '--dry-run'])
    expect(dry.stdout).toBe(
      `-- The tables of sqlite:${path} are up to date: version ${schemaVersion}, nothing to do.\n`,
    )
  })

  it('without doing it leaves a file as it is, byte by byte', async () => {
    const path = join(folder(), 'old.db')
    const database = new Database(path)
    database.exec('create table mine (id integer)')
    database.close()
    const before = readFileSync(path)
    const { code, stdout } = await cli(['migrate', '--store', `sqlite:${path}`, '--dry-run', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ from: 0, to: schemaVersion })
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(existsSync(`${path}-wal`)).toBe(false)
  })

  it('without doing it says what is no database', async () => {
    const path = join(folder(), 'text.db')
    writeFileSync(path, 'This is no database, but a text that is long enough to be looked at.'.repeat(20))
    const { code, stderr } = await cli(['migrate', '--store', `sqlite:${path}`, '--dry-run'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('error:')
  })

  it.each([
    ['--schema', 'x'],
    ['--shards', '4'],
    ['--owner', 'app'],
    ['--citus'],
    ['--views', 'queues'],
    ['--payloads'],
    ['--roles'],
  ])('has no %s', async (...option) => {
    const path = join(folder(), 'app.db')
    const { code, stderr } = await cli(['migrate', '--store', `sqlite:${path}`, ...option])
    expect(code).toBe(2)
    expect(stderr).toContain(`${option[0] ?? ''} is for Postgres`)
    expect(existsSync(path)).toBe(false)
  })
})

describe('migrating Postgres', () => {
  it('makes the schema that is named, says so, and never shows the password', async () => {
    const place = await postgres()
    const { url, schema } = place
    const first = await cli(['migrate', '--store', url, '--schema', schema, '--shards', '4'])
    expect(first.code).toBe(0)
    expect(first.stdout).toMatch(new RegExp(`^The tables of \\S+ went from version 0 to ${latest}\\.\n$`))
    const again = await cli(['migrate', '--store', url, '--schema', schema, '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ from: latest, to: latest, schema, shards: 4, isCurrent: true })
    expect(first.stdout + again.stdout).not.toContain(new URL(url).password || 'no password')
    const other = await cli(['migrate', '--store', url, '--schema', schema, '--shards', '8'])
    expect(other.code).toBe(2)
    expect(other.stderr).toContain('was made with 4 shards')
  })

  it('takes the schema from the address, too', async () => {
    const place = await postgres()
    const url = `${place.url}${place.url.includes('?') ? '&' : '?'}schema=${place.schema}`
    const { stdout } = await cli(['migrate', '--store', url, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ schema: place.schema, from: 0, to: latest })
  })

  it('without doing it changes nothing, and prints what would do the same (PQ-S5)', async () => {
    const place = await postgres()
    const { url, schema, rows } = place
    const dry = await cli(['migrate', '--store', url, '--schema', schema, '--dry-run', '--views', 'queues'])
    expect(dry.code).toBe(0)
    expect(await schemasLike(place)).toEqual([])
    await rows(dry.stdout)
    expect(await schemasLike(place)).toEqual([schema, `${schema}_queues`])
    const after = await cli(['migrate', '--store', url, '--schema', schema, '--dry-run'])
    expect(after.stdout).toMatch(
      new RegExp(`^-- The tables of \\S+ are up to date: version ${latest}, nothing to do\\.\n$`),
    )
  })

  it('refuses a schema that another role prepared, and does it as the role of --owner for a member of that', async () => {
    const place = await postgres()
    const { url, schema, rows } = place
    const owner = `${schema}_owner`
    const [row] = await rows('select current_database() as name')
    const member = `${schema}_member`
    await rows(`create role ${owner}; grant create on database ${String(row?.['name'])} to ${owner}`)
    await rows(`create schema ${schema} authorization ${owner}`)
    await rows(`create role ${member} login password 'known' noinherit in role ${owner}`)
    const addressOf = (store: string) => ['--store', store, '--schema', schema, '--views', 'queues']
    const options = addressOf(Object.assign(new URL(url), { username: member, password: 'known' }).href)
    for (const some of [addressOf(url), [...addressOf(url), '--owner', owner], options]) {
      const refused = await cli(['migrate', ...some])
      expect(refused.code).toBe(2)
      expect(refused.stderr).toContain(`Connect as "${owner}"`)
      expect((await cli(['migrate', ...some, '--dry-run'])).code).toBe(2)
    }
    const dry = await cli(['migrate', ...options, '--owner', owner, '--dry-run'])
    expect(dry.stdout).toContain(`set local role "${owner}";`)
    expect((await cli(['migrate', ...options, '--owner', owner])).code).toBe(0)
    const owners = await rows(`select distinct relowner::regrole::text as owner from pg_class
      where relkind in ('r', 'v', 'S') and relnamespace::regnamespace::text in ('${schema}', '${schema}_queues')`)
    expect(owners).toEqual([{ owner }])
    await rows(`drop owned by ${owner} cascade; drop role ${member}; drop role ${owner}`)
  })

  it('makes views when it is asked to, and drops them (PQ-S1, SW-S1, IF-S2, WC-S2)', async () => {
    const place = await postgres()
    const { url, schema, rows } = place
    const options = ['--store', url, '--schema', schema]
    const made = await cli(['migrate', ...options, '--views', 'runs,instances,waits,queues'])
    expect(made.stdout).toContain(
      `The views are in ${['runs', 'instances', 'waits', 'queues'].map((name) => `${schema}_${name}`).join(', ')}.\n`,
    )
    expect(await rows(`select * from ${quoteSchema(`${schema}_instances`)}.workflow_instances`)).toEqual([])
    const dropped = await cli(['migrate', ...options, '--views', 'none'])
    expect(dropped.stdout).toContain('The views are dropped.\n')
    expect(await rows(`select 1 from pg_views where schemaname like '${schema}%'`)).toEqual([])
    const shown = await cli(['migrate', ...options, '--views', 'queues', '--payloads'])
    expect(shown.stdout).toContain(`The views are in ${schema}_queues, ${schema}_queues_payloads.\n`)
    const unnamed = await cli(['migrate', ...options, '--payloads'])
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('--payloads needs --views')])
    const wrong = await cli(['migrate', ...options, '--views', 'instancs'])
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('Did you mean "instances"?')
  })
})

describe('roles on Postgres', () => {
  it('are printed without being made, and made with the rights that were printed', async () => {
    const place = await postgres()
    const { url, schema, rows } = place
    const options = ['--store', url, '--schema', schema]
    const names = ['migrator', 'worker', 'starter', 'viewer'].map((kind) => `${schema}_${kind}`)
    const made = async (): Promise<readonly unknown[]> =>
      (await rows(`select rolname from pg_roles where rolname like '${schema}%' order by oid`)).map(
        (row) => row['rolname'],
      )
    onTestFinished(async () => {
      for (const role of names) await rows(`drop owned by ${role} cascade; drop role ${role}`)
    })
    const dry = await cli(['migrate', ...options, '--roles', '--dry-run', '--views', 'queues'])
    expect([dry.code, await made()]).toEqual([0, []])
    await rows(dry.stdout)
    expect(await made()).toEqual(names)
    const rights = async (): Promise<readonly unknown[]> =>
      rows(`select nspname, relname, relowner::regrole::text as owner, relacl::text from pg_class c
        join pg_namespace n on n.oid = relnamespace where nspname like '${schema}%' and relkind in ('r', 'v', 'S') order by 1, 2`)
    const printed = await rights()
    const again = await cli(['migrate', ...options, '--roles', schema])
    expect(again.stdout).toContain(`The roles ${names.join(', ')} have their rights.\n`)
    expect(await rights()).toEqual(printed)
    const wrong = await cli(['migrate', ...options, '--roles', 'Shop!'])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--roles <prefix>')])
  })
})

describe('a command that only looks', () => {
  it('makes no schema, and says how to make one (PQ-S5)', async () => {
    const place = await postgres()
    const { code, stderr } = await cli(['runs', '--store', `${place.url}?schema=${place.schema}`])
    expect(code).not.toBe(0)
    expect(stderr).toContain('holdfast migrate')
    expect(await schemasLike(place)).toEqual([])
  })
})

describe('a worker that a newer Holdfast has left behind', () => {
  it('stops by itself, and leaves with an error that says so', async () => {
    const place = await postgres()
    const { url, schema, rows } = place
    const store = `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`
    await cli(['migrate', '--store', store])
    const worker = begin(['worker', '--store', store, '--workflows', 'test/cli/workflows.ts', '--lease', '1s'])
    await worker.says('Works until it is stopped')
    await rows(`update ${quoteSchema(schema)}.settings set value = '99' where shard = 0 and name = 'min-client'`)
    const { code, stderr } = await worker.ended
    expect(code).toBe(2)
    expect(stderr).toContain('SCHEMA_TOO_NEW')
    expect(await rows(`select 1 from ${quoteSchema(schema)}.sessions where ended_at is null`)).toEqual([])
  })
})
