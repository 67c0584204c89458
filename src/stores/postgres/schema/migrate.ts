// Brings a schema to the version that this code knows. Any number of processes may do that at once, on any database that
// speaks Postgres: nothing rests on advisory locks, which some of them accept and ignore.
//
//   current   the version is right, which one read shows, without a lock
//   missing → begun     the schema, its table of migrations and in that the row of version 0, in one transaction; of several
//                       processes that try at once all but one are refused, and try again
//   begun   → current   one transaction a version: the holder of the lock on the row of version 0 reads the version again, and
//                       executes the next one together with the row that records it
//   current   → spread  on Citus, if that is asked for; a schema that is spread stays so, and its new tables are spread, too

import { HoldfastError } from '../../../core/errors/error.ts'
import { shown } from '../../../core/text/suggest.ts'
import { again, connected, frame, serverOf, type Server } from './schema-change.ts'
import { assertClient, minClientOf } from './client-version.ts'
import type { ClientLike, PoolLike } from '../connection/database.ts'
import { databaseClock } from '../dialect.ts'
import type { Row } from '../execution.ts'
import { assertIdle, isSpread, spreadingOf } from './citus.ts'
import { asRole, assertOwned, checkOwner, ownershipOf, type Ownership } from './ownership.ts'
import { migrations, type Migration } from './schema.ts'
import { tableNames } from '../table-names.ts'
import { quoteSchema, quoteText } from './schema-name.ts'
import { splitSql } from './split-sql.ts'
import { sqlStateOf } from '../connection/sql-state.ts'

export interface MigrateOptions {
  /** The name of the schema, as its user wrote it. */
  readonly schema: string
  /** Over how many shards runs are spread. It is fixed when the schema is made. @default that of the schema, or 1 */
  readonly shards?: number | undefined
  /** The expression for the time. @default the clock of the database */
  readonly now?: string
  /** Called with every statement that is executed, as it is. */
  readonly onSql?: ((sql: string) => void) | undefined
  /** The role that owns the schema, as which it is done. @default the user of the connection */
  readonly owner?: string | undefined
  /**
   * The role that migrates may have more rights than those that work in it: nothing that an untrusted role owns is read
   * either. @default false
   */
  readonly isAdministered?: boolean
  /** Spreads the tables over the machines of Citus. @default those of a schema that is spread already */
  readonly citus?: boolean | undefined
  /** The migrations that this code knows, for tests of other versions. @default all migrations */
  readonly migrations?: readonly Migration[]
}

export interface Migrated {
  /** The version that it had; 0 if there was none. */
  readonly from: number
  /** The version that it has now: ours, or a later one that admits us. */
  readonly to: number
  readonly shards: number
}

export interface MigrationPlan extends Migrated {
  /** The statements that a migration would execute, in order. Empty if there is nothing to do. */
  readonly statements: readonly string[]
}

/** Twelve bits of an id hold the shard. */
const mostShards = 4096

/** Creates the schema, or brings it up to date. One that is right already is only read. */
export async function migrate(pool: PoolLike, options: MigrateOptions): Promise<Migrated> {
  const install = new Install(options)
  return connected(pool, async (client) => {
    // A process that works in a schema of another role calls this, too: where there is nothing to do, nothing is run.
    const isOwned = options.owner !== undefined || options.isAdministered === true
    const before = await (isOwned ? install.readOwned(client) : install.readTables(client))
    if (before !== null && before.version >= install.known && options.citus !== true) return untouched(before)
    if (!isOwned) await install.readOwned(client)
    const server = await serverOf(client)
    await again(client, () => install.begin(client, server))
    let from: number | null = null
    for (let version = 1; version <= install.known; version += 1) {
      const isOurs = await again(client, () => install.apply(client, version, server)).catch(install.refuse)
      if (isOurs) from ??= version - 1
    }
    await again(client, () => install.spread(client, server))
    const after = await install.readOwned(client)
    if (after === null) throw new HoldfastError('BUG', 'A schema that was just made is not there.')
    return { ...untouched(after), from: from ?? after.version }
  })
}

/** The statements that `migrate()` would execute. Nothing is changed. */
export async function planMigration(pool: PoolLike, options: MigrateOptions): Promise<MigrationPlan> {
  const install = new Install(options)
  return connected(pool, async (client) => {
    const state = await install.readOwned(client)
    const shards = state?.shards ?? install.shards
    const spreading = await install.asOwner(client, () => install.spreading(client, shards))
    if (state !== null && state.version >= install.known && spreading.length === 0) {
      return { ...untouched(state), statements: [] }
    }
    const found = await install.asOwner(client, () => install.look(client))
    const server = await serverOf(client)
    const from = state?.version ?? 0
    const statements = [...install.beginning(found, server)]
    for (let version = from + 1; version <= install.known; version += 1) {
      statements.push(...install.opening(server), ...install.changes(version, server), 'commit')
    }
    if (spreading.length > 0) statements.push(...install.opening(server), ...spreading, 'commit')
    return { from, to: Math.max(from, install.known), shards, statements }
  })
}

