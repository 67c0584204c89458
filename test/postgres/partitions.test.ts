// Runs and their journals in partitions by id: the store keeps the contract there, with the same statements. Nothing is unique
// in these tables that does not begin with an id, so they can be partitioned as the migrations make them.

import { Client, escapeIdentifier } from 'pg'
import { expect, it } from 'vitest'
import { runContract } from '../contract/run-contract.ts'
import { sharedPostgres } from '../support/postgres-shared.ts'
import { openTestStore } from '../support/postgres-store.ts'

/** A case begins at this time of its store: its runs fall into several partitions. */
const startMs = 1_893_456_000_000
const bounds = [0, 1, 5, 20, 1_000, 60_000].map((ms) => idAt(startMs + ms))

const partitioned = { runs: 'id', journal: 'run_id' } as const

function idAt(ms: number): string {
  const digits = ms.toString(16).padStart(12, '0')
  return `'${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-000000000000'`
}

/** Puts tables in partitions in the place of those of a schema; what they are like is copied. */
function partitioningSql(at: string): readonly string[] {
  return Object.entries(partitioned).flatMap(([table, column]) => {
    const ranges = [...bounds, 'maxvalue'].map((end, index) => [bounds[index - 1] ?? 'minvalue', end] as const)
    return [
      `alter table ${at}.${table} rename to ${table}_whole`,
      `create table ${at}.${table} (like ${at}.${table}_whole including all) partition by range (${column})`,
      `drop table ${at}.${table}_whole`,
      ...ranges.map(
        ([from, to], index) =>
          `create table ${at}.${table}_${index} partition of ${at}.${table} for values from (${from}) to (${to})`,
      ),
    ]
  })
}

async function executeAll(url: string, statements: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const text of statements) rows = (await client.query<Record<string, unknown>>(text)).rows
    return rows
  } finally {
    await client.end()
  }
}

/** Schemas of this address are used by no other test file. */
async function ownAddress(): Promise<string> {
  const url = new URL(await sharedPostgres())
  url.searchParams.set('application_name', 'partitions')
  return url.href
}

async function openPartitioned(): ReturnType<typeof openTestStore> {
  const server = await ownAddress()
  const onMade = async (schema: string): Promise<void> => {
    await executeAll(server, partitioningSql(escapeIdentifier(schema)))
  }
  return openTestStore({ server, onMade })
}

it('runs and their entries lie in several partitions', async () => {
  const { store, clock, schema } = await openPartitioned()
  const { createContractBench } = await import('../../src/testing/contract/index.ts')
  const bench = createContractBench({ store, clock })
  for (const ms of [0, 2, 10, 500]) {
    await clock.advance(ms)
    await bench.start()
  }
  const at = escapeIdentifier(schema)
  const [found] = await executeAll(await ownAddress(), [
    `select (select count(distinct tableoid)::int from ${at}.runs) as runs,
      (select count(distinct tableoid)::int from ${at}.journal) as journal`,
  ])
  expect(found).toEqual({ runs: 4, journal: 4 })
  await store.close()
})

runContract('Postgres with runs and journals in partitions', openPartitioned)
