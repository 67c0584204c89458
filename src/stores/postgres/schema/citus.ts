// The tables of a schema on Citus. A run and all that it owns lie in one shard of ours, and a shard of ours lies on one
// machine: the tables of runs are spread by the column `shard`, together. What every machine reads beside them is copied to
// each, and what only the coordinator reads stays there.
//
//   on one machine → spread   `holdfast migrate --citus`, in one transaction, while no process works in the schema
//   spread → spread           every later migration: tables that it has made are spread, too
//
// A process finds out by the catalog which of the two it is (`isSpread`), and makes its statements accordingly.

import { HoldfastError } from '../../../core/errors/error.ts'
import type { ClientLike } from '../connection/database.ts'
import { tableNames } from '../table-names.ts'
import { quoteSchema, quoteText } from './schema-name.ts'

/** Claims and starts read sessions wherever their runs are; the rest is read by statements of shard 0. */
const copied: readonly string[] = ['sequencer', 'sessions', 'settings', 'workflows']

/** Read by themselves, and by the coordinator only. */
const local: readonly string[] = ['migrations', 'secrets']

/** The others, `runs` first: they are spread as it is. */
const spread: readonly string[] = [
  'runs',
  ...tableNames.filter((name) => name !== 'runs' && !copied.includes(name) && !local.includes(name)),
]

/** Numbers of shards of Citus; each of them may hold several of ours. Each costs a table and its indexes for each of our tables. */
const counts = [8, 16, 32, 64, 128]

/** No machine has more of our shards than its part by this factor, if some number of shards of Citus allows that. */
const mostSkew = 1.2

type Queries = Pick<ClientLike, 'query'>

/** Whether the rows of a schema are spread by Citus. Any search path will do. */
export async function isSpread(client: Queries, schema: string): Promise<boolean> {
  if (!(await hasCitus(client))) return false
  const runs = quoteText(`${quoteSchema(schema)}.runs`)
  const text = `select 1 from pg_catalog.pg_dist_partition
    where logicalrelid::pg_catalog.oid operator(pg_catalog.=) pg_catalog.to_regclass(${runs}::pg_catalog.text)::pg_catalog.oid`
  return (await client.query({ text })).rows.length > 0
}

async function hasCitus(client: Queries): Promise<boolean> {
  const text = `select pg_catalog.to_regclass('pg_catalog.pg_dist_partition'::pg_catalog.text) as found`
  return (await client.query({ text })).rows[0]?.['found'] !== null
}

/** The statements that spread the tables of a schema as far as they are not; none if there is nothing to do. */
export async function spreadingOf(
  client: Queries,
  { schema, shards }: { readonly schema: string; readonly shards: number },
): Promise<readonly string[]> {
  const placed = await placesOf(client, schema)
  if (placed === null) throw noCitus()
  const left = (names: readonly string[]): readonly string[] => names.filter((name) => !placed.has(name))
  const named = (name: string): string => quoteText(`${quoteSchema(schema)}.${name}`)
  const count = placed.has('runs') ? 0 : await countFor(client, shards)
  const statements = [
    ...left(copied).map((name) => `select pg_catalog.create_reference_table(${named(name)})`),
    ...left(spread).map((name) => {
      const how =
        name === 'runs' ? `colocate_with => 'none', shard_count => ${count}` : `colocate_with => ${named('runs')}`
      return `select pg_catalog.create_distributed_table(${named(name)}, 'shard', ${how})`
    }),
  ]
  // Reference tables and others in one transaction: over one connection to each machine.
  return statements.length === 0 ? [] : [`set local citus.multi_shard_modify_mode = 'sequential'`, ...statements]
}

/** Throws if a process works in the schema: its statements are made for tables on one machine. */
export async function assertIdle(client: Queries, schema: string, now: string): Promise<void> {
  const text = `select count(*)::integer as alive from ${quoteSchema(schema)}.sessions where ended_at is null and alive_until > ${now}`
  const alive = Number((await client.query({ text })).rows[0]?.['alive'])
  if (alive === 0) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `${alive === 1 ? 'A worker works' : `${alive} workers work`} in this schema, with statements for tables on one machine. Stop all ` +
      'processes that use the schema, spread its tables, and start them again.',
    { details: { alive } },
  )
}

/** The tables that Citus has spread or copied; null if the database has no Citus. */
async function placesOf(client: Queries, schema: string): Promise<ReadonlySet<string> | null> {
  if (!(await hasCitus(client))) return null
  const text = `select c.relname::text as name from pg_catalog.pg_dist_partition as p
    join pg_catalog.pg_class as c on c.oid = p.logicalrelid join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = ${quoteText(schema)} and (p.partmethod = 'h'::"char" or p.repmodel = 't'::"char")`
  return new Set((await client.query({ text })).rows.map((row) => String(row['name'])))
}

/**
 * Citus places a row by a hash of its shard, so sixteen shards of ours in sixteen of Citus came to lie 11 to 5 on two
 * machines. The smallest number that spreads them well is asked of its own hash.
 */
async function countFor(client: Queries, shards: number): Promise<number> {
  const text = `
    with machines as (
      select greatest(count(*), 1) as number from pg_catalog.pg_dist_node
      where shouldhaveshards and isactive and noderole = 'primary')
    select count.value::integer as count
    from machines cross join unnest(array[${counts.join(', ')}]) as count (value) cross join lateral (
      select max(rows) as most from (
        select count(*) as rows from generate_series(0, ${shards - 1}) as own (shard)
        group by ((pg_catalog.worker_hash(own.shard::smallint)::bigint + 2147483648)
          / (4294967296 / count.value)) % machines.number) as machine) as fullest
    order by greatest(fullest.most, ${mostSkew} * ${shards} / machines.number), count.value limit 1`
  return Number((await client.query({ text })).rows[0]?.['count'])
}

function noCitus(): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    'This database has no Citus: create the extension in it, and add the workers with citus_add_node(), before its tables are ' +
      'spread over them.',
  )
}
