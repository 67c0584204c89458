// The proxy breaks what it is asked to break, at that moment and no other; and it is transparent otherwise.

import { Client, type ClientConfig } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshSchema } from './postgres-shared.ts'
import { Messages } from './wire-messages.ts'
import { startWireProxy, type Strike, type WireProxy } from './wire-proxy.ts'

let url: string
let table: string
let proxy: WireProxy
const clients: Client[] = []

beforeEach(async () => {
  const { url: direct, schema } = await freshSchema()
  url = direct
  table = `${schema}.rows`
  proxy = await startWireProxy(url)
  await ask(url, `create schema ${schema}`)
  await ask(url, `create table ${table} (value int not null)`)
})
afterEach(async () => {
  await proxy.close()
  await Promise.allSettled(clients.splice(0).map((client) => client.end()))
})

async function open(config: ClientConfig = {}): Promise<Client> {
  const client = new Client({ connectionString: proxy.url, ...config })
  // A connection that breaks says so here too; the query that was under way is what the tests look at.
  client.on('error', () => undefined)
  clients.push(client)
  await client.connect()
  return client
}

async function ask(url: string, text: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
    return rows.flat()
  } finally {
    await client.end()
  }
}

const values = (): Promise<readonly unknown[]> => ask(url, `select value from ${table} order by value`)

/** The ways in which clients write, one row a call. */
const ways: Record<string, (client: Client, value: number) => Promise<unknown>> = {
  async 'a transaction'(client, value) {
    await client.query('BEGIN')
    await client.query(`insert into ${table} values ($1)`, [value])
    await client.query('COMMIT')
  },
  'a transaction that is sent at once'(client, value) {
    const steps = ['BEGIN', { text: `insert into ${table} values ($1)`, values: [value] }, 'COMMIT']
    return Promise.all(steps.map((step) => client.query(step)))
  },
  'a transaction in one text': (client, value) => client.query(`begin; insert into ${table} values (${value}); commit`),
  'a plain statement': (client, value) => client.query(`insert into ${table} values (${value})`),
  'a prepared statement': (client, value) =>
    client.query({ name: 'insert', text: `insert into ${table} values ($1)`, values: [value] }),
}

describe.each(Object.keys(ways))('the commit of %s', (way) => {
  const write = ways[way]!
  const config = way.includes('at once') ? { pipeline: true } : {}
  const on = way.includes('transaction') ? 'commit' : 'autocommit'

  it.for([
    ['drop-request', [0, 1, 3, 4]],
    ['drop-reply', [0, 1, 2, 3, 4]],
  ] as const)('is struck by %s at the third, and what was done is there', async ([how, left]) => {
    const struck = proxy.strike({ on, nth: 3, how })
    const failed: number[] = []
    let client = await open(config)
    for (let value = 0; value < 5; value += 1) {
      try {
        await write(client, value)
      } catch (error) {
        failed.push(value)
        // Nothing tells the two cases apart.
        expect(error).toMatchObject({ message: 'Connection terminated unexpectedly' })
        expect(error).not.toHaveProperty('code')
        client = await open(config)
      }
    }
    await struck
    expect(failed).toEqual([2])
    expect(await values()).toEqual(left)
  })
})

it.for([
  ['drop-request', 0],
  ['drop-reply', 50],
] as const)('50 COMMITs struck by %s: 50 errors, %i rows', async ([how, rows]) => {
  let errors = 0
  for (let value = 0; value < 50; value += 1) {
    const struck = proxy.strike({ on: 'commit', how })
    const client = await open()
    await ways['a transaction']!(client, value).catch(() => (errors += 1))
    await struck
  }
  expect(errors).toBe(50)
  expect(await values()).toHaveLength(rows)
})

it('either counts transactions and lone writes together, and neither reads nor what is rolled back', async () => {
  const client = await open()
  const struck = proxy.strike({ on: 'either', nth: 2, how: 'drop-request' })
  await client.query('select 1')
  await ways['a transaction']!(client, 1)
  await client.query('begin')
  await client.query(`insert into ${table} values (9)`)
  await client.query('savepoint here')
  await client.query('rollback to savepoint here')
  await client.query(`insert into ${table} values (8)`)
  await client.query('rollback')
  await expect(ways['a prepared statement']!(client, 2)).rejects.toThrow('terminated')
  await struck
  expect(await values()).toEqual([1])
  expect(proxy.statements.filter(({ role }) => role === 'commit')).toHaveLength(1)
})

