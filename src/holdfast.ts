// `createHoldfast`: where a store, the engine, a client and a worker become one object. Everything it makes belongs to
// that object; two of them in one process know nothing of each other.

import { cancelRuns, retryRuns, type BulkOptions, type BulkOutcome } from './client/bulk.ts'
import { Client, type ActiveRun, type JournalOptions, type VersionFor } from './client/client.ts'
import { discardDeadLetter, listDeadLetters, replayDeadLetter } from './client/dead-letters.ts'
import {
  checkRuns,
  countRuns,
  findRuns,
  type Counted,
  type Filter,
  type FindOptions,
  type RunPage,
} from './client/finding.ts'
import { exportRun, type ExportedRun } from './client/exporting.ts'
import { operation, type AnswerOf, type Operation } from './client/operation.ts'
import { replayHere } from './client/replaying.ts'
import type { RunHandle } from './client/run-handle.ts'
import type { RunReference } from './client/run-reference.ts'
import type { JournalEntry, RunView } from './client/run-view.ts'
import type { SignalOptions } from './client/sending.ts'
import type { Sends } from './client/sends.ts'
import type { StartOptions } from './client/start-options.ts'
import type {
  Cancelled,
  CancelOptions,
  NoteOptions,
  Paused,
  PauseOptions,
  RemoveOptions,
  ResumeOptions,
  Revived,
} from './client/steering.ts'
import type { Starts } from './client/starts.ts'
import { Submission } from './client/submission.ts'
import { Submitter } from './client/submitting.ts'
import type { Target } from './client/target.ts'
import { usingTransaction, type Using } from './client/using.ts'
import { jsonCodec, type Codec } from './core/codec.ts'
import type { Topic } from './core/declared-topic.ts'
import type { Definition } from './core/definition.ts'
import { toMs, type Duration } from './core/duration.ts'
import { HoldfastError } from './core/error.ts'
import { Payloads, type Offload } from './core/payload.ts'
import { harmless, type Cancel, type Clock, type Logger, type Ports } from './core/ports.ts'
import { checkOptions, didYouMean, shown } from './core/suggest.ts'
import { Engine } from './engine/engine.ts'
import { collectDefinitions } from './engine/registry.ts'
import type { Replayed } from './engine/replaying.ts'
import { transactionsOf, type OwnTransaction } from './engine/transacting.ts'
import type { Services } from './functions/context.ts'
import type { Checked, Store, StoreAdmin } from './store.ts'
import { MemoryStore } from './stores/memory/store.ts'
import { closeOnSignal, isProduction, systemClock, systemPorts } from './system.ts'
import type { TookOver } from './worker/rescuer.ts'
import { Worker, type WorkOptions } from './worker/worker.ts'

export type HoldfastOptions = {
  /**
   * Where runs live: `'sqlite:app.db'`, `'turso:app.db'`, `'libsql://…'`, `'postgres://…'`, `'memory:'`, or a store that
   * you made.
   */
  readonly store: string | Store
  /** What this process knows: a list of definitions, or a module whose exports are searched for them. */
  readonly workflows?: readonly Definition[] | Readonly<Record<string, unknown>>
  /** Which version a run gets that is started by the name of its workflow. @default the newest */
  readonly versionFor?: VersionFor
  /**
   * Begins a transaction with your own library, for `ctx.transaction`: `(work) => db.transaction(work)`. It must call `work`
   * once, with what the library calls a transaction, and commit if and only if `work` is fulfilled. It must be a transaction of
   * the database that holds the runs. @default the store begins one: `tx` is a `pg` client, or the SQLite connection
   */
  readonly transaction?: OwnTransaction
  /** How often `ctx.until` looks whether something is so, unless a call of it says how often. @default '1h' */
  readonly pauseCheckInterval?: Duration
  /**
   * How long this process waits at most before it looks by itself for work and for the ends of runs: stores tell of both,
   * but what they tell may be lost. @default 3 s for work, 1 s for ends
   */
  readonly poll?: Duration
  /** How payloads become text. @default JSON with tags for dates, bigints, bytes, maps, sets and errors */
  readonly codec?: Codec
  /** Where large payloads go instead of the journal. */
  readonly offload?: Offload
  /**
   * Creates the tables, or brings them up to date, before anything else. Where that is the work of a deployment, say false
   * and run `holdfast migrate`. @default true, but for Postgres in production (`NODE_ENV`)
   */
  readonly migrate?: boolean
  /** @default the console, without debug lines */
  readonly logger?: Logger
  /** Time, chance and order, for tests that own them. @default the machine's */
  readonly ports?: Partial<Omit<Ports, 'logger'>>
} & ({} extends Services ? { readonly services?: Services } : { readonly services: Services })

