// The SQLite store. Every method does its work in one synchronous step under the write lock of the file, so a batch is atomic
// also if other processes have the file open. A call that must wait for other writers waits in a queue, while the event loop
// turns, and no longer than the storage timeout: its expiry is STORE_UNAVAILABLE, and repeating the call is safe. A caller
// that gives calls up sooner sets `limit`: then they expire before that, so that no call is made after its caller has given
// up.
//
// Listeners of this store object get hints of its own writes. Writes of other processes are found by polling.

import type { Fate } from '../../core/model/message.ts'
import type { Run } from '../../core/model/run.ts'
import type { Transition } from '../../core/model/transition.ts'
import type {
  BatchOptions,
  Beat,
  BeatRequest,
  Capabilities,
  Change,
  InvariantCheck,
  ChoresDone,
  Claimed,
  ClaimRequest,
  Committed,
  DeadLetter,
  DeadLetterFilter,
  Delivered,
  FeedEnd,
  ProjectionAnswer,
  ProjectionCommand,
  ProjectionRow,
  ReleasedLease,
  Hint,
  KeyCount,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  Rescued,
  RescueRequest,
  RunFilter,
  RunStart,
  Started,
  ControlResult,
  ControlCommand,
  Store,
  StoreAdmin,
  StoreLimits,
  StoreProjections,
  StoreSecrets,
  StoreTransactions,
  TransactOptions,
  TransactionStore,
} from '../../store.ts'
import { StorageLimit } from '../storage-limit.ts'
import { Batch } from './write/batch.ts'
import { CallQueue } from './driver/call-queue.ts'
import { checkTables } from './read/check.ts'
import { doPage, lookForTask, takeTask } from './write/chores.ts'
import { claimRuns, look } from './write/claim.ts'
import { commitOne, startAll } from './write/commit.ts'
import type { Connection } from './driver/connection.ts'
import { FileMark } from './driver/file-stamp.ts'
import { FileWatch } from './driver/file-watch.ts'
import { findDeadLetters, settleDeadLetter } from './read/dead-letters.ts'
import { otherKeys, rewritePayloads } from './read/payloads.ts'
import { deliverOne } from './write/deliver.ts'
import { countRuns, findRuns } from './read/find.ts'
import type { IdleRescue, IdleClaim } from './read/idle-look.ts'
import { load, readChanges, readFeedEnd, readRun, readTokenKey } from './read/read.ts'
import { commandProjection, readProjections } from './write/projections.ts'
import { outlook, rescueRuns } from './write/rescue.ts'
import { migrate } from './schema/schema.ts'
import { beat, endExpired } from './write/sessions.ts'
import { releaseOne, controlRuns } from './write/control.ts'
import type { SqliteStoreParts, WriteCount } from './store-parts.ts'
import { UserTransactions } from './transactions/user-transactions.ts'

/** A rescue reads the file at least this often, also if it seems unchanged. */
const longestCalmMs = 15_000

/** The part of the caller's waiting time that a call waits for other writers: so the caller gets the reason in time. */
const waitPart = 0.9

export class SqliteStore implements Store, StoreAdmin, StoreLimits, StoreProjections, StoreSecrets, StoreTransactions {
  readonly capabilities: Capabilities
  private readonly db: Connection
  private readonly now: () => number
  private readonly clock: SqliteStoreParts['clock']
  private readonly state: SqliteStoreParts['state']
  private readonly writeCount: WriteCount
  private readonly onClose: () => void
  private readonly reads: CallQueue
  private readonly writes: CallQueue
  private readonly users: UserTransactions
  private readonly storageMs: number
  private readonly storage: StorageLimit
  private quiet: IdleClaim | null = null
  private calm: IdleRescue | null = null
  private readonly mark: FileMark
  private readonly listeners = new Set<(hint: Hint) => void>()
  private undelivered: Hint[] = []

  /** @internal */
  constructor(parts: SqliteStoreParts) {
    const { db, now, clock, state, writes, capabilities, gate, file, storageMs, logger, onClose } = parts
    const bound = storageMs > 0 ? { storageMs } : {}
    const can = { notifies: false, multiProcess: true, transactions: true, projections: true }
    this.capabilities = { ...can, ...bound, ...capabilities }
    this.db = db
    this.now = now
    this.clock = clock
    this.state = state
    this.writeCount = writes
    this.onClose = onClose
    const watch = new FileWatch(file)
    const queue = { waitMs: storageMs, check: () => watch.check() }
    // A transaction that is open on another connection does not delay readers.
    this.reads = new CallQueue({ ...queue, shut: () => (gate.isHeldBy(db.database) ? gate.opened : null) })
    this.writes = new CallQueue({ ...queue, shut: () => gate.opened })
    this.storageMs = storageMs
    this.storage = new StorageLimit(storageMs)
    this.mark = new FileMark(file)
    const onOver = (hints: readonly Hint[]): void => {
      this.writeCount.writes += 1
      this.hint(hints)
    }
    this.users = new UserTransactions({ db, now, gate, writes: this.writes, file, storageMs, logger, onOver })
  }

