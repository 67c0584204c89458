// The memory store: the reference of what a store does, and the oracle of the property tests. Every method takes effect
// in one synchronous step, so whatever it does is atomic; it keeps nothing when the process ends.

import { HoldfastError } from '../../core/errors/error.ts'
import { nextChoreInMs, type PageLimits } from '../../core/model/chore.ts'
import { conclude, doChore } from '../../core/rules/exchange.ts'
import type { Fate } from '../../core/model/message.ts'
import type { Clock } from '../../core/runtime/ports.ts'
import { countKeys, isReadable, rewriteObjection } from '../../core/rules/readable.ts'
import { holds, type Run, type ControlRequest } from '../../core/model/run.ts'
import type { Rewrite } from '../../core/rules/rewrite.ts'
import { control } from '../../core/rules/control.ts'
import { giveBack, takeOver, timeOut } from '../../core/rules/takeover.ts'
import type { Transition } from '../../core/model/transition.ts'
import type {
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
  ReleasedLease,
  Hint,
  KeyCount,
  Loaded,
  LoadRequest,
  NewBroadcast,
  NewMessage,
  NewRun,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  Rescued,
  RescueRequest,
  RunFilter,
  Started,
  ControlResult,
  ControlCommand,
  Store,
  StoreAdmin,
  StoreSecrets,
} from '../../store.ts'
import { cutBy, loadBudgets } from '../load-budget.ts'
import { isOver } from './tables/time-bounds.ts'
import { checkStore } from './check.ts'
import { CommitBooks, commitOne } from './commit.ts'
import { deadLetters } from './dead-letters.ts'
import { deliverOne } from './deliver.ts'
import { matching } from './find.ts'
import { firstIsolated, nextDue, nextDueIsolated, ReadyTurns } from './tables/queues.ts'
import type { Row } from './tables/row.ts'
import { startOne } from './start.ts'
import { Tables } from './tables/tables.ts'

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, 'now'>
  /** How much one call may write for others. @default `usualPages` */
  readonly pages?: PageLimits
  /** What the secrets of tokens are made with. @default there is none */
  readonly tokenKey?: string
}

export class MemoryStore implements Store, StoreAdmin, StoreSecrets {
  readonly capabilities: Capabilities = { notifies: true, multiProcess: false }
  private readonly clock: Pick<Clock, 'now'>
  private readonly tables: Tables
  private readonly unitOfWork: CommitBooks
  private readonly key: string | null
  private closed = false

  constructor(options: MemoryStoreOptions) {
    this.clock = options.clock
    this.tables = new Tables(options.pages)
    this.unitOfWork = new CommitBooks(this.tables)
    this.key = options.tokenKey ?? null
  }

  async migrate(): Promise<void> {
    this.assertOpen()
  }

