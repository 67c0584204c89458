// The libraries whose transactions Holdfast takes part in, each with its real package. A row says how a user of it writes a
// transaction and an insert; `misuse` is what they could hand over by mistake.

import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import makeKnex from 'knex'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'

async function inTransaction(client, work) {
  await client.query('begin')
  try {
    const answer = await work(client)
    await client.query('commit')
    return answer
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

async function pgClient(url) {
  const pool = new pg.Pool({ connectionString: url })
  return {
    async transaction(work) {
      const client = await pool.connect()
      try {
        return await inTransaction(client, work)
      } finally {
        client.release()
      }
    },
    insert: (tx, id) => tx.query('insert into orders (id) values ($1)', [id]),
    misuse: pool,
    close: () => pool.end(),
  }
}

/** An application that reads numbers and columns in its own way must not confuse us. */
async function pgWithOwnTypes(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  client.setTypeParser(20, (text) => BigInt(text))
  client.setTypeParser(23, (text) => `integer ${text}`)
  return {
    transaction: (work) => inTransaction(client, work),
    insert: (tx, id) => tx.query('insert into orders (id) values ($1)', [id]),
    misuse: client,
    close: () => client.end(),
  }
}

async function postgresJs(url) {
  const connection = postgres(url, { onnotice: () => undefined, transform: postgres.camel })
  return {
    transaction: (work) => connection.begin(work),
    insert: (tx, id) => tx`insert into orders (id) values (${id})`,
    misuse: connection,
    close: () => connection.end(),
  }
}

async function drizzleOverPg(url) {
  const pool = new pg.Pool({ connectionString: url })
  const db = drizzlePg(pool)
  return {
    transaction: (work) => db.transaction(work),
    insert: (tx, id) => tx.execute(sql`insert into orders (id) values (${id})`),
    misuse: db,
    close: () => pool.end(),
  }
}

async function drizzleOverPostgresJs(url) {
  const connection = postgres(url, { onnotice: () => undefined })
  const db = drizzlePostgresJs(connection)
  return {
    transaction: (work) => db.transaction(work),
    insert: (tx, id) => tx.execute(sql`insert into orders (id) values (${id})`),
    misuse: db,
    close: () => connection.end(),
  }
}

async function kysely(url) {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) })
  const db = new Kysely({ dialect, plugins: [new CamelCasePlugin()] })
  return {
    transaction: (work) => db.transaction().execute(work),
    insert: (tx, id) => tx.insertInto('orders').values({ id }).execute(),
    misuse: db,
    close: () => db.destroy(),
  }
}

async function knex(url) {
  const db = makeKnex({ client: 'pg', connection: url })
  return {
    transaction: (work) => db.transaction(work),
    insert: (tx, id) => tx('orders').insert({ id }),
    misuse: db,
    close: () => db.destroy(),
  }
}

async function prisma(url) {
  const { PrismaClient } = await import('./node_modules/.prisma-orders/index.js').then((module) => module.default)
  const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
  return {
    transaction: (work) => client.$transaction(work),
    insert: (tx, id) => tx.order.create({ data: { id } }),
    misuse: client,
    close: () => client.$disconnect(),
  }
}

async function typeormManager(url) {
  const source = await new DataSource({ type: 'postgres', url }).initialize()
  return {
    transaction: (work) => source.transaction(work),
    insert: (tx, id) => tx.query('insert into orders (id) values ($1)', [id]),
    misuse: source.manager,
    close: () => source.destroy(),
  }
}

async function typeormRunner(url) {
  const source = await new DataSource({ type: 'postgres', url }).initialize()
  const runner = source.createQueryRunner()
  return {
    async transaction(work) {
      await runner.startTransaction()
      try {
        const answer = await work(runner)
        await runner.commitTransaction()
        return answer
      } catch (error) {
        await runner.rollbackTransaction()
        throw error
      }
    },
    insert: (tx, id) => tx.query('insert into orders (id) values ($1)', [id]),
    misuse: source,
    async close() {
      await runner.release()
      await source.destroy()
    },
  }
}

/** What has no library: anything that can send a statement. */
async function ownAdapter(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const adapter = {
    query: async (text, values) => (await client.query(text, values)).rows,
  }
  return {
    transaction: (work) => inTransaction(client, () => work(adapter)),
    insert: (tx, id) => tx.query('insert into orders (id) values ($1)', [id]),
    misuse: { send: () => undefined },
    close: () => client.end(),
  }
}

export const libraries = [
  { name: 'pg', open: pgClient },
  { name: 'pg with types of its own', open: pgWithOwnTypes },
  { name: 'postgres.js with columns in camel case', open: postgresJs },
  { name: 'Drizzle over pg', open: drizzleOverPg },
  { name: 'Drizzle over postgres.js', open: drizzleOverPostgresJs },
  { name: 'Kysely with columns in camel case', open: kysely },
  { name: 'Knex', open: knex },
  { name: 'Prisma', open: prisma },
  { name: 'TypeORM, the manager of a transaction', open: typeormManager },
  { name: 'TypeORM, a query runner', open: typeormRunner },
  { name: 'an adapter of the user', open: ownAdapter },
]
