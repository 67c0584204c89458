// Every role of a database may listen on every channel and send it anything. What a worker does for that is counted.

import { Client, Pool } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { createHoldfast, workflow } from 'holdfast'
import { channelOf } from '../../src/stores/postgres/open.ts'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { keepLines } from '../holdfast/open.ts'
import { freshSchema } from '../support/postgres-shared.ts'

const echo = workflow('secret.echo', (_ctx, value: number) => value)

async function client(url: string): Promise<Client> {
  const opened = new Client({ connectionString: url })
  await opened.connect()
  onTestFinished(() => opened.end())
  return opened
}

/** A pool that keeps every text that is sent on its connections, that of the listener among them. */
function watchedPool(url: string): { readonly pool: Pool; readonly sent: readonly string[] } {
  const pool = new Pool({ connectionString: url, pipeline: true })
  onTestFinished(() => pool.end())
  const sent: string[] = []
  pool.on('connect', (connection) => {
    const send = connection.query.bind(connection) as (...given: unknown[]) => unknown
    const keep = (...given: unknown[]): unknown => {
      const [query] = given as [string | { readonly text: string }]
      sent.push(typeof query === 'string' ? query : query.text)
      return send(...given)
    }
    connection.query = keep as typeof connection.query
  })
  return { pool, sent }
}

it('a stranger learns no type and no run, and a flood of forged and repeated notices costs a worker nothing', async () => {
  const { url, schema } = await freshSchema()
  const { pool, sent } = watchedPool(url)
  const store = await openPostgresStore({ pool, schema })
  onTestFinished(() => store.close())
  const worker = await createHoldfast({ store, workflows: [echo], poll: '10min', logger: keepLines() })
  await worker.work({ lease: '10min' })
  const starter = await createHoldfast({ store: `${url}?schema=${schema}`, workflows: [echo], logger: keepLines() })
  onTestFinished(async () => {
    await starter.close()
    await worker.close()
  })
  const stranger = await client(url)
  const overheard: string[] = []
  stranger.on('notification', ({ payload }) => void overheard.push(payload ?? ''))
  await stranger.query(`listen ${channelOf(schema)}`)
  const first = await starter.start(echo, 1)
  expect(await first.result()).toBe(1)
  await expect.poll(() => overheard.length).toBeGreaterThan(0)
  const heard = overheard.map((text) => text + Buffer.from(text, 'base64url').toString('latin1')).join()
  expect(heard).not.toMatch(/secret|echo|ready|ended/)
  expect(heard).not.toContain(first.id)

  const repeated = [...overheard]
  const before = sent.length
  const forged = `json_build_object('from', 'x' || n, 'ready', json_build_array('secret.echo'), 'chore', true)::text`
  for (let times = 0; times < 20; times += 1) {
    await stranger.query(`select count(pg_notify('${channelOf(schema)}', ${forged})) from generate_series(1, 500) n`)
    await stranger.query(`select count(pg_notify('${channelOf(schema)}', md5(n::text))) from generate_series(1, 500) n`)
    for (const text of repeated) await stranger.query('select pg_notify($1, $2)', [channelOf(schema), text])
  }
  // It comes behind all of that, and is heard.
  const last = await starter.start(echo, 2)
  expect(await last.result()).toBe(2)
  // Two transactions for the last run, of four statements each, and a notice. A few more are claims that find nothing.
  expect(sent.slice(before).length).toBeLessThanOrEqual(30)
}, 60_000)