export interface Holdfast extends Starts, Sends {
  /**
   * Holdfast inside a transaction of yours: what is started, sent or cancelled with it takes effect if and only if your
   * transaction commits. `tx` is what your library calls a transaction; `docs/transactions.md` has an example for each.
   *
   * @example
   * await client.query('begin')
   * await client.query('insert into orders (id) values ($1)', [42])
   * const run = await holdfast.using(client).start(checkout, { order: 42 })
   * await client.query('commit')
   */
  using(tx: unknown): Using
  /** A handle on a run that exists. */
  run<Output = unknown>(reference: RunReference): RunHandle<Output>
  /** How a run stands, with its output or error once it has ended. */
  get(reference: RunReference): Promise<RunView>
  /** The last value that a run has exposed under this name, also after its end; undefined if it has exposed none. */
  query(reference: RunReference, name: string): Promise<unknown>
  /** What this process knows of a run from its own memory, without asking the store; null if nothing. It may lag behind. */
  active(reference: RunReference): ActiveRun | null
  /** Everything that happened to a run, in order. */
  journal(reference: RunReference, options?: JournalOptions): Promise<readonly JournalEntry[]>
  /**
   * A run with its whole journal, as data that JSON can hold: for `replay` of `holdfast/testing`, or for `holdfast check`.
   * Payloads are in plain text, whatever the codec is; the secrets of tokens are left out.
   */
  export(reference: RunReference): Promise<ExportedRun>
  /**
   * Shows the journal of a run, of this store or exported, to the code that is registered here, and tells whether the two
   * agree. No step is performed, and nothing is written or sent. What a body does outside of steps takes place.
   */
  replay(run: RunReference | ExportedRun): Promise<Replayed>
  /** Runs that match, newest first, by pages. */
  find(options?: FindOptions): Promise<RunPage>
  /** How many runs match, counted no further than to `atMost`. @default atMost 10,000 */
  count(filter?: Filter, options?: { readonly atMost?: number }): Promise<Counted>
  /**
   * Stops a run for good. One that is being performed is asked to: its abort signals fire, what it is doing may end and is
   * recorded, and its steps are undone, last first. One that has ended is left as it is.
   */
  cancel(reference: RunReference, options?: CancelOptions): Promise<Cancelled>
  /** Stops a run until it is resumed: at once, or at its next checkpoint if it is being performed. */
  pause(reference: RunReference, options?: PauseOptions): Promise<Paused>
  /** Lets a paused run go on, if need be with repairs of its journal. */
  resume(reference: RunReference, options?: ResumeOptions): Promise<Revived<'resumed'>>
  /** Lets a failed run go on where it failed. */
  retry(reference: RunReference, options?: NoteOptions): Promise<Revived<'retried'>>
  /** Removes a run from sight: it is performed no more and its keys are free. Its status and its journal stay. */
  remove(reference: RunReference, options?: RemoveOptions): Promise<void>
  /** Cancels every live run that matches. With `preview`, only tells how many there are. */
  cancelMany(filter: Filter, options?: CancelOptions & BulkOptions): Promise<BulkOutcome>
  /** Retries every failed run that matches. With `preview`, only tells how many there are. */
  retryMany(filter: Filter, options?: NoteOptions & BulkOptions): Promise<BulkOutcome>
  /** Checks what must be true of all runs in the store: names each invariant, with the runs that break it. */
  check(): Promise<readonly Checked[]>
  /** Makes this process perform runs, too. */
  work(options?: WorkOptions): Promise<RunningWorker>
  /** Stops the worker, sends what was accepted and lets go of the store. */
  close(): Promise<void>
}

export interface RunningWorker {
  /** What was taken over at the start from workers that had died. */
  readonly tookOver: TookOver
  /**
   * Settles when it has stopped: with null, or with the reason if it did so by itself, because a newer Holdfast has migrated
   * the store and this one is no longer admitted.
   */
  readonly ended: Promise<HoldfastError | null>
  /** Asks at once, and not with its next heartbeat, what other processes want of the runs that it holds. */
  beat(): void
  /** Stops claiming, waits for what is moving, gives back the rest. Calling it again is fine. */
  stop(): Promise<void>
}

const optionNames = [
  'store',
  'workflows',
  'services',
  'versionFor',
  'transaction',
  'pauseCheckInterval',
  'poll',
  'codec',
  'offload',
  'migrate',
  'logger',
  'ports',
]

