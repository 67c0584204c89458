// Asks the server to cancel the statement that a connection is executing. Closing the connection alone does not: a server
// that is busy with a statement does not check whether its client is still there, and holds its locks until it is done.

import { connect } from 'node:net'
import { setTimeout } from 'node:timers'

/** The part of a client of `pg` that identifies its connection. */
export interface Cancellable {
  readonly processID?: unknown
  readonly secretKey?: unknown
  readonly host?: unknown
  readonly port?: unknown
}

/** The code of a CancelRequest in the protocol of Postgres. */
const cancelCode = 80_877_102
const answerWithinMs = 1_000

/**
 * A request that comes before the statement does nothing, and one may have been on its way when the connection was closed. So it
 * is sent again: the key is that of the one connection, and means nothing once that is gone.
 */
const againAfterMs = [100, 1_000]

/** Settles when the first request is sent, or could not be. It never fails: then the statement ends by itself. */
export function cancelStatement(client: Cancellable): Promise<void> {
  const { processID, secretKey, host, port } = client
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return Promise.resolve()
  if (typeof host !== 'string' || typeof port !== 'number') return Promise.resolve()
  const request = Buffer.alloc(16)
  request.writeInt32BE(16, 0)
  request.writeInt32BE(cancelCode, 4)
  request.writeInt32BE(processID, 8)
  request.writeInt32BE(secretKey, 12)
  const send = (): Promise<void> => sendTo({ host, port }, request)
  for (const ms of againAfterMs) setTimeout(() => void send(), ms).unref()
  return send()
}

function sendTo({ host, port }: { readonly host: string; readonly port: number }, request: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    socket.setTimeout(answerWithinMs, () => socket.destroy())
    socket.on('connect', () => socket.end(request))
    // The server answers nothing: it closes.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
    socket.resume()
  })
}
