// A server that lets a client in and turns it out with the same packet, as one that is being shut down may.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Pool } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { listenAt } from '../../../../src/stores/postgres/hints/listen-client.ts'
import { openPostgresStore } from '../../../../src/stores/postgres/open.ts'

function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

const welcome = message('R', Buffer.alloc(4))
const ready = message('Z', Buffer.from('I'))
const lastCall = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'))

/** Its address. */
async function inhospitable(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(Buffer.concat([welcome, ready, lastCall])))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  return `postgres://user@127.0.0.1:${typeof address === 'object' ? address?.port : 0}/any`
}

// A connection whose error nobody hears ends the process, and so the test.
it('SW-E1 a connection that listens and breaks as it is made fails, and harms nobody', async () => {
  const client = await listenAt(await inhospitable(), 1_000)
  await expect(client.query('listen "a"')).rejects.toThrow(/connection/i)
  client.discard()
  await setTimeout(10)
})

it.each([true, false])('SW-E1 so does one of a pool (the store’s own: %s)', async (isOwn) => {
  const url = await inhospitable()
  const pool = new Pool({ connectionString: url })
  pool.on('error', () => undefined)
  onTestFinished(() => pool.end())
  const place = isOwn ? { url } : { pool: pool as never }
  await expect(openPostgresStore(place)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await setTimeout(10)
  expect(pool.listenerCount('connect')).toBe(0)
})
