// A server that speaks what `libsql` sends to a server (Hrana 3 over HTTP), over SQLite files of this machine. It runs in a
// thread of its own, because the library makes the thread that asks wait for the answer.

// oxlint-disable unicorn/require-post-message-target-origin -- to a thread, not to a window

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface LibsqlServer {
  /** The address of a database: its file stands in the path. */
  addressOf(file: string, token?: string): string
  /** Forgets all streams, as a server does with those that nobody uses. */
  forget(): Promise<void>
  /** How many requests came since the last time this was asked, and with which tokens. */
  seen(): Promise<{ readonly requests: number; readonly tokens: readonly string[] }>
  /** Answers this many requests, and breaks off instead of answering those after it. */
  breakAfter(requests: number): Promise<void>
  stop(): Promise<void>
}

export async function startLibsqlServer(): Promise<LibsqlServer> {
  const worker = new Worker(new URL('libsql-server.mjs', import.meta.url))
  const answer = async <Answer>(): Promise<Answer> => {
    const [message] = (await once(worker, 'message')) as [Answer]
    return message
  }
  const port = await answer<number>()
  const ask = <Answer>(message: object): Promise<Answer> => {
    const answered = answer<Answer>()
    worker.postMessage(message)
    return answered
  }
  return {
    addressOf: (file, token = 'secret-token') => `libsql://127.0.0.1:${port}${file}?tls=0&authToken=${token}`,
    forget: () => ask({ kind: 'forget' }),
    seen: () => ask({ kind: 'seen' }),
    breakAfter: (requests) => ask({ kind: 'break', requests }),
    stop: async () => void (await worker.terminate()),
  }
}
