// A role that prepares a schema for others to migrate, and a trap that shows with whose rights it ran.

import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { roleNames } from '../../../../src/stores/postgres/schema/roles.ts'
import { emptyPlace, type Place } from './database.ts'

export interface Prepared extends Place {
  /** Who has prepared it. */
  readonly eve: string
  /** A function of hers, which looks for more rights than her own. */
  readonly trap: string
  /** Executes something as her. */
  readonly asEve: (...statements: readonly string[]) => Promise<void>
  /** How often it found some. */
  readonly caught: () => Promise<number>
  /** The address of the same database for a superuser. */
  readonly admin: string
  /** The same for her. */
  readonly url: string
  /** The same for a role that is made for it. */
  readonly urlOf: (role: string) => Promise<string>
}

/** A role of her own, who may create schemas, and a trap beside the schema that we shall migrate. */
export async function prepared(): Promise<Prepared> {
  const place = await emptyPlace()
  const { rows, schema, pool } = place
  const eve = `eve_${randomBytes(4).toString('hex')}`
  const lair = `${schema}_lair`
  const admin = pool.options.connectionString as string
  const [row] = await rows('select current_database() as name')
  const urlOf = async (role: string): Promise<string> => {
    await rows(
      `create role ${role} login password 'known'; grant create on database ${String(row?.['name'])} to ${role}`,
    )
    onTestFinished(async () => void (await rows(`drop owned by ${role} cascade; drop role ${role}`)))
    return Object.assign(new URL(admin), { username: role, password: 'known' }).href
  }
  const url = await urlOf(eve)
  const asEve = async (...statements: readonly string[]): Promise<void> => {
    const client = new Client({ connectionString: url })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  // A role that was given another role can give it back. What a sequence counts outlasts a rollback.
  const look = `begin perform set_config('role', 'none', true); exception when others then null; end;
    if current_user <> '${eve}' then perform nextval('${lair}.caught'); end if;`
  await asEve(
    `create schema ${lair}`,
    `grant usage on schema ${lair} to public`,
    `create sequence ${lair}.caught`,
    `grant usage on ${lair}.caught to public`,
    `create function ${lair}.trap() returns boolean language plpgsql volatile as $$ begin ${look} return true; end $$`,
    // Postgres calls it when it plans a statement.
    `create function ${lair}.still() returns boolean language plpgsql immutable as
      $$ begin perform ${lair}.trap(); return true; end $$`,
    `create function ${lair}.spring() returns trigger language plpgsql volatile as $$ begin ${look} return new; end $$`,
  )
  const caught = async (): Promise<number> => {
    const [found] = await rows(
      `select case when is_called then last_value else 0 end::int as count from ${lair}.caught`,
    )
    return found?.['count'] as number
  }
  return { ...place, eve, trap: `${lair}.trap()`, asEve, caught, admin, url, urlOf }
}

/** Drops the roles of that prefix that are there, with all that is theirs. */
export async function dropRoles(rows: Place['rows'], prefix: string): Promise<void> {
  for (const name of Object.values(roleNames(prefix))) {
    const [found] = await rows(`select 1 as one from pg_roles where rolname = '${name}'`)
    if (found !== undefined) await rows(`drop owned by ${name} cascade; drop role ${name}`)
  }
}
