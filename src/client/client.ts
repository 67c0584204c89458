// Starts runs and reads them. It runs no user code but the check of an input.

import type { Definition } from '../core/definition.ts'
import { toMs, type Duration } from '../core/duration.ts'
import type { Entry } from '../core/entry.ts'
import { HoldfastError } from '../core/error.ts'
import { isRunId } from '../core/id.ts'
import { holds, isTerminal } from '../core/run.ts'
import { checkOptions, shown } from '../core/suggest.ts'
import type { Due } from '../core/transition.ts'
import type { Engine } from '../engine/engine.ts'
import { entryView, viewOf, type JournalEntry, type RunView } from './run-view.ts'
import { RunHandle, runNotFound } from './run-handle.ts'

export interface StartOptions {
  /** The id of the run: a UUID of version 7. Starting the same id again gives the run that exists. @default a new one */
  readonly id?: string
  /** Higher goes first. @default 0 */
  readonly priority?: number
  /** Not to be begun before this point in time, or this long from now. @default at once */
  readonly runAt?: Date | Duration
  /** The run fails with RUN_TIMEOUT if it has not ended by then. @default no limit */
  readonly timeout?: Duration
  /** The run fails with RUN_EXPIRED if nobody has begun it by then. @default never */
  readonly expiresIn?: Duration
}

const startOptionNames = ['id', 'priority', 'runAt', 'timeout', 'expiresIn']

/** A run, by its handle or its id. */
export type RunReference = string | { readonly id: string }

/** There is one shard, and so it is that of every id. */
const shard = 0
const entriesAtOnce = 1_000

export class Client {
  private readonly engine: Engine

  constructor(engine: Engine) {
    this.engine = engine
  }

  async start(workflow: Definition | string, input: unknown, options: StartOptions = {}): Promise<RunHandle<unknown>> {
    const { engine } = this
    engine.assertOpen()
    const definition = typeof workflow === 'string' ? engine.registry.newest(workflow) : engine.registry.own(workflow)
    checkOptions(options, startOptionNames, `start of "${definition.type}"`)
    const { priority = 0 } = options
    if (!Number.isInteger(priority) || Math.abs(priority) > 2 ** 31 - 1) {
      throw new HoldfastError('INVALID_OPTION', `The priority of a run must be a whole number. Got ${shown(priority)}.`)
    }
    const id = options.id === undefined ? engine.runIds.next(shard) : checkId(options.id)
    const checked = definition.validate(input)
    const value = isPromise(checked) ? await checked : checked
    const place = { runId: id, seq: 1, name: null }
    const kept = engine.payloads.keep(engine.payloads.encode(value, place), place)
    const data = typeof kept === 'string' ? kept : await kept
    const first = { kind: 'started', name: null, meta: null, data } as const

    const { desk } = engine
    const due = dueOf(options.runAt)
    const timeoutMs = options.timeout === undefined ? null : toMs(options.timeout, 'The timeout of a run')
    const expiresInMs = options.expiresIn === undefined ? null : toMs(options.expiresIn, 'expiresIn')
    const lease = due === null ? (desk?.reserve() ?? null) : null
    try {
      const { type, version } = definition
      const transition = engine.transitionId()
      const run = {
        id,
        shard,
        type,
        version,
        priority,
        due,
        timeoutMs,
        expiresInMs,
        lease,
        leaseMs: definition.leaseMs,
        transition,
        first,
      }
      const started = await engine.start(run)
      if (!started.created) this.checkSame(started.run.type, definition, id)
      // A session that was found dead meanwhile gets no lease: then the run waits to be claimed.
      if (lease !== null && started.created && holds(started.run, lease)) {
        // Field by field: spreading `first` here took a tenth of the time of a whole run.
        const at = started.run.createdAt
        const entry: Entry = { kind: 'started', name: null, meta: null, data, seq: 1, at, transition }
        desk?.begin(started.run, lease, [entry])
      } else {
        if (lease !== null) desk?.cancel()
        if (started.created) engine.onReady()
      }
      return new RunHandle(engine, id, started.created)
    } catch (error) {
      if (lease !== null) desk?.cancel()
      throw error
    }
  }

  async get(reference: RunReference): Promise<RunView> {
    const id = idOf(reference)
    this.engine.assertOpen()
    const { store, payloads } = this.engine
    const [run] = await store.get([id])
    if (run === undefined) throw runNotFound(id)
    const [last] = isTerminal(run.status) ? await store.load([{ runId: id, after: run.seq - 1, limit: 1 }]) : []
    return viewOf(run, last?.entries[0], payloads)
  }

  async journal(reference: RunReference): Promise<readonly JournalEntry[]> {
    const id = idOf(reference)
    this.engine.assertOpen()
    const { store, payloads } = this.engine
    const entries: JournalEntry[] = []
    for (;;) {
      const [page] = await store.load([{ runId: id, after: entries.length, limit: entriesAtOnce }])
      for (const entry of page?.entries ?? []) entries.push(await entryView(id, entry, payloads))
      if ((page?.entries.length ?? 0) < entriesAtOnce) break
    }
    if (entries.length === 0) throw runNotFound(id)
    return entries
  }

  /** A handle on a run that exists, or may. */
  handle(reference: RunReference): RunHandle<unknown> {
    return new RunHandle(this.engine, idOf(reference), false)
  }

  private checkSame(type: string, definition: Definition, id: string): void {
    if (type === definition.type) return
    throw new HoldfastError(
      'RUN_EXISTS',
      `Run ${id} exists and is of type "${type}", not "${definition.type}". Choose another id.`,
      { details: { runId: id, type } },
    )
  }
}

function dueOf(runAt: Date | Duration | undefined): Due | null {
  if (runAt === undefined) return null
  if (!(runAt instanceof Date)) return { at: null, afterMs: toMs(runAt, 'runAt') }
  const at = runAt.getTime()
  if (!Number.isNaN(at)) return { at, afterMs: null }
  throw new HoldfastError('INVALID_OPTION', 'runAt must be a valid Date, or how long to wait.')
}

function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise
}

function idOf(reference: RunReference): string {
  const id: unknown = typeof reference === 'string' ? reference : (reference as { readonly id?: unknown } | null)?.id
  if (typeof id === 'string') return id
  throw new HoldfastError('INVALID_OPTION', `A run is named by its id or its handle. Got ${shown(reference)}.`)
}

function checkId(id: string): string {
  if (isRunId(id)) return id
  throw new HoldfastError(
    'INVALID_OPTION',
    `The id of a run must be a UUID of version 7 in lower case. Got ${shown(id)}.`,
    {
      details: { id },
    },
  )
}
