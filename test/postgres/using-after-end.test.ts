// `holdfast.using(tx)` and the end of the transaction on Postgres: whatever a user did not await, nothing is written outside of
// the transaction in which they made the call, and the next transaction on the connection stays as it is.

import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { topic, workflow, type Holdfast, type RunHandle, type TransactionClient } from 'holdfast'
import { openPostgresStore } from '../../src/stores/postgres/index.ts'
import { connectedTo, place } from './lent.ts'
import { holdfastAt } from './proxied.ts'

const patient = workflow('patient', (ctx) => ctx.receive('never'))
const parent = workflow('parent', async (ctx) => ctx.child(patient))
const news = topic<string>('news')
const reader = workflow('reader', (ctx) => ctx.receive(news))
const over = { code: 'INVALID_OPTION', message: expect.stringContaining('Await each call before') as string }

async function rowsOf(client: Client, text: string, values: readonly unknown[]): Promise<readonly object[]> {
  return (await client.query<object>(text, [...values])).rows
}

interface World {
  readonly client: Client
  readonly holdfast: Holdfast
  readonly run: RunHandle<unknown>
  readonly dump: () => Promise<unknown>
}

async function world(shards: number): Promise<World> {
  const { url, client } = await place({ listen: false, connections: 2 })
  const store = await openPostgresStore({ url, schema: 'here', shards })
  const holdfast = await holdfastAt({ store, workflows: [patient, parent, reader] })
  const worker = await holdfast.work()
  const run = await holdfast.start(parent)
  await holdfast.start(reader)
  const admin = await connectedTo(url)
  await expect.poll(async () => (await holdfast.count({ status: 'waiting' })).count, { timeout: 30_000 }).toBe(3)
  await worker.stop()
  const tables = ['runs', 'journal', 'messages', 'waits', 'topics', 'broadcasts', 'feed', 'tags', 'keys', 'chores']
  const dump = async (): Promise<unknown> => {
    const all = tables.map(
      (name) => `(select coalesce(json_agg(t order by t::text), '[]') from here.${name} as t) as ${name}`,
    )
    return (await admin.query(`select ${all.join(', ')}`)).rows[0]
  }
  return { client, holdfast, run, dump }
}

type Call = (using: TransactionClient, world: World) => Promise<unknown>

const calls: readonly (readonly [name: string, call: Call])[] = [
  ['a start', (using) => using.start(patient, undefined, { tags: ['a'] })],
  ['a start with keys', (using) => using.start(patient, undefined, { key: 'k', idempotencyKey: 'i', tags: ['b'] })],
  ['a signal', (using, { run }) => using.signal(run, 'paid', 1)],
  ['a broadcast', (using) => using.broadcast(news, 'hello')],
  ['a cancellation', (using, { run }) => using.cancel(run)],
]

describe.each([1, 3])('with %i shards', { timeout: 120_000 }, (shards) => {
  it.each(calls)(
    '%s writes nothing, whichever of its statements the end of the transaction comes before',
    async (_name, call) => {
      const here = await world(shards)
      const { client, holdfast, dump } = here
      const before = await dump()
      for (const end of ['rollback', 'rollback; begin']) {
        let statements = Infinity
        // The identity of the transaction is read with the first statement: after that, it may end at any time.
        for (let at = 2; at <= statements; at += 1) {
          let count = 0
          const query = async (text: string, values: readonly unknown[]): Promise<readonly unknown[]> => {
            count += 1
            if (count === at) await client.query(end)
            return rowsOf(client, text, values)
          }
          await client.query('begin')
          const answer = await call(holdfast.using({ query }), here).catch((error: unknown) => error)
          if (count < at) {
            statements = count
            await client.query('rollback')
            continue
          }
          expect(answer).toMatchObject(over)
          // The next transaction is as good as new.
          await client.query("update accounts set balance = balance + 1 where id = 'a'")
          await client.query('commit')
          expect(await dump()).toEqual(before)
        }
      }
    },
  )
})

describe('with a client of pg', { timeout: 60_000 }, () => {
  it('a later call on the same object is refused', async () => {
    const { client, holdfast, dump } = await world(1)
    const before = await dump()
    for (const end of ['rollback', 'commit; begin; rollback']) {
      await client.query('begin')
      const using = holdfast.using(client)
      await expect(using.signal('01900000-0000-7000-8000-000000000000', 'x')).resolves.toMatchObject({
        outcome: 'target-not-found',
      })
      await client.query(end)
      await expect(using.start(patient)).rejects.toMatchObject(over)
      await client.query('begin')
      await expect(using.start(patient)).rejects.toMatchObject(over)
      await client.query('commit')
    }
    expect(await dump()).toEqual(before)
  })

  it.each([1, 2])(
    'call %i, not awaited before a rollback, is refused, also if another transaction follows',
    async (nth) => {
      const { client, holdfast, dump } = await world(1)
      const before = await dump()
      for (const next of [null, 'begin']) {
        await client.query('begin')
        const using = holdfast.using(client)
        if (nth === 2) await using.start(patient)
        const forgotten = using.start(patient).catch((error: unknown) => error)
        const ended = client.query('rollback')
        const begun = next === null ? null : client.query(next)
        await ended
        await begun
        expect(await forgotten).toMatchObject(over)
        await client.query("update accounts set balance = 1 where id = 'a'")
        if (next !== null) await client.query('commit')
      }
      expect(await dump()).toEqual(before)
    },
  )

  it('savepoints are part of the transaction', async () => {
    const { client, holdfast } = await world(1)
    await client.query('begin')
    const using = holdfast.using(client)
    await client.query('savepoint a')
    const lost = await using.start(patient)
    await expect(client.query('nonsense')).rejects.toThrow('syntax')
    await client.query('rollback to a')
    await client.query('savepoint b')
    const kept = await using.start(patient)
    await client.query('release b')
    const also = await using.start(patient)
    await client.query('commit')
    await expect(lost.status()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
    expect(await Promise.all([kept.status(), also.status()])).toEqual(['pending', 'pending'])
  })

  it('that never connected is refused as an idle one is, and does not hang', async () => {
    const { url, open } = await place({ listen: false })
    const holdfast = await open({ workflows: [patient] })
    const client = new Client({ connectionString: url })
    onTestFinished(() => client.end())
    expect(() => holdfast.using(client)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it('a start needs no more round trips than before: the path, the insert and the hint', async () => {
    const { client, store, open } = await place()
    const holdfast = await open({ store, workflows: [patient] })
    const sent: string[] = []
    const query = async (text: string, values: readonly unknown[]): Promise<readonly unknown[]> => {
      sent.push(text)
      return rowsOf(client, text, values)
    }
    await client.query('begin')
    const using = holdfast.using({ query })
    await using.start(patient)
    expect(sent).toHaveLength(3)
    await using.start(patient)
    expect(sent).toHaveLength(5)
    await client.query('commit')
  })
})

it('an adapter that is in no transaction at all starts nothing', async () => {
  const { client, holdfast, dump } = await world(1)
  const before = await dump()
  const query = (text: string, values: readonly unknown[]): Promise<readonly object[]> => rowsOf(client, text, values)
  await expect(holdfast.using({ query }).start(patient)).rejects.toMatchObject(over)
  expect(await dump()).toEqual(before)
})
