// `createHoldfast`: where a store, the engine, a client and a worker become one object. Everything it makes belongs to
// that object; two of them in one process know nothing of each other.

import { abortable, reading, type AbortOption } from './client/abort-option.ts'
import {
  cancelRuns,
  pauseRuns,
  removeRuns,
  resumeRuns,
  retryRuns,
  type ResumeManyOptions,
} from './client/control/bulk-control.ts'
import type { BulkOptions, BulkOutcome } from './client/control/bulk-pages.ts'
import { Client, type ActiveRun, type VersionFor } from './client/client.ts'
import { executeInput } from './client/deciders/execute.ts'
import { deciderMethods, type DeciderMethods } from './client/deciders/methods.ts'
import { discardDeadLetter, listDeadLetters, retryDeadLetter } from './client/send/dead-letters.ts'
import {
  checkInvariants,
  countRuns,
  findRuns,
  type CountResult,
  type CountOptions,
  type Filter,
  type FindOptions,
  type RunPage,
} from './client/read/find.ts'
import { exportRun, type ExportedRun } from './client/read/export-run.ts'
import { journalPages, readJournal, type JournalOptions, type JournalPagesOptions } from './client/read/journal.ts'
import { operation, type OperationResult, type Operation } from './client/operation.ts'
import { replayHere } from './client/read/replay-runs.ts'
import type { RunHandle } from './client/run-handle.ts'
import type { RunReference } from './client/run-reference.ts'
import { rekeyRuns, type RekeyResult, type RekeyOptions } from './client/control/rekey.ts'
import type { JournalEntry, RunView } from './client/read/run-view.ts'
import type { SignalOptions } from './client/send/send.ts'
import type { Sender } from './client/send/sends.ts'
import type {
  CancelOutcome,
  CancelOptions,
  NoteOptions,
  PauseOutcome,
  PauseOptions,
  RemoveOptions,
  ResumeOptions,
  ResumeOutcome,
  RetryOutcome,
} from './client/control/run-control.ts'
import type { Starter } from './client/start/starts.ts'
import { StartBuilder } from './client/start/start-builder.ts'
import { Submitter } from './client/submitter.ts'
import { askRun } from './client/send/ask.ts'
import { resolve, type Target } from './client/send/signal-target.ts'
import { unreadMessages, type UnreadMessages } from './client/read/unread.ts'
import { usingTransaction, type TransactionClient } from './client/using.ts'
import { jsonCodec } from './core/payload/codec.ts'
import type { Topic } from './core/definition/declared-topic.ts'
import { pollBounds, someTime, toMs } from './core/definition/duration.ts'
import { HoldfastError } from './core/errors/error.ts'
import { checkLimits } from './core/definition/limits.ts'
import { withTimeout } from './core/runtime/backoff.ts'
import { Payloads } from './core/payload/payload.ts'
import { harmless, type Cancel, type Clock, type Ports } from './core/runtime/ports.ts'
import { checkOptions } from './core/text/suggest.ts'
import { newTokenKey } from './core/completion/completion-token.ts'
import { Engine } from './engine/engine.ts'
import { collectDefinitions } from './engine/registry.ts'
import type { ReplayResult } from './engine/replay/replay-run.ts'
import {
  checkKinds,
  checkTokenKey,
  checkTransaction,
  checkTransactions,
  holdfastOptionNames,
  type HoldfastOptions,
} from './holdfast-options.ts'
import { checkStore, isPostgres, openStore, unmigrated } from './open-store.ts'
import { projectionControl, type ProjectionControl } from './projection-control.ts'
import type { MemoryProjection, Projection, WorkedProjection } from './projections/definition.ts'
import { Projections, type ProjectOptions, type RunningMemoryProjection } from './projections/projections.ts'
import type { RunningProjection } from './projections/running-projection.ts'
import type { InvariantCheck, Store, StoreAdmin } from './store.ts'
import { MemoryStore } from './stores/memory/store.ts'
import { closeOnSignal, createRandom, isProduction, systemClock, systemPorts } from './system.ts'
import type { RecoveryCount } from './worker/rescuer.ts'
import type { WorkOptions } from './worker/work-options.ts'
import { Worker } from './worker/worker.ts'

export type { HoldfastOptions }