it('a statement is named by its text, however it is sent', async () => {
  const client = await open()
  await ways['a prepared statement']!(client, 1)
  await ways['a prepared statement']!(client, 2)
  const texts = proxy.statements.map(({ text }) => text)
  expect(texts).toEqual(Array(2).fill(`insert into ${table} values ($1)`))
  void proxy.strike({ on: /as second/, how: 'drop-request' })
  await client.query('select 1 as first')
  await expect(client.query('select 2 as second')).rejects.toThrow('terminated')
})

it('a client that listens hears nothing more in a blackhole, and is not notified', async () => {
  const [deaf, hearing] = [await open({ application_name: table }), await open()]
  const heard: string[] = []
  const hear = (name: string, client: Client): Promise<void> =>
    new Promise((resolve) => {
      client.on('notification', ({ payload = '' }) => {
        heard.push(`${name} ${payload}`)
        if (payload === 'last') resolve()
      })
      client.on('end', () => heard.push(`${name} end`))
    })
  const channel = table.replace('.', '_')
  await deaf.query(`listen ${channel}`)
  void hear('deaf', deaf)
  expect(proxy.blackhole(/^listen/)).toBe(1)
  await hearing.query(`listen ${channel}`)
  const last = hear('hearing', hearing)
  await ask(url, `notify ${channel}, 'first'`)
  // Nor is the server notified: to it, it is as if the client had nothing to say. What it says is not heard either.
  const backend = `from pg_stat_activity where application_name = '${table}'`
  expect(await ask(url, `select state ${backend}`)).toEqual(['idle'])
  expect(await ask(url, `select pg_terminate_backend(pid, 10000) ${backend}`)).toEqual([true])
  await ask(url, `notify ${channel}, 'last'`)
  await last
  expect(heard).toEqual(['hearing first', 'hearing last'])
  expect(proxy.connections).toBe(2)
})

it('who fell silent is broken off when the network is back, on both sides', async () => {
  const [silent, other] = [await open({ application_name: table }), await open()]
  await silent.query('select 1 as mine')
  expect(proxy.blackhole(/mine/, 1)).toBe(1)
  // It is silent already.
  expect(proxy.blackhole(/mine/)).toBe(0)
  const lost = silent.query('select 2')
  proxy.mend()
  await expect(lost).rejects.toThrow(/terminated|ECONNRESET/)
  const left = (): Promise<readonly unknown[]> =>
    ask(url, `select 1 from pg_stat_activity where application_name = '${table}'`)
  await expect.poll(left).toEqual([])
  await other.query('select 3')
  expect(proxy.connections).toBe(1)
})

it('notifications get lost while it is said so, and nothing else does', async () => {
  const client = await open()
  const heard: unknown[] = []
  client.on('notification', ({ payload }) => heard.push(payload))
  const channel = table.replace('.', '_')
  await client.query(`listen ${channel}`)
  proxy.muffle(true)
  // A notification for oneself comes with the answer.
  await client.query(`notify ${channel}, 'lost'`)
  proxy.muffle(false)
  await client.query(`notify ${channel}, 'heard'`)
  expect(heard).toEqual(['heard'])
})

