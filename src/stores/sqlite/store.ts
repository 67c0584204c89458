// The SQLite store. Every method does its work in one synchronous step under the write lock of the file, so a batch is
// atomic whoever else has the file open; the promises are there for the port. The time that a call may take is SQLite's
// own busy timeout: its expiry is STORE_UNAVAILABLE, and repeating the call is safe.
//
// Listeners of this store object are told of what it wrote itself. What other processes write is found by looking.

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
  Delivered,
  Hint,
  Loaded,
  LoadRequest,
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
} from '../../store.ts'
import { Batch } from './batch.ts'
import { checkTables } from './checking.ts'
import { claimRuns, look } from './claiming.ts'
import { commitOne } from './committing.ts'
import type { Connection } from './connection.ts'
import { deliverOne } from './delivering.ts'
import { countRuns, findRuns } from './finding.ts'
import { load, readChanges, readRun } from './reading.ts'
import { outlook, rescueRuns } from './rescuing.ts'
import { releaseOne, steerRuns } from './rewriting.ts'
import { migrate } from './schema.ts'
import { beat, endExpired } from './sessions.ts'
import { startRuns } from './starting.ts'

/** What a store is built from; `openSqliteStore` puts it together. */
export interface SqliteStoreParts {
  readonly db: Connection
  /** The one place where time comes from. */
  readonly now: () => number
  /** The time, and a number that changes whenever another connection has written. */
  readonly state: () => { readonly now: number; readonly version: number }
  /** How often this connection has written what may make a run claimable. */
  readonly writes: WriteCount
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

export class SqliteStore implements Store, StoreAdmin {
  readonly capabilities: Capabilities = { notifies: false, multiProcess: true }
  private readonly db: Connection
  private readonly now: () => number
  private readonly state: SqliteStoreParts['state']
  private readonly writeCount: WriteCount
  private readonly onClose: () => void
  private quiet: Quiet | null = null
  private readonly listeners = new Set<(hint: Hint) => void>()
  private untold: Hint[] = []

  constructor({ db, now, state, writes, onClose }: SqliteStoreParts) {
    this.db = db
    this.now = now
    this.state = state
    this.writeCount = writes
    this.onClose = onClose
  }

  async migrate(): Promise<void> {
    migrate(this.db, this.now)
  }

  async start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    return this.write(runs.length, (batch) => startRuns(batch, runs), [])
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
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
    return this.db.read(() => requests.map((request) => load(this.db, request)))
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    return this.write(transitions.length, (batch) => transitions.map((one) => commitOne(batch, one)), [])
  }

  async deliver(messages: readonly NewMessage[]): Promise<readonly Delivered[]> {
    return this.write(messages.length, (batch) => messages.map((message) => deliverOne(batch, message)), [])
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    return this.write(requests.length, (batch) => steerRuns(batch, requests), [])
  }

  async beat(request: BeatRequest): Promise<Beat> {
    return this.db.write(() => beat(this.batch(), request))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
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
    this.write(leases.length, (batch) => leases.forEach((lease) => releaseOne(batch, lease)), undefined)
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    return this.db.read(() => runIds.map((id) => readRun(this.db, id)))
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    return this.db.read(() => readChanges(this.db, after, limit))
  }

  async find(filter: RunFilter, page: Page): Promise<readonly Run[]> {
    return this.db.read(() => findRuns(this.db, filter, page))
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    return this.db.read(() => countRuns(this.db, filter, atMost))
  }

  async check(): Promise<readonly Checked[]> {
    // Each check is one statement, and so sees one state; whoever writes is not held up.
    return this.db.read(() => checkTables(this.db, this.now()))
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    return this.db.read(() => {
      this.listeners.add(onHint)
      return () => this.listeners.delete(onHint)
    })
  }

  async close(): Promise<void> {
    this.listeners.clear()
    this.onClose()
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