export interface Holdfast extends Starter, Sender, DeciderMethods {
  /**
   * Holdfast inside a transaction of yours: its starts, messages and cancellations take effect if and only if your
   * transaction commits. `tx` is the transaction object of your library; `docs/transactions.md` has an example for each.
   *
   * @example
   * await client.query('begin')
   * await client.query('insert into orders (id) values ($1)', [42])
   * const run = await holdfast.using(client).start(checkout, { order: 42 })
   * await client.query('commit')
   */
  using(tx: unknown): TransactionClient
  /** A handle on a run that exists. */
  run<Output = unknown>(reference: RunReference): RunHandle<Output>
  /** How a run stands, with its output or error once it has ended. */
  get(reference: RunReference, options?: AbortOption): Promise<RunView>
  /** The last value that a run has exposed under this name, also after its end; undefined if it has exposed none. */
  query(reference: RunReference, name: string, options?: AbortOption): Promise<unknown>
  /**
   * The state of a run in the memory of this process, without asking the store; null if it is unknown here. It may lag
   * behind.
   */
  active(reference: RunReference): ActiveRun | null
  /**
   * The signals and broadcasts that a live run has not read, by name: how many, since when, and whether a wait has ever
   * asked for the name. Counts the first 1,000 messages.
   */
  unread(reference: RunReference, options?: AbortOption): Promise<UnreadMessages>
  /** Everything that happened to a run, in order; of a very long one, or with heavy payloads, a part of it. */
  journal(reference: RunReference, options?: JournalOptions): Promise<readonly JournalEntry[]>
  /** The same page by page, however long it is: `for await (const page of holdfast.journalPages(run))`. */
  journalPages(reference: RunReference, options?: JournalPagesOptions): AsyncIterable<readonly JournalEntry[]>
  /**
   * A run with its whole journal, as data that JSON can hold: for `replay` of `holdfast/testing`, or for `holdfast check`.
   * Payloads are in plain text, with any codec. The secret of every completion token is blanked, also of those in results
   * and texts.
   */
  export(reference: RunReference, options?: AbortOption): Promise<ExportedRun>
  /**
   * Replays the journal of a run, of this store or exported, with the code that is registered here, and says whether the
   * two agree. No step is performed, and nothing is written or sent. Code of a body outside of steps is executed.
   */
  replay(run: RunReference | ExportedRun, options?: AbortOption): Promise<ReplayResult>
  /** Runs that match, newest first, by pages. */
  find(options?: FindOptions): Promise<RunPage>
  /** How many runs match, counted no further than to `atMost`. @default atMost 10,000 */
  count(filter?: Filter, options?: CountOptions): Promise<CountResult>
  /**
   * Stops a run for good. A run that is being performed is asked to stop: its abort signals fire, attempts under way may end
   * and are recorded, and its steps are undone, last first. A run that has ended is left as it is.
   */
  cancel(reference: RunReference, options?: CancelOptions): Promise<CancelOutcome>
  /** Stops a run until it is resumed: at once, or at its next checkpoint if it is being performed. */
  pause(reference: RunReference, options?: PauseOptions): Promise<PauseOutcome>
  /** Lets a paused run go on, if need be with repairs of its journal. */
  resume(reference: RunReference, options?: ResumeOptions): Promise<ResumeOutcome>
  /** Lets a failed run go on where it failed. */
  retry(reference: RunReference, options?: NoteOptions): Promise<RetryOutcome>
  /**
   * Removes a run from sight: its keys are free, and no worker begins it any more. Its status and its journal stay. A worker
   * that is performing it goes on until it waits or ends: cancel it first if it has to stop.
   */
  remove(reference: RunReference, options?: RemoveOptions): Promise<void>
  /**
   * Cancels every live run that matches: of all runs only with `{ all: true }`. With `preview` nothing is changed: it answers with
   * how many there are and shows the first ten.
   */
  cancelMany(filter: Filter, options?: CancelOptions & BulkOptions): Promise<BulkOutcome>
  /** Retries every failed run that matches: of all runs only with `{ all: true }`. `preview` is that of `cancelMany`. */
  retryMany(filter: Filter, options?: NoteOptions & BulkOptions): Promise<BulkOutcome>
  /**
   * Resumes every paused run that matches, or those that were paused for one reason, such as `crashes`: of all runs only
   * with `{ all: true }`. `preview` is that of `cancelMany`.
   */
  resumeMany(filter: Filter, options?: ResumeManyOptions): Promise<BulkOutcome>
  /**
   * Pauses every run that matches and is pending, running or waiting: of all runs only with `{ all: true }`. A run that is
   * being performed stops at its next checkpoint. `preview` is that of `cancelMany`.
   */
  pauseMany(filter: Filter, options?: PauseOptions & BulkOptions): Promise<BulkOutcome>
  /**
   * Removes every run that matches from sight, regardless of its status: of all runs only with `{ all: true }`. No worker
   * begins a live one any more, and nothing of it is undone: cancel it first if its steps have to be. `preview` is that of
   * `cancelMany`.
   */
  removeMany(filter: Filter, options?: RemoveOptions & BulkOptions): Promise<BulkOutcome>
  /**
   * Encrypts payloads anew that were written with another key than the current one of the codec, run by run. Runs that are
   * being performed are skipped: call it again until none is left. Retained broadcasts, offloaded payloads and backups may
   * need the old keys longer: docs/encryption.md.
   */
  rekey(options?: RekeyOptions): Promise<RekeyResult>
  /** Checks what must be true of all runs in the store: names each invariant, with the runs that break it. */
  doctor(options?: AbortOption): Promise<readonly InvariantCheck[]>
  /** Keeps a read model up to date in this process, or stands by to: one process at a time moves a projection on. */
  project<Model>(projection: MemoryProjection<Model>, options?: ProjectOptions): Promise<RunningMemoryProjection<Model>>
  project(projection: WorkedProjection, options?: ProjectOptions): Promise<RunningProjection>
  /** All projections of the store: how far they are, and what an operator does with them. */
  readonly projections: ProjectionControl
  /** Runs a worker in this process. */
  work(options?: WorkOptions): Promise<RunningWorker>
  /**
   * Stops the worker, sends accepted items and closes the store. It settles in time also if the store does not answer:
   * without a worker within 6 s, and with one within its shutdown timeout and 10 s.
   */
  close(): Promise<void>
}

