// A run that reads one message of many and ends, and how it comes to have so many.

import { Client, escapeIdentifier } from 'pg'
import { workflow } from '../../src/index.ts'

export const hoarder = workflow('hoarder', async (ctx) => {
  await ctx.receive('go')
  return 'over'
})

/** Puts messages into a mailbox, past the store: it would take its time. */
export async function fill(url: string, schema: string, runId: string, count: number): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`set search_path to ${escapeIdentifier(schema)}`)
    await client.query('begin')
    await client.query(
      `insert into messages (shard, run_id, position, id, name, data, at, outcome, on_unread)
       select 0, run.id, run.inbox + n, 'left-' || n, 'other', '{"value":1}', 1, 'queued', 'dead-letter'
       from runs as run cross join generate_series(1, $2::integer) as n where run.id = $1::uuid`,
      [runId, count],
    )
    await client.query('update runs set inbox = inbox + $2::integer where id = $1::uuid', [runId, count])
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** Lets so many runs wait for the end of one, past the store; nothing else is known of them. */
export async function crowd(url: string, schema: string, runId: string, count: number): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`set search_path to ${escapeIdentifier(schema)}`)
    await client.query('begin')
    await client.query(
      `insert into waits (shard, kind, target, run_id, effect, delivery, opened_at)
       select 0, 'run', $1::text, gen_random_uuid(), 'notify', null, n from generate_series(1, $2::integer) as n`,
      [runId, count],
    )
    await client.query('update runs set watched = true where id = $1::uuid', [runId])
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** How many dead letters there are. */
export async function deadLetters(url: string, schema: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const sql = `select count(*) as dead from ${escapeIdentifier(schema)}.messages where fate = 'dead'`
    const { rows } = await client.query<{ dead: string }>(sql)
    return Number(rows[0]?.dead)
  } finally {
    await client.end()
  }
}