  async migrate(): Promise<void> {
    return this.writes.enter(() => migrate(this.db, this.now))
  }

  async start(runs: readonly RunStart[], options?: BatchOptions): Promise<readonly Started[]> {
    return this.write(runs.length, (batch) => startAll(batch, runs), [], this.until(options))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const until = this.until()
    if (request.runId !== undefined) {
      const nothing: Claimed = { runs: [], more: false, nextDue: null, now: this.now() }
      return this.write(1, (batch) => claimRuns(batch, request), nothing, until)
    }
    const look = (): Claimed => (request.isolated === true ? this.lookIsolated(request) : this.look(request))
    const found = await this.read(look, until)
    return found.more ? this.write(1, (batch) => claimRuns(batch, request), found, until) : found
  }

  /** The result of a claim, without leasing. */
  private look(request: ClaimRequest): Claimed {
    const { now, version } = this.state()
    const { selectors, keys } = request
    const { writes } = this.writeCount
    const { quiet } = this
    const isSame = quiet?.selectors === selectors && quiet.keys === keys
    if (isSame && quiet.version === version && quiet.writes === writes) {
      // No process has written since nothing was found: one statement is enough, however many types there are.
      const { nextDue } = quiet
      if (nextDue === null || nextDue > now) return { runs: [], more: false, nextDue, now }
    }
    const { more, nextDue } = look(this.db, request, now)
    this.quiet = more ? null : { selectors, keys, version, writes, nextDue }
    return { runs: [], more, nextDue, now }
  }

  /** Asked for only when suspects are known to wait, so that nothing is remembered of it. */
  private lookIsolated(request: ClaimRequest): Claimed {
    const now = this.now()
    const { more, nextDue } = look(this.db, request, now)
    return { runs: [], more, nextDue, now }
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    return this.read(() => load(this.db, requests, mostBytes))
  }

  async commit(transitions: readonly Transition[], options?: BatchOptions): Promise<readonly Committed[]> {
    const commit = (batch: Batch): readonly Committed[] => transitions.map((one) => commitOne(batch, one))
    return this.write(transitions.length, commit, [], this.until(options))
  }

  async deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly Delivered[]> {
    const deliver = (batch: Batch): readonly Delivered[] => messages.map((message) => deliverOne(batch, message))
    return this.write(messages.length, deliver, [], this.until(options))
  }