export interface RunningWorker {
  /** How much was recovered at the start from workers that had died. */
  readonly recovered: RecoveryCount
  /**
   * Settles when it has stopped: with null, or with the reason if it did so by itself, because a newer Holdfast has migrated
   * the store and this one is no longer admitted.
   */
  readonly ended: Promise<HoldfastError | null>
  /** Asks for control requests at once, and not with the next heartbeat. */
  beat(): void
  /** Stops claiming, waits for runs that are moving, gives back the rest. Calling it again is fine. */
  stop(): Promise<void>
}

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
  checkOptions(options, holdfastOptionNames, 'createHoldfast()')
  checkKinds(options)
  const { workflows = [], codec = jsonCodec(), offload, logger, services, versionFor } = options
  const untilIntervalMs = toMs(options.untilInterval ?? '1h', 'createHoldfast({ untilInterval })', someTime)
  const pollMs = options.poll === undefined ? undefined : toMs(options.poll, 'createHoldfast({ poll })', pollBounds)
  const limits = checkLimits(options.limits ?? {})
  const mostTransactions = checkTransactions(options)
  // Before anything is opened that would have to be closed.
  const definitions = collectDefinitions(workflows)
  const system = systemPorts(logger)
  const ports: Ports = { ...system, ...options.ports, logger: harmless(system.logger) }
  const ownsStore = typeof options.store === 'string'
  const store = typeof options.store === 'string' ? await openStore(options.store, ports) : checkStore(options.store)
  const transaction = checkTransaction(options.transaction, store)
  const payloads = new Payloads(codec, offload, store.capabilities.namespace)
  const tokenKey = checkTokenKey(options.tokenKey)
  const engine = new Engine({
    store,
    ports,
    payloads,
    definitions,
    transaction,
    mostTransactions,
    untilIntervalMs,
    pollMs,
    limits,
    tokenKey,
  })
  const isLeftToDeployment = isProduction() && typeof options.store === 'string' && isPostgres(options.store)
  try {
    const open = { migrate: options.migrate ?? !isLeftToDeployment }
    await abortable('createHoldfast()', options.abortSignal, () => engine.open(open))
  } catch (error) {
    // A store that does not answer may not close either.
    if (ownsStore) await withTimeout(ports.clock, closingMs, store.close())
    throw isLeftToDeployment && options.migrate === undefined ? unmigrated(error) : error
  }
  return assemble(engine, { services, ownsStore, versionFor })
}

/** How long a store that could not be opened may take to close. */
const closingMs = 1_000

interface Assembly {
  readonly services: unknown
  readonly ownsStore: boolean
  readonly versionFor: VersionFor | undefined
}

