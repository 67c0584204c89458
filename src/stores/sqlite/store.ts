// The SQLite store. Every method does its work in one synchronous step under the write lock of the file, so a batch is
// atomic whoever else has the file open; the promises are there for the port. The time that a call may take is SQLite's
// own busy timeout: its expiry is STORE_UNAVAILABLE, and repeating the call is safe.
//
// Listeners of this store object are told of what it wrote itself. What other processes write is found by looking.

import type { Fate } from '../../core/message.ts'
import type { Clock } from '../../core/ports.ts'
import type { Run, Lease } from '../../core/run.ts'
import type { Transition } from '../../core/transition.ts'
import type {
  Beat,
  BeatRequest,
  Capabilities,
  Change,
  Checked,
  Claimed,
  ClaimRequest,
  Committed,
  DeadLetter,
  DeadLetterFilter,
  Delivered,
  Hint,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  NewRun,
  Page,
  Rescued,
  RescueRequest,
  RunFilter,
  Started,
  Steered,
  SteerRequest,
  Store,
  StoreAdmin,
  StoreTransactions,
  Within,
} from '../../store.ts'
import { Batch } from './batch.ts'
import { checkTables } from './checking.ts'
import { claimRuns, look } from './claiming.ts'
import { commitOne } from './committing.ts'
import type { Connection } from './connection.ts'
import { findDeadLetters, settleDeadLetter } from './dead-letters.ts'
import { deliverOne } from './delivering.ts'
import { countRuns, findRuns } from './finding.ts'
import { load, readChanges, readRun } from './reading.ts'
import { outlook, rescueRuns } from './rescuing.ts'
import { migrate } from './schema.ts'
import { beat, endExpired } from './sessions.ts'
import { startRuns } from './starting.ts'
import { releaseOne, steerRuns } from './steering.ts'
import type { Gate } from './gate.ts'
import { UserTransactions } from './user-transactions.ts'

/** What a store is built from; `openSqliteStore` puts it together. */
export interface SqliteStoreParts {
  readonly db: Connection
  /** The one place where time comes from. */
  readonly now: () => number
  /** The clock behind it, if a test owns it; otherwise that is the database's. */
  readonly clock: Pick<Clock, 'now'> | undefined
  /** The time, and a number that changes whenever another connection has written. */
  readonly state: () => { readonly now: number; readonly version: number }
  /** How often this connection has written what may make a run claimable. */
  readonly writes: WriteCount
  /** What is other than SQLite's. */
  readonly capabilities?: Partial<Capabilities>
  /** Where everyone waits while a user's transaction is open. */
  readonly gate: Gate
  /** The file, as SQLite calls it; empty if it lives in memory. */
  readonly file: string
  /** How long a user's transaction may keep others waiting. */
  readonly storageMs: number
  /** Called once, when the store is closed. */
  readonly onClose: () => void
}

export interface WriteCount {
  writes: number
}

/** What a claim found when there was nothing to claim, and when it found that. */
interface Quiet {
  readonly selectors: ClaimRequest['selectors']
  readonly version: number
  readonly writes: number
  readonly nextDue: number | null
}

export class SqliteStore implements Store, StoreAdmin, StoreTransactions {
  readonly capabilities: Capabilities
  private readonly db: Connection
  private readonly now: () => number
  private readonly clock: SqliteStoreParts['clock']
  private readonly state: SqliteStoreParts['state']
  private readonly writeCount: WriteCount
  private readonly onClose: () => void
  private readonly gate: Gate
  private readonly users: UserTransactions
  private quiet: Quiet | null = null
  private readonly listeners = new Set<(hint: Hint) => void>()
  private untold: Hint[] = []

  constructor({ db, now, clock, state, writes, capabilities, gate, file, storageMs, onClose }: SqliteStoreParts) {
    this.capabilities = { notifies: false, multiProcess: true, transactions: true, ...capabilities }
    this.db = db
    this.now = now
    this.clock = clock
    this.state = state
    this.writeCount = writes
    this.onClose = onClose
    this.gate = gate
    const onOver = (hints: readonly Hint[]): void => {
      this.writeCount.writes += 1
      this.hint(hints)
    }
    this.users = new UserTransactions({ db, now, gate, file, storageMs, onOver })
  }

  async migrate(): Promise<void> {
    return this.gate.through(() => migrate(this.db, this.now))
  }