export interface FoundSchema {
  /** Over how many shards its runs are spread; null if it is not there. */
  readonly shards: number | null
  /** Its tables whose policies of row-level security apply to the user of the connection. */
  readonly filtered: readonly string[]
}

/** The settings of a schema, and the catalog of its tables. */
export async function readSchema(pool: PoolLike, options: MigrateOptions): Promise<FoundSchema> {
  const install = new Install(options)
  return connected(pool, async (client) => {
    const ownership = await install.lookAtTables(client)
    return { shards: (await install.read(client, ownership))?.shards ?? null, filtered: ownership.filtered }
  })
}

/** The settings of a schema. */
interface State {
  readonly version: number
  readonly shards: number
}

/** The objects that a schema already has. */
interface Found {
  readonly hasSchema: boolean
  readonly hasMigrations: boolean
}

class Install {
  readonly shards: number
  readonly known: number
  private readonly options: MigrateOptions
  private readonly schema: string
  private readonly now: string
  private readonly owner: string | undefined
  private readonly migrations: readonly Migration[]

  constructor(options: MigrateOptions) {
    this.options = options
    this.schema = quoteSchema(options.schema)
    this.shards = checkShards(options.shards ?? 1)
    this.now = options.now ?? databaseClock
    this.owner = options.owner === undefined ? undefined : checkOwner(options.owner)
    this.migrations = options.migrations ?? migrations
    this.known = this.migrations.length
  }

  /** The version of a schema whose owners a migration trusts. */
  readOwned(client: ClientLike): Promise<State | null> {
    return this.asOwner(client, async () => {
      const ownership = await this.assertOwned(client)
      return this.read(client, ownership)
    })
  }

  /**
   * The version of a schema of any owner: a process that works in it trusts its owner, but reads nothing that only looks like
   * it.
   */
  async readTables(client: ClientLike): Promise<State | null> {
    const ownership = await this.lookAtTables(client)
    return this.read(client, ownership)
  }

  /** The tables in the catalog; refuses objects that only have their names. */
  async lookAtTables(client: ClientLike): Promise<Ownership> {
    const ownership = await ownershipOf(client, this.options.schema)
    this.assertTables(ownership)
    return ownership
  }

  /** The owner of an object here could have its code run by a migration. */
  private async assertOwned(client: ClientLike): Promise<Ownership> {
    const { schema } = this.options
    const ownership = await ownershipOf(client, schema, this.owner)
    assertOwned(ownership, schema, this.owner)
    this.assertTables(ownership)
    return ownership
  }

  private assertTables({ untrue }: Ownership): void {
    if (untrue.length > 0) throw this.foreign(untrue)
  }

  /** Reads as the owner, if one is named. */
  asOwner<Answer>(client: ClientLike, work: () => Promise<Answer>): Promise<Answer> {
    return asRole(client, this.owner, work)
  }

  /** How far the schema is; null if it is not there, or not ours, or only begun. */
  async read(client: ClientLike, { present }: Ownership): Promise<State | null> {
    const { schema } = this
    if (!present.has('migrations') || !present.has('settings')) return null
    const text = `select (select max(version) from ${schema}.migrations) as version, ${minClientOf(schema)} as min_client,
      (select value from ${schema}.settings where shard = 0 and name = 'shards') as shards`
    let row: Row | undefined
    try {
      row = (await client.query({ text })).rows[0]
    } catch (error) {
      // No such schema, table or column; or tables of another application, on which any query of ours may fail.
      if (/^(?:3F000|42(?!501))/.test(sqlStateOf(error) ?? '')) return null
      throw error
    }
    if (row === undefined || row['min_client'] === null || row['shards'] === null) return null
    assertClient(row['min_client'], this.known)
    const shards = Number(row['shards'])
    this.checkFixed(shards)
    return { version: Number(row['version']), shards }
  }

  private checkFixed(found: number): void {
    const { schema: name, shards: given } = this.options
    if (given === undefined || given === found) return
    throw new HoldfastError(
      'INVALID_OPTION',
      `The schema ${shown(name)} was made with ${found} ${found === 1 ? 'shard' : 'shards'}, and that is fixed. ` +
        `Got ${given}: leave the option out, or choose another schema.`,
      { details: { found, given } },
    )
  }

  /** Looks for objects with our names. Tables of another application are not touched. */
  async look(client: ClientLike): Promise<Found> {
    const name = quoteText(this.options.schema)
    const tables = `select c.relname as name, (
        select count(*) from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname in ('version', 'at')
      ) as columns
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${name} and c.relname in (${tableNames.map(quoteText).join(', ')}) order by c.relname`
    const { rows } = await client.query({ text: tables })
    const hasMigrations = rows.some((row) => row['name'] === 'migrations' && Number(row['columns']) === 2)
    if (rows.length > 0 && !hasMigrations) throw this.foreign(rows.map((row) => String(row['name'])))
    const schemas = `select 1 as one from pg_catalog.pg_namespace where nspname = ${name}`
    return { hasSchema: (await client.query({ text: schemas })).rows.length > 0, hasMigrations }
  }

