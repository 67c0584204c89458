// How the clients of a chaos run ask for something: with a timeout of their own, written into the history, and again until
// the outcome is known. The server goes down under them, too, so that a call may hang, break off, or take effect unheard.

import { setTimeout } from 'node:timers/promises'
import { isHoldfastError, type ErrorCode, type Holdfast } from '../../src/index.ts'
import type { Call, Calls, History } from './history.ts'
import { issue, items, offers, type ChaosWorkflows, type Inputs, type Kind } from './workload.ts'

/** What leaves no doubt that nothing has happened, and never will. */
const definite: ReadonlySet<ErrorCode> = new Set([
  'INPUT_CONFLICT',
  'RUN_EXISTS',
  'WRONG_STATUS',
  'RUN_NOT_FOUND',
] satisfies ErrorCode[])

/** Longer than an answer takes when all is well, shorter than the server is away. */
const patienceMs = 3_000

const againMs = 150

/** Thrown at clients whose chaos run is over before they are done. */
export class Abandoned extends Error {}

export interface RecordingClientOptions {
  readonly history: History
  /** Every client has its own connections; calls go to them by turns. */
  readonly clients: readonly Holdfast[]
  readonly workflows: ChaosWorkflows
}

type Tried<F extends Call> =
  | { readonly type: 'ok'; readonly value: Calls[F]['value'] }
  | { readonly type: 'fail' | 'info'; readonly value: unknown }

export class RecordingClient {
  private readonly history: History
  private readonly clients: readonly Holdfast[]
  private readonly workflows: ChaosWorkflows
  private turn = 0
  private starts = 0
  private isAbandoned = false

  constructor({ history, clients, workflows }: RecordingClientOptions) {
    this.history = history
    this.clients = clients
    this.workflows = workflows
  }

  /** Nobody waits for anything any more. */
  abandon(): void {
    this.isAbandoned = true
  }

  /** The id of the run, as soon as it is known; null if it was refused. */
  async start<K extends Kind>(proc: string, kind: K, input: Inputs[K], key: string): Promise<string | null> {
    for (;;) {
      this.starts += 1
      const tag = `start-${this.starts}`
      const tried = await this.try(proc, 'start', { kind, input, idempotencyKey: key, tag }, async (client) => {
        // Typed by name: which input belongs to which workflow is known here only.
        const { id } = await client.start(this.workflows[kind].type, input, { idempotencyKey: key, tags: [tag] })
        return { run: id }
      })
      if (tried.type === 'ok') return tried.value.run
      if (tried.type === 'fail') return null
      await setTimeout(againMs)
    }
  }

  signal(proc: string, run: string, to: 'mail' | 'offers', id: string, order: number): Promise<unknown> {
    return this.definitely(proc, 'signal', { run, name: to, id, order }, (client) =>
      to === 'mail' ? client.signal(run, to, { id }, { id }) : client.signal(run, offers, { id }, { id }),
    )
  }

  /** To everyone who reads that issue; or, without one, to the run that takes the item. */
  broadcast(proc: string, id: string, to: string | null = null): Promise<unknown> {
    const topic = to === null ? items : issue(to)
    return this.definitely(proc, 'broadcast', { topic: topic.name, id }, (client) =>
      client.broadcast(topic, { id }, { id }),
    )
  }

  cancel(proc: string, run: string): Promise<unknown> {
    return this.definitely(proc, 'cancel', { run }, (client) => client.cancel(run))
  }

  pause(proc: string, run: string): Promise<unknown> {
    return this.definitely(proc, 'pause', { run }, (client) => client.pause(run))
  }

  resume(proc: string, run: string): Promise<unknown> {
    return this.definitely(proc, 'resume', { run }, (client) => client.resume(run))
  }

  /** Asked once: it may find nobody. */
  query(proc: string, run: string, name: string): Promise<unknown> {
    return this.try(proc, 'query', { run, name }, (client) => client.query(run, name))
  }

  /** Settles when the run has ended. One that is paused meanwhile, for whatever reason, is resumed. */
  async ended(proc: string, run: string): Promise<void> {
    for (;;) {
      const tried = await this.try(proc, 'result', { run }, (client) => resultOf(client, run))
      if (tried.type === 'ok') return
      const status = await this.look(run)
      if (status === 'paused') await this.resume(proc, run)
    }
  }

  private async look(run: string): Promise<string | null> {
    return inTime(this.client().run(run).status()).catch(() => null)
  }

  /** Asks until it is known whether it has happened. */
  private async definitely<F extends Exclude<Call, 'start' | 'query' | 'result'>>(
    proc: string,
    f: F,
    args: Calls[F]['args'],
    work: (client: Holdfast) => Promise<Calls[F]['value']>,
  ): Promise<Tried<F>> {
    for (;;) {
      const tried = await this.try(proc, f, args, work)
      if (tried.type !== 'info') return tried
      await setTimeout(againMs)
    }
  }

  private async try<F extends Call>(
    proc: string,
    f: F,
    args: Calls[F]['args'],
    work: (client: Holdfast) => Promise<Calls[F]['value']>,
  ): Promise<Tried<F>> {
    if (this.isAbandoned) throw new Abandoned('The chaos run is over.')
    const settle = this.history.invoke(proc, f, args)
    const tried = await this.attempt(f, work)
    settle(tried)
    return tried
  }

  private async attempt<F extends Call>(
    f: F,
    work: (client: Holdfast) => Promise<Calls[F]['value']>,
  ): Promise<Tried<F>> {
    try {
      return { type: 'ok', value: await inTime(work(this.client())) }
    } catch (error) {
      const reads = f === 'query' || f === 'result'
      const isDefinite = reads || (isHoldfastError(error) && definite.has(error.code))
      return { type: isDefinite ? 'fail' : 'info', value: isHoldfastError(error) ? error.code : String(error) }
    }
  }

  private client(): Holdfast {
    this.turn += 1
    return this.clients[this.turn % this.clients.length]!
  }
}

/** How the run has ended, as its client sees it. */
async function resultOf(client: Holdfast, id: string): Promise<Calls['result']['value']> {
  try {
    const output = await client.run(id).result({ timeout: patienceMs - 500 })
    return { status: 'succeeded', output }
  } catch (error) {
    if (isHoldfastError(error, 'RUN_FAILED')) return { status: 'failed', output: null }
    if (isHoldfastError(error, 'RUN_CANCELLED')) return { status: 'cancelled', output: null }
    throw error
  }
}

/** Gives up waiting; what was asked for may happen all the same. */
async function inTime<Value>(asked: Promise<Value>): Promise<Value> {
  const timeout = new AbortController()
  const late = setTimeout(patienceMs, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`No answer within ${patienceMs} ms.`)
  })
  late.catch(() => undefined)
  asked.catch(() => undefined)
  try {
    return await Promise.race([asked, late])
  } finally {
    timeout.abort()
  }
}