function assemble(engine: Engine, { services, ownsStore, versionFor }: Assembly): Holdfast {
  const client = new Client(engine, versionFor)
  const projections = new Projections(engine)
  let worker: Worker | null = null
  let closing: Promise<void> | null = null

  let ignoreSignals: Cancel = () => undefined
  const close = async (): Promise<void> => {
    ignoreSignals()
    await Promise.all([worker?.stop(), projections.close()])
    await engine.close({ hasStoppedWorker: worker !== null, ownsStore })
  }
  const closeOnce = (): Promise<void> => (closing ??= close())
  const { limits } = engine
  engine.outgoing = {
    prepare: client.prepareChild,
    receiver: (key) => resolve(engine, key),
    limits,
    execute: (decider, input, options) => executeInput(engine, decider, input, options),
  }

  return {
    ...changes(engine, client),
    using: (tx) => usingTransaction(engine, client, tx),
    run: <Output>(reference: RunReference) => client.handle(reference) as RunHandle<Output>,
    get: (reference, options) => reading('get()', options, () => client.get(reference)),
    query: (reference, name, options) => reading('query()', options, () => client.query(reference, name)),
    active: (reference) => client.active(reference),
    unread: (reference, options) => reading('unread()', options, () => unreadMessages(engine, reference)),
    journal: (reference, options) => readJournal(engine, reference, options),
    journalPages: (reference, options) => journalPages(engine, reference, options),
    export: (reference, options) => exportRun(engine, reference, options),
    replay: (run, options) => replayHere(engine, services, run, options),
    find: (options) => findRuns(engine, options),
    count: (filter, options) => countRuns(engine, filter, options),
    cancelMany: (filter, options) => cancelRuns(engine, filter, options),
    retryMany: (filter, options) => retryRuns(engine, filter, options),
    resumeMany: (filter, options) => resumeRuns(engine, filter, options),
    pauseMany: (filter, options) => pauseRuns(engine, filter, options),
    removeMany: (filter, options) => removeRuns(engine, filter, options),
    rekey: (options) => rekeyRuns(engine, options),
    doctor: (options) => checkInvariants(engine, options),
    project: ((projection: Projection, options?: ProjectOptions) =>
      projections.project(projection, options)) as Holdfast['project'],
    projections: projectionControl(projections),
    async work(options) {
      if (closing !== null) throw new HoldfastError('CLOSED', 'This Holdfast is closed. Create a new one to go on.')
      if (worker !== null) {
        throw new HoldfastError(
          'INVALID_OPTION',
          'This Holdfast works already. Stop its worker first, or create a second Holdfast.',
        )
      }
      if (engine.registry.isEmpty) engine.ports.logger.warn(noWorkflows)
      const working = new Worker(engine, services, options)
      worker = working
      const recovered = await working.start().catch((error: unknown) => {
        worker = null
        throw error
      })
      if (options?.signals !== false) ignoreSignals = closeOnSignal(closeOnce)
      return {
        recovered,
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

type Changes = Starter & Sender & DeciderMethods & Pick<Holdfast, 'cancel' | 'pause' | 'resume' | 'retry' | 'remove'>

const noWorkflows =
  'This worker begins no run, because no workflow is registered here: createHoldfast({ workflows: […] }) names those that it ' +
  'performs.'

/** All methods that change something: each submits its operation, or executes it at once. */
function changes(engine: Engine, client: Client): Changes {
  const submitter = new Submitter(engine, client)
  const submit = submitter.submit.bind(submitter) as <const Given extends Operation>(
    given: Given,
  ) => Promise<OperationResult<Given>>
  const submitBatch = submitter.submitBatch.bind(submitter) as Sender['submitBatch']
  return {
    ...deciderMethods(engine, submit),
    start: client.start.bind(client) as Starter['start'],
    signal: (to: Target, name: string | Topic, payload?: unknown, options?: SignalOptions) =>
      submit(operation.signal(to, name, payload, options)),
    signals: (signals, options) => submitter.submitAll('signal', signals, options) as ReturnType<Sender['signals']>,
    broadcast: (to, payload, options) => submit(operation.broadcast(to, payload, options)),
    sendOrStart: (workflow, key, name, payload, input, options) =>
      submit(operation.sendOrStart(workflow, key, name, payload, input, options)),
    startMany: ((starts, options) => submitter.submitAll('start', starts, options)) as Sender['startMany'],
    complete: (token, value, options) => submit(operation.complete(token, value, options)),
    refuse: (token, error, options) => submit(operation.refuse(token, error, options)),
    ask: (to, name, payload, options) => askRun(engine, to, name, payload, options) as never,
    submit: ((given: Operation | string, payload?: unknown) =>
      typeof given === 'string'
        ? new StartBuilder((options) => client.start(given, payload, options))
        : submit(given)) as Sender['submit'],
    submitBatch,
    deadLetters: (options) => listDeadLetters(engine, options),
    retryDeadLetter: (letter, options) => retryDeadLetter(engine, letter, options),
    discardDeadLetter: (letter, options) => discardDeadLetter(engine, letter, options),
    cancel: (run, options) => submit(operation.cancel(run, options)),
    pause: (run, options) => submit(operation.pause(run, options)),
    resume: (run, options) => submit(operation.resume(run, options)),
    retry: (run, options) => submit(operation.retry(run, options)),
    remove: (run, options) => submit(operation.remove(run, options)),
  }
}

/** A store that lives as long as this process. Hand it to several Holdfasts to let them share their runs. */
export function createMemoryStore(clock: Pick<Clock, 'now'> = systemClock): Store & StoreAdmin {
  return new MemoryStore({ clock, tokenKey: newTokenKey(createRandom()) })
}
