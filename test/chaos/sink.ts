// The way to the sink of effects: for the testbed, which starts it, and for workers, whose steps report to it what they do.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

/** What a step reports of an execution of its body. */
export interface Doing {
  readonly run: string
  readonly step: string
  readonly attempt: number
  /** The step's idempotency key. */
  readonly key: string
}

/** What a step needs of it. */
export interface Sink {
  /** An execution begins. Gives its mark as soon as it is on the disk. */
  begin(doing: Doing): Promise<string>
  /** The execution of this mark has ended. */
  end(mark: string): Promise<void>
}

export type SinkRequest =
  ({ readonly event: 'begin'; readonly worker: string } & Doing) | { readonly event: 'end'; readonly mark: string }

interface Waiting {
  readonly resolve: (mark: string) => void
  readonly reject: (error: Error) => void
}

/** A worker's connection. It is answered in the order in which it asks. */
export class SinkConnection implements Sink {
  private readonly socket: Socket
  private readonly worker: () => string
  private readonly waiting: Waiting[] = []

  private constructor(socket: Socket, worker: () => string) {
    this.socket = socket
    this.worker = worker
    onLines(socket, (text) => {
      this.waiting.shift()?.resolve((JSON.parse(text) as { readonly mark: string }).mark)
    })
    socket.on('close', () => {
      for (const one of this.waiting.splice(0)) one.reject(new Error('The sink of effects is gone.'))
    })
  }

  /** `worker` names who does what begins now. */
  static async open(url: string, worker: () => string): Promise<SinkConnection> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new SinkConnection(socket, worker)
  }

  begin({ run, step, attempt, key }: Doing): Promise<string> {
    return this.ask({ event: 'begin', worker: this.worker(), run, step, attempt, key })
  }

  async end(mark: string): Promise<void> {
    await this.ask({ event: 'end', mark })
  }

  close(): void {
    this.socket.destroy()
  }

  private ask(request: SinkRequest): Promise<string> {
    if (this.socket.destroyed) return Promise.reject(new Error('The sink of effects is gone.'))
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      this.socket.write(`${JSON.stringify(request)}\n`)
    })
  }
}

/** Takes what comes in line by line. A connection that breaks only ends, which its `close` reports. */
export function onLines(socket: Socket, take: (text: string) => void): void {
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  const lines = createInterface({ input: socket })
  lines.on('error', () => undefined)
  lines.on('line', take)
}

export interface SinkProcess {
  readonly url: string
  stop(): Promise<void>
}

/** Starts the program of a sink, which writes to this file. */
export async function startSink(program: string, path: string): Promise<SinkProcess> {
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const port = await Promise.race([
    once(child, 'message').then(([port]) => Number(port)),
    exited.then(() => Promise.reject(new Error('The sink of effects ended before it worked.'))),
  ])
  return {
    url: `tcp://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