/**
 * Opens a store and gives back what starts, performs and reads runs in it.
 *
 * @example
 * const holdfast = await createHoldfast({ store: 'memory:', workflows: [greet] })
 * await holdfast.work()
 * const run = await holdfast.start(greet, 'Ada')
 * console.log(await run.result())
 */
export async function createHoldfast(options: HoldfastOptions): Promise<Holdfast> {
  checkOptions(options, optionNames, 'createHoldfast()')
  const { workflows = [], codec = jsonCodec(), offload, logger, services, versionFor } = options
  const pauseCheckMs = toMs(options.pauseCheckInterval ?? '1h', 'pauseCheckInterval')
  const pollMs = options.poll === undefined ? undefined : toMs(options.poll, 'poll')
  const system = systemPorts(logger)
  const ports: Ports = { ...system, ...options.ports, logger: harmless(system.logger) }
  const ownsStore = typeof options.store === 'string'
  const store = typeof options.store === 'string' ? await openStore(options.store, ports) : checkStore(options.store)
  const definitions = collectDefinitions(workflows)
  const transaction = checkTransaction(options.transaction, store)
  const payloads = new Payloads(codec, offload)
  const engine = new Engine({ store, ports, payloads, definitions, transaction, pauseCheckMs, pollMs })
  const isLeftToDeployment = isProduction() && typeof options.store === 'string' && isPostgres(options.store)
  try {
    await engine.open({ migrate: options.migrate ?? !isLeftToDeployment })
  } catch (error) {
    if (ownsStore) await store.close()
    throw error
  }
  return assemble(engine, { services, ownsStore, versionFor })
}

interface Assembly {
  readonly services: unknown
  readonly ownsStore: boolean
  readonly versionFor: VersionFor | undefined
}

function assemble(engine: Engine, { services, ownsStore, versionFor }: Assembly): Holdfast {
  const client = new Client(engine, versionFor)
  let worker: Worker | null = null
  let closing: Promise<void> | null = null

  let ignoreSignals: Cancel = () => undefined
  const close = async (): Promise<void> => {
    ignoreSignals()
    await worker?.stop()
    await engine.close()
    if (ownsStore) await engine.store.close()
  }
  const closeOnce = (): Promise<void> => (closing ??= close())
  engine.prepare = client.prepareChild

  return {
    ...changes(engine, client),
    using: (tx) => usingTransaction(engine, client, tx),
    run: <Output>(reference: RunReference) => client.handle(reference) as RunHandle<Output>,
    get: (reference) => client.get(reference),
    query: (reference, name) => client.query(reference, name),
    active: (reference) => client.active(reference),
    journal: (reference, options) => client.journal(reference, options),
    export: (reference) => exportRun(engine, reference),
    replay: (run) => replayHere(engine, services, run),
    find: (options) => findRuns(engine, options),
    count: (filter, options) => countRuns(engine, filter, options),
    cancelMany: (filter, options) => cancelRuns(engine, filter, options),
    retryMany: (filter, options) => retryRuns(engine, filter, options),
    check: () => checkRuns(engine),
    async work(options) {
      if (closing !== null) throw new HoldfastError('CLOSED', 'This Holdfast is closed. Create a new one to go on.')
      if (worker !== null) {
        throw new HoldfastError(
          'INVALID_OPTION',
          'This Holdfast works already. Stop its worker first, or create a second Holdfast.',
        )
      }
      const working = new Worker(engine, services, options)
      worker = working
      const tookOver = await working.start().catch((error: unknown) => {
        worker = null
        throw error
      })
      if (options?.signals !== false) ignoreSignals = closeOnSignal(closeOnce)
      return {
        tookOver,
        ended: working.ended,
        beat: () => working.beat(),
        async stop() {
          ignoreSignals()
          await working.stop()
          if (worker === working) worker = null
        },
      }
    },
    close: closeOnce,
  }
}

type Changes = Starts & Sends & Pick<Holdfast, 'cancel' | 'pause' | 'resume' | 'retry' | 'remove'>