it('who connects while there is hurry has another statement timeout than he asked for', async () => {
  const config = { options: '-c statement_timeout=60000 -c enable_sort=off' }
  const settings = `select current_setting('statement_timeout') as timeout, current_setting('enable_sort') as sort`
  const before = await open(config)
  proxy.hurry(7)
  const during = await open(config)
  await expect(during.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57014' })
  const carefree = await open()
  proxy.hurry(null)
  const after = await open(config)
  const own = { timeout: '1min', sort: 'off' }
  expect((await before.query(settings)).rows).toEqual([own])
  expect((await during.query(settings)).rows).toEqual([{ timeout: '7ms', sort: 'off' }])
  expect((await carefree.query(settings)).rows).toEqual([{ timeout: '0', sort: 'on' }])
  expect((await after.query(settings)).rows).toEqual([own])
})

it('a strike that is withdrawn strikes nobody', async () => {
  const client = await open()
  const withdrawal = new AbortController()
  const struck = proxy.strike({ on: 'autocommit', nth: 2, how: 'drop-request', until: withdrawal.signal })
  await ways['a plain statement']!(client, 1)
  withdrawal.abort()
  expect(await struck).toBe(false)
  await ways['a plain statement']!(client, 2)
  expect(await values()).toEqual([1, 2])
})

it('a connection is known to the server by its port', async () => {
  const client = await open({ application_name: table })
  await client.query('select 1')
  const ports = await ask(url, `select client_port from pg_stat_activity where application_name = '${table}'`)
  expect(proxy.ports).toEqual(ports)
})

it('a proxy that does not remember strikes all the same', async () => {
  const other = await startWireProxy(url, { remembers: false })
  const client = new Client({ connectionString: other.url })
  client.on('error', () => undefined)
  await client.connect()
  const struck = other.strike({ on: 'autocommit', nth: 2, how: 'drop-request' })
  await ways['a plain statement']!(client, 1)
  await expect(ways['a plain statement']!(client, 2)).rejects.toThrow('terminated')
  expect(await struck).toBe(true)
  expect(other.statements).toEqual([])
  await other.close()
})

it('a request that falls into a blackhole is never answered, and never done', async () => {
  const client = await open()
  const struck = proxy.strike({ on: 'autocommit', how: 'blackhole' })
  let isAnswered = false
  const write = ways['a plain statement']!(client, 1).finally(() => (isAnswered = true))
  await struck
  await ways['a plain statement']!(await open(), 2)
  expect(await values()).toEqual([2])
  expect(isAnswered).toBe(false)
  await proxy.close()
  await expect(write).rejects.toThrow('terminated')
})

it('one answer is late and the others are not', async () => {
  const client = await open()
  void proxy.strike({ on: 'autocommit', nth: 2, how: 3_600_000 })
  await ways['a plain statement']!(client, 1)
  const late = ways['a plain statement']!(client, 2)
  await expect.poll(values).toEqual([1, 2])
  await ways['a plain statement']!(await open(), 3)
  await proxy.close()
  await expect(late).rejects.toThrow('terminated')
  expect(await values()).toEqual([1, 2, 3])
})

it('nothing overtakes what is late, whether one answer is or all', async () => {
  const client = await open({ pipeline: true })
  const read = async (value: number): Promise<unknown> => {
    const { rows } = await client.query<{ value: number }>(`select ${value} as value`)
    return rows[0]?.value
  }
  void proxy.strike({ on: /select 2/, how: 50 })
  expect(await Promise.all([1, 2, 3].map(read))).toEqual([1, 2, 3])
  proxy.delay(20)
  const late = read(4)
  await new Promise((resolve) => setImmediate(resolve))
  proxy.delay(0)
  expect(await Promise.all([late, read(5)])).toEqual([4, 5])
})

it('a client that asks for encryption is refused as by a server that has none', async () => {
  await expect(open({ ssl: true })).rejects.toThrow('does not support SSL')
})

it('messages are the same however the stream is cut', () => {
  const frame = (type: string, body: string): Buffer => {
    const bytes = Buffer.from(`${type}0000${body}\0`)
    bytes.writeUInt32BE(bytes.length - type.length, type.length)
    return bytes
  }
  const startup = frame('', '\0\x03\0\0user\0me\0')
  const stream = Buffer.concat([startup, frame('Q', 'select 1'), frame('Q', ''), frame('P', 'name\0select 2')])
  const whole = [...new Messages('client').push(stream)]
  const pieces = new Messages('client')
  const cut = [...stream].flatMap((byte) => [...pieces.push(Buffer.from([byte]))])
  expect(cut).toEqual(whole)
  expect(whole.map(({ type }) => type)).toEqual(['startup', 'Q', 'Q', 'P'])
})

it('what is struck can be said again, with other counts', async () => {
  const strikes: readonly Strike[] = [
    { on: 'autocommit', nth: 1, how: 'drop-reply' },
    { on: 'autocommit', nth: 3, how: 'drop-request' },
  ]
  const struck = strikes.map((strike) => proxy.strike(strike))
  const outcomes: string[] = []
  for (const value of [1, 2, 3, 4]) {
    const write = ways['a plain statement']!(await open(), value)
    outcomes.push(
      await write.then(
        () => 'done',
        () => 'broken',
      ),
    )
  }
  await Promise.all(struck)
  expect(outcomes).toEqual(['broken', 'done', 'broken', 'done'])
  expect(await values()).toEqual([1, 2, 4])
})