  async start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    this.assertOpen()
    const unitOfWork = this.now()
    return runs.map((run) => startOne(unitOfWork, run))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    this.assertOpen()
    const now = this.clock.now()
    const { isolated = false } = request
    const queues = this.tables.queues.select(request.selectors, isolated ? null : now)
    const limit = this.tables.bounds.sessions.hasEnded(request.session) ? 0 : request.limit
    const runs: Run[] = []
    const over: { readonly row: Row; readonly due: number }[] = []
    const turns = new ReadyTurns(queues, request.selectors)
    const first = (): Row | undefined => (isolated ? firstIsolated(queues, now) : turns.first())
    let row = first()
    for (; row !== undefined; row = first()) {
      if (isOver(row, now) || !isReadable(row, request)) {
        // It is left to the rescue, or to others; meanwhile it must not hide those behind it.
        over.push({ row, due: row.due ?? now })
        this.tables.queues.remove(row, 'idle')
      } else if (runs.length < limit) {
        turns.take(row)
        this.tables.lease(row, { session: request.session, token: row.token + 1 }, leaseMsOf(row, request), now)
        // A suspect is counted when it begins.
        if (!isolated) row.crashes += 1
        runs.push(row.view())
      } else break
    }
    const next = isolated ? nextDueIsolated(queues, now) : nextDue(queues)
    for (const one of over) this.tables.queues.enqueue(one.row, one.due, now, isolated)
    return { runs, more: row !== undefined, nextDue: next, now }
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    this.assertOpen()
    const bounds = loadBudgets(mostBytes)
    return requests.map((request) => {
      const row = this.tables.rows.get(request.runId)
      return row === undefined ? { entries: [], messages: [], ...cutBy(bounds) } : row.load(request, bounds)
    })
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.assertOpen()
    const unitOfWork = this.now()
    return transitions.map((transition) => commitOne(unitOfWork, transition))
  }

  async deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    this.assertOpen()
    const unitOfWork = this.now()
    return messages.map((message) => deliverOne(unitOfWork, message))
  }

  async beat(request: BeatRequest): Promise<Beat> {
    this.assertOpen()
    const now = this.clock.now()
    const { session, held = [], seeksUnknownLeases = true } = request
    const alive = this.tables.bounds.sessions.beat(request, now)
    const lost: string[] = []
    const mail: Beat['mail'][number][] = []
    for (const { runId, token, extendMs, inbox, begun } of held) {
      const row = this.tables.rows.get(runId)
      if (!alive || row === undefined || !holds(row, { session, token })) lost.push(runId)
      else {
        if (extendMs !== null) row.deadline = now + extendMs
        if (begun !== undefined) row.crashes = begun
        if (inbox !== undefined && row.inbox > inbox) mail.push({ runId, inbox: row.inbox })
      }
    }
    const { bounds } = this.tables
    const listed = new Set(held.map(({ runId }) => runId))
    const isHeldBySession = ({ id }: Row): boolean => seeksUnknownLeases || listed.has(id)
    const controlRequest = ({ id, controlRequest: wanted }: Row): Beat['controlRequests'][number] => ({
      runId: id,
      controlRequest: { ...(wanted as ControlRequest) },
    })
    const controlRequests = bounds.controlRequests(session).filter(isHeldBySession).map(controlRequest)
    const timedOut = bounds
      .timedOut(session, now)
      .filter(isHeldBySession)
      .map(({ id }) => id)
    const unknownLeases = seeksUnknownLeases ? bounds.unknownLeases(session, listed) : []
    return { alive, lost, unknownLeases, controlRequests, mail, timedOut, now }
  }

  async control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
    this.assertOpen()
    const now = this.clock.now()
    return requests.map((request) => this.controlOne(request, now))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    this.assertOpen()
    const now = this.clock.now()
    const sessionsEnded = this.tables.bounds.sessions.endExpired(now)
    const orphans = this.tables.bounds.orphans(now)
    const over = this.tables.bounds.over(now)
    const found = [...orphans, ...over].slice(0, request.limit)
    const takenOver: Rescued['takenOver'][number][] = []
    const ended: Rescued['ended'][number][] = []
    const paused: string[] = []
    for (const row of found) {
      const run = row.view()
      // The end of another one of them may have cancelled it: that has no bound on its time.
      if (run.session === null && run.status === 'cancelling') continue
      const { id: runId, type, session } = run
      const taken = session === null ? timeOut(run, request, now) : takeOver(run, request, now)
      this.rewrite(row, taken, null, now)
      if (taken.isConvicted) paused.push(runId)
      const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
      if (reason !== null) ended.push({ runId, type, reason })
      else if (session !== null) takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
    }
    const more = found.length < orphans.length + over.length
    const suspects = this.tables.queues.nextIsolated()
    return { sessionsEnded, takenOver, ended, paused, suspects, more, next: this.tables.bounds.next(), now }
  }

  async release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
    this.assertOpen()
    const now = this.clock.now()
    for (const lease of leases) {
      const row = this.tables.rows.get(lease.runId)
      if (row === undefined || !holds(row, lease)) continue
      this.rewrite(row, giveBack(row.view(), now, lease.crashes), null, now)
    }
    return []
  }

  async doChores(): Promise<ChoresDone> {
    this.assertOpen()
    const now = this.clock.now()
    const chore = this.tables.topics.takeChore(now)
    if (chore !== undefined) {
      doChore(this.unitOfWork.at(now), chore)
      return { worked: true, nextInMs: null }
    }
    const dues = this.tables.topics.allChores().map(({ due }) => due)
    return { worked: false, nextInMs: nextChoreInMs(dues, now) }
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    this.assertOpen()
    return runIds.map((id) => this.tables.rows.get(id)?.view())
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    this.assertOpen()
    return this.tables.feed.read(after, limit)
  }

  async find(filter: RunFilter, { limit, after }: Page): Promise<readonly Run[]> {
    this.assertOpen()
    const found = matching(this.tables.rows.values(), filter)
    const rest = after === undefined ? found : found.filter(({ id }) => id < after)
    return rest.slice(0, limit).map((row) => row.view())
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    this.assertOpen()
    return Math.min(matching(this.tables.rows.values(), filter).length, atMost)
  }

  async deadLetters(filter: DeadLetterFilter, { limit, after }: Page): Promise<readonly DeadLetter[]> {
    this.assertOpen()
    return deadLetters(this.tables.rows.values(), filter, limit, after)
  }

  async settleDeadLetter({ runId, id }: Pick<DeadLetter, 'runId' | 'id'>, fate: Fate): Promise<boolean> {
    this.assertOpen()
    const kept = this.tables.rows.get(runId)?.mailbox?.get(id)
    if (kept?.fate !== 'dead') return false
    kept.fate = fate
    return true
  }

  async otherKeys(keys: readonly string[], atMost: number): Promise<readonly KeyCount[]> {
    this.assertOpen()
    return countKeys(this.tables.rows.values(), keys, atMost)
  }

  async rewritePayloads(request: PayloadRewrite): Promise<PayloadsRewritten> {
    this.assertOpen()
    const row = this.tables.rows.get(request.runId)
    const objection = rewriteObjection(row, request.seq)
    if (row === undefined || objection !== null) return objection ?? 'not-found'
    row.rewritePayloads(request)
    return 'written'
  }

  async tokenKey(): Promise<string | null> {
    this.assertOpen()
    return this.key
  }

  async doctor(): Promise<readonly InvariantCheck[]> {
    this.assertOpen()
    return checkStore(this.tables, this.clock.now())
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.assertOpen()
    return this.tables.hints.listen(onHint)
  }

  async close(): Promise<void> {
    this.closed = true
    this.tables.hints.close()
  }

  private controlOne(request: ControlCommand, now: number): ControlResult {
    const { rows, keys } = this.tables
    const row = rows.get(request.runId)
    if (row === undefined) return { outcome: 'not-found' }
    const run = row.view()
    if (row.entries.some(({ transition }) => transition === request.id)) return { outcome: 'done', run }
    const keyHolder = request.kind === 'retry' ? (keys.holder(run)?.id ?? null) : null
    const { answer, write } = control(run, request, now, keyHolder)
    if (write !== null) this.rewrite(row, write, request.id, now)
    return answer
  }

  /** Makes the row what it shall be; if it has ended with that, those who watch it are told. */
  private rewrite(row: Row, write: Rewrite, transition: string | null, now: number): void {
    if (this.tables.rewrite(row, write, transition, now)) conclude(this.unitOfWork.at(now), row.view())
  }

  /** The tables as they are for a call that takes place now. */
  private now(): CommitBooks {
    return this.unitOfWork.at(this.clock.now())
  }

  private assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }
}

function leaseMsOf({ type, version }: Row, { selectors }: ClaimRequest): number | null {
  return selectors.find((one) => one.type === type && one.version === version)?.leaseMs ?? null
}