/** All that changes something: each method submits its operation, or does at once what that would. */
function changes(engine: Engine, client: Client): Changes {
  const submitter = new Submitter(engine, client)
  const submit = submitter.submit.bind(submitter) as <const Asked extends Operation>(
    asked: Asked,
  ) => Promise<AnswerOf<Asked>>
  const submitBatch = submitter.submitBatch.bind(submitter) as Sends['submitBatch']
  return {
    start: (workflow: Definition | string, input?: unknown, options?: StartOptions) =>
      client.start(workflow, input, options),
    signal: (to: Target, name: string | Topic, payload?: unknown, options?: SignalOptions) =>
      submit(operation.signal(to, name, payload, options)),
    signals: (signals) => submitBatch(signals.map((signal) => ({ ...signal, kind: 'signal' as const }))),
    broadcast: (to, payload, options) => submit(operation.broadcast(to, payload, options)),
    sendOrStart: (workflow, key, name, payload, input, options) =>
      submit(operation.sendOrStart(workflow, key, name, payload, input, options)),
    startMany: ((starts) =>
      submitBatch(starts.map((one) => ({ ...one, kind: 'start' as const })))) as Sends['startMany'],
    complete: (token, value) => submit(operation.complete(token, value)),
    submit: ((asked: Operation | string, payload?: unknown) =>
      typeof asked === 'string'
        ? new Submission((options) => client.start(asked, payload, options))
        : submit(asked)) as Sends['submit'],
    submitBatch,
    deadLetters: (options) => listDeadLetters(engine, options),
    replayDeadLetter: (letter, options) => replayDeadLetter(engine, letter, options),
    discardDeadLetter: (letter) => discardDeadLetter(engine, letter),
    cancel: (run, options) => submit(operation.cancel(run, options)),
    pause: (run, options) => submit(operation.pause(run, options)),
    resume: (run, options) => submit(operation.resume(run, options)),
    retry: (run, options) => submit(operation.retry(run, options)),
    remove: (run, options) => submit(operation.remove(run, options)),
  }
}

/** A store that lives as long as this process. Hand it to several Holdfasts to let them share their runs. */
export function createMemoryStore(clock: Pick<Clock, 'now'> = systemClock): Store & StoreAdmin {
  return new MemoryStore({ clock })
}

const schemes = ['memory:', 'sqlite:', 'turso:', 'libsql:', 'postgres:']

async function openStore(url: string, ports: Ports): Promise<Store> {
  if (url === 'memory:') return createMemoryStore(ports.clock)
  if (url.startsWith('sqlite:')) {
    // Loaded when it is asked for: who keeps runs elsewhere needs no SQLite.
    const { openSqliteStore } = await import('./stores/sqlite/index.ts')
    return openSqliteStore({ path: url.slice('sqlite:'.length), logger: ports.logger })
  }
  if (url.startsWith('turso:')) {
    const { openTursoStore } = await import('./stores/turso/index.ts')
    return openTursoStore({ path: url.slice('turso:'.length) })
  }
  if (url.startsWith('libsql:')) {
    const { openLibsqlStore } = await import('./stores/turso/index.ts')
    return openLibsqlStore({ url, logger: ports.logger })
  }
  if (isPostgres(url)) {
    const { openPostgresStore } = await import('./stores/postgres/index.ts')
    return openPostgresStore({ url, logger: ports.logger })
  }
  // No more than the scheme is shown: the rest may hold a password.
  const scheme = url.includes(':') ? url.slice(0, url.indexOf(':') + 1) : url.slice(0, 20)
  throw new HoldfastError(
    'STORE_UNKNOWN',
    `There is no store for ${shown(scheme)}.${didYouMean(scheme, schemes)} ` +
      "Use 'sqlite:app.db', 'postgres://…' or 'memory:', or hand over a store object.",
  )
}

function isPostgres(url: string): boolean {
  return url.startsWith('postgres:') || url.startsWith('postgresql:')
}

function checkStore(store: unknown): Store {
  const isStore = typeof store === 'object' && store !== null && 'commit' in store && 'claim' in store
  if (isStore) return store as unknown as Store
  throw new HoldfastError(
    'INVALID_OPTION',
    `createHoldfast({ store }) needs an address such as 'memory:', or a store object. Got ${shown(store)}.`,
  )
}

function checkTransaction(transaction: unknown, store: Store): OwnTransaction | undefined {
  if (transaction === undefined) return undefined
  if (typeof transaction !== 'function') {
    throw new HoldfastError(
      'INVALID_OPTION',
      `createHoldfast({ transaction }) needs a function such as (work) => db.transaction(work). Got ${shown(transaction)}.`,
    )
  }
  if (transactionsOf(store) !== null) return transaction as OwnTransaction
  throw new HoldfastError(
    'INVALID_OPTION',
    'createHoldfast({ transaction }) needs a store that can take part in your transactions; this one cannot.',
  )
}