  /** Makes the schema and the table of migrations, as far as they are missing. */
  async begin(client: ClientLike, server: Server): Promise<void> {
    const found = await this.asOwner(client, async () => {
      const seen = await this.look(client)
      await this.assertOwned(client)
      return seen
    })
    await this.execute(client, this.beginning(found, server))
  }

  /** Existing objects are not created again: even `if not exists` asks for the right to create. */
  beginning({ hasSchema, hasMigrations }: Found, server: Server): readonly string[] {
    if (hasMigrations) return []
    const { schema } = this
    return [
      ...frame(server, this.owner),
      // Not `if not exists`: if another process makes it just now, it is looked at again.
      ...(hasSchema ? [] : [`create schema ${schema}`]),
      `create table ${schema}.migrations (version integer primary key, at bigint not null)`,
      `insert into ${schema}.migrations (version, at) values (0, ${this.now})`,
      'commit',
    ]
  }

  /** Executes one version, unless that was done. Returns whether it did. */
  async apply(client: ClientLike, version: number, server: Server): Promise<boolean> {
    for (const text of this.opening(server)) await client.query({ text })
    // Under the lock: no object can be replaced any more.
    await this.assertOwned(client)
    // A new statement: its snapshot has the commits of earlier holders of the lock.
    const { rows } = await client.query({ text: `select max(version) as version from ${this.schema}.migrations` })
    const current = rows[0]?.['version']
    if (current === null || Number(current) >= version) {
      await client.query({ text: 'rollback' })
      if (current === null) throw this.foreign(['migrations'])
      return false
    }
    for (const text of this.opening(server)) this.options.onSql?.(text)
    await this.execute(client, [...this.changes(version, server), 'commit'])
    return true
  }

  /** Spreads tables that are to be spread and are not. */
  async spread(client: ClientLike, server: Server): Promise<void> {
    const { citus = false, schema } = this.options
    if (!citus && !(await isSpread(client, schema))) return
    const text = `select value from ${this.schema}.settings where shard = 0 and name = 'shards'`
    const { rows } = await this.asOwner(client, () => client.query({ text }))
    const shards = Number(rows[0]?.['value'])
    if ((await this.spreading(client, shards)).length === 0) return
    for (const opening of this.opening(server)) await client.query({ text: opening })
    // Under the lock: another process may have done it.
    await this.assertOwned(client)
    const statements = await this.spreading(client, shards)
    if (!(await isSpread(client, schema))) await assertIdle(client, schema, this.now)
    if (statements.length > 0) for (const opening of this.opening(server)) this.options.onSql?.(opening)
    await this.execute(client, [...statements, 'commit'])
  }

  async spreading(client: ClientLike, shards: number): Promise<readonly string[]> {
    const { schema, citus = false } = this.options
    if (!citus && !(await isSpread(client, schema))) return []
    return spreadingOf(client, { schema, shards })
  }

  /** The transaction of a version, up to the lock that lets one process in. */
  opening(server: Server): readonly string[] {
    return [...frame(server, this.owner), `select version from ${this.schema}.migrations where version = 0 for update`]
  }

  changes(version: number, { isCockroach }: Server): readonly string[] {
    const { schema, now, shards } = this
    const migration = this.migrations[version - 1]
    if (migration === undefined) throw new HoldfastError('BUG', `There is no migration ${version}.`)
    const fixed = `insert into ${schema}.settings (shard, name, value) values (0, 'shards', '${shards}')`
    return [
      isCockroach ? migration(schema, () => '') : migration(schema),
      ...(version === 1 ? [fixed] : []),
      `insert into ${schema}.migrations (version, at) values (${version}, ${now})`,
    ]
  }

  private async execute(client: ClientLike, statements: readonly string[]): Promise<void> {
    for (const text of statements) {
      this.options.onSql?.(text)
      for (const one of splitSql(text)) await client.query({ text: one })
    }
  }

  /** An object has the name of one of our indexes: they share a namespace with tables. */
  readonly refuse = (error: unknown): never => {
    if (sqlStateOf(error) !== '42P07') throw error
    throw this.foreign([/"([^"]*)"/.exec(String(error))?.[1] ?? 'like a table of Holdfast'])
  }

  private foreign(found: readonly string[]): HoldfastError {
    return new HoldfastError(
      'INVALID_OPTION',
      `The schema ${shown(this.options.schema)} has something of its own that is named ${found.join(', ')}, and Holdfast ` +
        `needs ${tableNames.join(', ')}. Choose another schema: Holdfast makes it.`,
      { details: { found } },
    )
  }
}

function untouched({ version, shards }: State): Migrated {
  return { from: version, to: version, shards }
}

function checkShards(shards: number): number {
  if (Number.isInteger(shards) && shards >= 1 && shards <= mostShards) return shards
  throw new HoldfastError(
    'INVALID_OPTION',
    `The number of shards is a whole number from 1 to ${mostShards}. Got ${shown(shards)}.`,
  )
}
