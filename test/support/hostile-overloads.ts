// A database in which a role that may create in `public`, as every role may by default up to Postgres 14, has put an operator or
// a function of their own beside each that our statements use. Postgres picks one of `public` where its types fit better than
// those of `pg_catalog`; here a statement that runs one fails. Those whose types are the same are there as well: they lose.

import { Client } from 'pg'
import { freshDatabase } from './postgres-shared.ts'

const types = [
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'double precision',
  'oid',
  'text',
  'varchar',
  'name',
  'uuid',
  'boolean',
  'json',
]
const comparing = ['=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~']
const computing = ['+', '-', '*', '/', '%', '||', '->', '->>']

/** What our statements call, and what they might. */
const functions = [
  'array_agg',
  'array_to_json',
  'concat',
  'concat_ws',
  'count',
  'current_setting',
  'json_agg',
  'json_array_elements',
  'json_array_elements_text',
  'json_build_object',
  'lag',
  'lead',
  'length',
  'max',
  'min',
  'nextval',
  'octet_length',
  'pg_notify',
  'set_config',
  'starts_with',
  'strpos',
  'split_part',
  'sum',
  'to_timestamp',
]
const polymorphic = [
  'anyelement',
  'anyelement, anyelement',
  'anyelement, anyelement, anyelement',
  'variadic anyarray',
  'anyelement, variadic anyarray',
]

/** The address of such a database. Its own user may do everything; the traps are those of `attacker`. */
export async function hostileDatabase(): Promise<string> {
  const url = await freshDatabase()
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const attacker = `attacker_${new URL(url).pathname.slice(1)}`
    await client.query(`create role ${attacker}; grant create, usage on schema public to ${attacker}`)
    await client.query(`set role ${attacker}`)
    for (const statement of traps()) await client.query(statement)
  } finally {
    await client.end()
  }
  return url
}

function traps(): readonly string[] {
  const pairs = types.flatMap((left) => types.map((right) => [left, right] as const))
  const named = pairs.flatMap(([left, right]) => [
    trap('trap_compare', `${left}, ${right}`, 'boolean'),
    trap('trap_compute', `${left}, ${right}`, left),
  ])
  const operators = pairs.flatMap(([left, right]) => [
    ...comparing.map((name) => operator(name, 'trap_compare', left, right)),
    ...computing.map((name) => operator(name, 'trap_compute', left, right)),
  ])
  const called = functions.flatMap((name) => [
    ...types.flatMap((one) => [trap(name, one, one), trap(name, `${one}[]`, one)]),
    ...pairs.map(([left, right]) => trap(name, `${left}, ${right}`, left)),
    ...pairs.map(([left, right]) => trap(name, `${left}, ${right}, boolean`, left)),
    ...polymorphic.map((taken) => trap(name, taken, 'text')),
  ])
  return [named, operators, called].map((some) => some.join('\n'))
}

/** A function that says whose name it has, and by which types it was found. */
function trap(name: string, taken: string, given: string): string {
  return `create function public.${name}(${taken}) returns ${given} language plpgsql as
    $$ begin raise exception 'a trap ran: ${name}(${taken})'; end $$;`
}

function operator(name: string, call: string, left: string, right: string): string {
  return `create operator public.${name} (leftarg = ${left}, rightarg = ${right}, function = public.${call});`
}