  async control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
    return this.write(requests.length, (batch) => controlRuns(batch, requests), [])
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.writeAlone(() => beat(this.db, this.clock, request))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    const nothing = { takenOver: [], ended: [], paused: [], more: false }
    // Before the look: later writes change the mark for the next one.
    const mark = this.mark.read()
    const until = this.until()
    const calm = await this.read(() => this.stillCalm(mark), until)
    if (calm !== null) return { ...nothing, sessionsEnded: 0, ...calm }
    const { quiet, sessionsExpired, next, suspects, now } = await this.outlook(until)
    this.calm = quiet && mark !== null ? { mark, next, suspects, now } : null
    if (quiet) return { ...nothing, sessionsEnded: 0, suspects, next, now }
    // A separate transaction: a session is marked as ended before any run is taken from it.
    const sessionsEnded = sessionsExpired ? await this.writeAlone(() => endExpired(this.batch()), until) : 0
    const taken = await this.write(request.limit, (batch) => rescueRuns(batch, request), nothing, until)
    const after = await this.outlook(until)
    return { ...taken, sessionsEnded, suspects: after.suspects, next: after.next, now: after.now }
  }

  /** No process has written since a rescue found nothing to do, and nothing has expired since: no statement is needed. */
  private stillCalm(mark: string | null): Pick<Rescued, 'next' | 'suspects' | 'now'> | null {
    const { calm } = this
    if (calm === null || calm.mark !== mark) return null
    // The database's clock is that of the machine.
    const now = this.clock?.now() ?? Date.now()
    const { next, suspects } = calm
    const isOver = (next !== null && next <= now) || now < calm.now || now - calm.now >= longestCalmMs
    return isOver ? null : { next, suspects, now }
  }

  async release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
    const release = (batch: Batch): void => leases.forEach((lease) => releaseOne(batch, lease))
    await this.write(leases.length, release, undefined)
    return []
  }

  async doChores(): Promise<ChoresDone> {
    const until = this.until()
    const { isDue, nextInMs } = await this.read(() => lookForTask(this.db, this.now()), until)
    if (!isDue) return { worked: false, nextInMs }
    const task = await this.write(1, takeTask, undefined, until)
    if (task !== undefined) await this.write(1, (batch) => doPage(batch, task), undefined, until)
    return { worked: task !== undefined, nextInMs: null }
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    return this.read(() => runIds.map((id) => readRun(this.db, id)))
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    return this.read(() => readChanges(this.db, after, limit))
  }

  async projections(): Promise<readonly ProjectionRow[]> {
    return this.read(() => readProjections(this.db))
  }

  async commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer> {
    return this.writeAlone(() => commandProjection(this.db, command, this.now()))
  }

  async feedEnd(): Promise<FeedEnd> {
    return this.read(() => readFeedEnd(this.db))
  }

  async find(filter: RunFilter, page: Page): Promise<readonly Run[]> {
    return this.read(() => findRuns(this.db, filter, page))
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    return this.read(() => countRuns(this.db, filter, atMost))
  }

  async deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]> {
    return this.read(() => findDeadLetters(this.db, filter, page))
  }

  async settleDeadLetter(letter: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): Promise<boolean> {
    return this.writeAlone(() => settleDeadLetter(this.db, letter, fate))
  }

  async otherKeys(keys: readonly string[], atMost: number): Promise<readonly KeyCount[]> {
    return this.read(() => otherKeys(this.db, keys, atMost))
  }

  async rewritePayloads(request: PayloadRewrite): Promise<PayloadsRewritten> {
    return this.writeAlone(() => rewritePayloads(this.db, request))
  }

  async tokenKey(): Promise<string> {
    return this.read(() => readTokenKey(this.db))
  }

  async doctor(): Promise<readonly InvariantCheck[]> {
    // Each check is one statement, and so sees one state; writers are not delayed.
    return this.read(() => checkTables(this.db, this.clock))
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    return this.db.read(() => {
      this.listeners.add(onHint)
      return () => this.listeners.delete(onHint)
    })
  }

  inTransaction(handle: unknown): TransactionStore {
    return this.users.inTransaction(handle)
  }

  transact<Result>(
    work: (handle: unknown, transactionStore: TransactionStore) => Promise<Result>,
    options?: TransactOptions,
  ): Promise<Result> {
    return this.users.transact(work, options)
  }

  async close(): Promise<void> {
    this.listeners.clear()
    this.reads.close()
    this.writes.close()
    this.users.close()
    this.onClose()
  }

  limit(ms: number): () => void {
    return this.storage.limit(ms)
  }

  /** When a call that is made now expires, with all that it does one after the other. */
  private until({ timeoutMs = Number.POSITIVE_INFINITY }: BatchOptions = {}): number | undefined {
    // With a storage timeout of 0 no call waits, and so none expires.
    if (this.storageMs === 0) return undefined
    return performance.now() + Math.min(this.storageMs, waitPart * Math.min(timeoutMs, this.storage.leastMs))
  }

  private read<Answer>(work: () => Answer, until = this.until()): Answer | Promise<Answer> {
    return this.reads.enter(() => this.db.read(work), { until })
  }

  private async outlook(until: number | undefined): Promise<ReturnType<typeof outlook>> {
    return this.read(() => outlook(this.db, this.clock), until)
  }

  /** One transaction without hints. */
  private writeAlone<Answer>(work: () => Answer, until = this.until()): Answer | Promise<Answer> {
    return this.writes.enter(() => this.db.write(work), { until })
  }

  private batch(): Batch {
    return new Batch(this.db, this.now(), this.listeners.size > 0)
  }

  /** One transaction; nothing to write is answered without one. */
  private write<Answer>(
    count: number,
    work: (batch: Batch) => Answer,
    nothing: Answer,
    until = this.until(),
  ): Answer | Promise<Answer> {
    if (count === 0) return this.read(() => nothing, until)
    const perform = (): Answer => {
      this.writeCount.writes += 1
      let hints: readonly Hint[] = []
      const answer = this.db.write(() => {
        const batch = this.batch()
        const result = work(batch)
        batch.write()
        hints = batch.hints
        return result
      })
      this.hint(hints)
      return answer
    }
    return this.writes.enter(perform, { until })
  }

  /** Notifies listeners once the present call has its answer, so that nothing that they do or throw gets into it. */
  private hint(hints: readonly Hint[]): void {
    if (hints.length === 0) return
    if (this.undelivered.length === 0) void Promise.resolve().then(this.notifyListeners)
    // One by one: as the arguments of one call, a hundred thousand of them would not fit on the stack.
    for (const hint of hints) this.undelivered.push(hint)
  }

  private readonly notifyListeners = (): void => {
    const hints = this.undelivered
    this.undelivered = []
    for (const hint of hints) for (const listener of this.listeners) listener(hint)
  }
}
