// An address that demands TLS: a server that answers in the place of the server learns nothing from a connection without it.

import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listenAt } from '../../../../../src/stores/postgres/hints/listen-client.ts'
import { openPostgresStore } from '../../../../../src/stores/postgres/index.ts'

const sslRequest = 80_877_103

/** A server that has no TLS, and what clients sent to it. */
async function plainServer() {
  const received: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      received.push(data)
      if (data.readInt32BE(4) === sslRequest) socket.write('N')
      else socket.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { received, address: `postgres://app:hush@127.0.0.1:${port}/app` }
}

describe('an address with sslmode=verify-full', () => {
  it.each(['sslmode=verify-full', 'schema=shop&sslmode=verify-full', 'sslmode=verify-full&shards=4'])(
    'sends a server without TLS neither user nor password: ?%s',
    async (parameters) => {
      const { received, address } = await plainServer()
      await expect(openPostgresStore({ url: `${address}?${parameters}` })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('does not support SSL') as string,
      })
      expect(received.map((data) => [data.length, data.readInt32BE(4)])).toEqual([[8, sslRequest]])
    },
  )

  it('holds for the connection that listens', async () => {
    const { received, address } = await plainServer()
    await expect(listenAt(`${address}?sslmode=verify-full`, 5_000)).rejects.toThrow('does not support SSL')
    expect(received.map((data) => [data.length, data.readInt32BE(4)])).toEqual([[8, sslRequest]])
  })
})