  async start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    return this.gate.through(() => this.write(runs.length, (batch) => startRuns(batch, runs), []))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    return this.gate.through(() => this.claimNow(request))
  }

  private claimNow(request: ClaimRequest): Claimed {
    const { now, version } = this.db.read(this.state)
    const { selectors } = request
    const { writes } = this.writeCount
    const { quiet } = this
    if (quiet?.selectors === selectors && quiet.version === version && quiet.writes === writes) {
      // Nobody has written since nothing was found: one statement is enough, however many types there are.
      const { nextDue } = quiet
      if (nextDue === null || nextDue > now) return { runs: [], more: false, nextDue, now }
    }
    const { more, nextDue } = this.db.read(() => look(this.db, request, now))
    this.quiet = more ? null : { selectors, version, writes, nextDue }
    const nothing: Claimed = { runs: [], more, nextDue, now }
    return more ? this.write(1, (batch) => claimRuns(batch, request), nothing) : nothing
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    return this.read(() => requests.map((request) => load(this.db, request)))
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    const commit = (batch: Batch): readonly Committed[] => transitions.map((one) => commitOne(batch, one))
    return this.gate.through(() => this.write(transitions.length, commit, []))
  }

  async deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    const deliver = (batch: Batch): readonly Delivered[] => messages.map((message) => deliverOne(batch, message))
    return this.gate.through(() => this.write(messages.length, deliver, []))
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    return this.gate.through(() => this.write(requests.length, (batch) => steerRuns(batch, requests), []))
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.gate.through(() => this.db.write(() => beat(this.batch(), request)))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    return this.gate.through(() => this.rescueNow(request))
  }

  private rescueNow(request: RescueRequest): Rescued {
    const { quiet, sessionsExpired, next, now } = this.outlook()
    const nothing = { takenOver: [], ended: [], more: false }
    if (quiet) return { ...nothing, sessionsEnded: 0, next, now }
    // A transaction of its own: whoever was declared dead is so before anything is taken from it.
    const sessionsEnded = sessionsExpired ? this.db.write(() => endExpired(this.batch())) : 0
    const taken = this.write(request.limit, (batch) => rescueRuns(batch, request), nothing)
    const after = this.outlook()
    return { ...taken, sessionsEnded, next: after.next, now: after.now }
  }

  async release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void> {
    const release = (batch: Batch): void => leases.forEach((lease) => releaseOne(batch, lease))
    return this.gate.through(() => this.write(leases.length, release, undefined))
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    return this.read(() => runIds.map((id) => readRun(this.db, id)))
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    return this.read(() => readChanges(this.db, after, limit))
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
    return this.gate.through(() => this.db.write(() => settleDeadLetter(this.db, letter, fate)))
  }

  async check(): Promise<readonly Checked[]> {
    // Each check is one statement, and so sees one state; whoever writes is not held up.
    return this.read(() => checkTables(this.db, this.clock))
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    return this.db.read(() => {
      this.listeners.add(onHint)
      return () => this.listeners.delete(onHint)
    })
  }

  within(handle: unknown): Within {
    return this.users.within(handle)
  }

  transact<Result>(work: (handle: unknown, within: Within) => Promise<Result>): Promise<Result> {
    return this.users.transact(work)
  }

  async close(): Promise<void> {
    this.listeners.clear()
    return this.gate.through(this.onClose)
  }

  private read<Answer>(work: () => Answer): Answer | Promise<Answer> {
    return this.gate.through(() => this.db.read(work))
  }

  private outlook(): ReturnType<typeof outlook> {
    return this.db.read(() => outlook(this.db, this.now()))
  }

  private batch(): Batch {
    return new Batch(this.db, this.now(), this.listeners.size > 0)
  }

  /** One transaction; nothing to write is answered without one. */
  private write<Answer>(count: number, work: (batch: Batch) => Answer, nothing: Answer): Answer {
    if (count === 0) return this.db.read(() => nothing)
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

  /** Tells listeners once the present call has its answer, so that nothing that they do or throw gets into it. */
  private hint(hints: readonly Hint[]): void {
    if (hints.length === 0) return
    if (this.untold.length === 0) void Promise.resolve().then(this.tell)
    this.untold.push(...hints)
  }

  private readonly tell = (): void => {
    const hints = this.untold
    this.untold = []
    for (const hint of hints) for (const listener of this.listeners) listener(hint)
  }
}
