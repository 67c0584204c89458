// A fixed address in front of a server that may be replaced by another one, as a load balancer or a DNS name is.

import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Relay {
  /** On 127.0.0.1. */
  readonly port: number
  /** From now on connections lead to the server at this port. Those that are open are broken off. */
  aim(port: number): void
  close(): Promise<void>
}

export async function startRelay(target: number): Promise<Relay> {
  let aimed = target
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(aimed, '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket)
      socket.setNoDelay(true)
      // `close` follows, and notifies the other side.
      socket.on('error', () => undefined)
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const breakAll = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    aim(port) {
      aimed = port
      breakAll()
    },
    async close() {
      breakAll()
      if (!server.listening) return
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
