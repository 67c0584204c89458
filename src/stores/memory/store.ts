// The memory store: the reference for the behaviour of a store, and the oracle of the property tests. Every method takes
// effect in one synchronous step, so each is atomic; nothing survives the end of the process.

import { HoldfastError } from '../../core/errors/error.ts'
import { nextChoreInMs, type PageLimits } from '../../core/model/chore.ts'
import { tidyTopic } from '../../core/rules/messages/unused-topics.ts'
import { doChore } from '../../core/rules/messages/exchange.ts'
import type { Fate } from '../../core/model/message.ts'
import type { Clock } from '../../core/runtime/ports.ts'
import { isClaimable, isClaimableByName } from '../../core/rules/claims/claim.ts'
import { deadLetterPage } from '../../core/rules/messages/dead-letters.ts'
import { matching } from '../../core/rules/find.ts'
import { beatAnswer, extended } from '../../core/rules/claims/heartbeat.ts'
import { cutBy, loadBudgets } from '../../core/rules/claims/load-budget.ts'
import { countKeys, rewriteObjection } from '../../core/rules/claims/readable.ts'
import { holds, type Run } from '../../core/model/run.ts'
import { controlRun } from '../../core/rules/control-run.ts'
import { deliver } from '../../core/rules/messages/deliver.ts'
import { releaseRun, rescuedTogether, rescueRun } from '../../core/rules/claims/rescue.ts'
import { startRun } from '../../core/rules/start.ts'
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
  StoreProjections,
  StoreSecrets,
} from '../../store.ts'
import { checkStore } from './check.ts'
import { MemoryWork, commitAll } from './commit.ts'
import { firstIsolated, nextDue, nextDueIsolated, ReadyTurns } from './tables/queues.ts'
import type { Row } from './tables/row.ts'
import { Tables } from './tables/tables.ts'

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, 'now'>
  /** How much one call may write for others. @default `usualPages` */
  readonly pages?: PageLimits
  /** The key from which the secrets of completion tokens are derived. @default there is none */
  readonly tokenKey?: string
}

export class MemoryStore implements Store, StoreAdmin, StoreProjections, StoreSecrets {
  readonly capabilities: Capabilities = { notifies: true, multiProcess: false, projections: true }
  private readonly clock: Pick<Clock, 'now'>
  private readonly tables: Tables
  private readonly unitOfWork: MemoryWork
  private readonly key: string | null
  private closed = false

  constructor(options: MemoryStoreOptions) {
    this.clock = options.clock
    this.tables = new Tables(options.pages)
    this.unitOfWork = new MemoryWork(this.tables)
    this.key = options.tokenKey ?? null
  }

  async migrate(): Promise<void> {
    this.assertOpen()
  }

  async start(runs: readonly RunStart[]): Promise<readonly Started[]> {
    this.assertOpen()
    const unitOfWork = this.work()
    return runs.map((run) => startRun(unitOfWork, run))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    this.assertOpen()
    const now = this.clock.now()
    if (request.runId !== undefined) return this.claimByName(request, request.runId, now)
    const { isolated = false } = request
    const queues = this.tables.queues.select(request.selectors, isolated ? null : now)
    const limit = this.tables.bounds.sessions.hasEnded(request.session) ? 0 : request.limit
    const runs: Run[] = []
    const over: { readonly row: Row; readonly due: number }[] = []
    const turns = new ReadyTurns(queues, request.selectors)
    const first = (): Row | undefined => (isolated ? firstIsolated(queues, now) : turns.first())
    let row = first()
    for (; row !== undefined; row = first()) {
      if (!isClaimable(row, request, now)) {
        // It is left to the rescue, or to others; meanwhile it must not hide those behind it.
        over.push({ row, due: row.due ?? now })
        this.tables.queues.remove(row, 'idle')
      } else if (runs.length < limit) {
        turns.take(row)
        this.tables.claim(row, request, now)
        runs.push(row.view())
      } else break
    }
    const next = isolated ? nextDueIsolated(queues, now) : nextDue(queues)
    for (const one of over) this.tables.queues.enqueue(one.row, one.due, now, isolated)
    return { runs, more: row !== undefined, nextDue: next, now }
  }

  private claimByName(request: ClaimRequest, runId: string, now: number): Claimed {
    const row = this.tables.rows.get(runId)
    const isOver = request.limit === 0 || this.tables.bounds.sessions.hasEnded(request.session)
    if (row === undefined || isOver || !isClaimableByName(row.view(), request, now)) {
      return { runs: [], more: false, nextDue: null, now }
    }
    this.tables.claim(row, request, now)
    return { runs: [row.view()], more: false, nextDue: null, now }
  }

  async load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]> {
    this.assertOpen()
    const bounds = loadBudgets(mostBytes)
    return requests.map((request) => {
      const row = this.tables.rows.get(request.runId)
      return row === undefined ? { entries: [], messages: [], ...cutBy(bounds) } : row.load(request, bounds)
    })
  }

  /** No async function, unlike all others: a suspended call with every step took 174 bytes of 5,958. */
  commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    try {
      this.assertOpen()
      return Promise.resolve(commitAll(this.work(), transitions))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    this.assertOpen()
    const unitOfWork = this.work()
    const { rows } = this.tables
    return messages.map((message) =>
      deliver(unitOfWork, 'topic' in message ? undefined : rows.get(message.runId), message),
    )
  }

  async beat(request: BeatRequest): Promise<Beat> {
    this.assertOpen()
    const now = this.clock.now()
    const { session, held = [], seeksUnknownLeases = true } = request
    const isAlive = this.tables.bounds.sessions.beat(request, now)
    if (request.end === true) this.tables.bounds.forgetSessions(now)
    const listed = new Set(held.map(({ runId }) => runId))
    const mine = this.tables.bounds.heldBy(session).filter(({ id }) => seeksUnknownLeases || listed.has(id))
    if (isAlive) {
      for (const claim of held) {
        const row = this.tables.rows.get(claim.runId)
        if (row !== undefined && holds(row, { session, token: claim.token }))
          Object.assign(row, extended(row, claim, now))
      }
    }
    return beatAnswer(request, isAlive, mine, now)
  }

  async control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
    this.assertOpen()
    const unitOfWork = this.work()
    return requests.map((request) => controlRun(unitOfWork, unitOfWork.run(request.runId), request))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    this.assertOpen()
    const unitOfWork = this.work()
    const { now } = unitOfWork
    const sessionsEnded = this.tables.bounds.sessions.endExpired(now)
    if (sessionsEnded > 0) this.tables.bounds.forgetSessions(now)
    const lost = this.tables.bounds.toRescue(now)
    const found = lost.slice(0, request.limit)
    const rescued = rescuedTogether(found.map(({ id }) => rescueRun(unitOfWork, unitOfWork.run(id), request)))
    const more = found.length < lost.length
    const suspects = this.tables.queues.nextIsolated()
    return { ...rescued, sessionsEnded, suspects, more, next: this.tables.bounds.next(), now }
  }

  async release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
    this.assertOpen()
    const unitOfWork = this.work()
    for (const lease of leases) releaseRun(unitOfWork, unitOfWork.run(lease.runId), lease)
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
    const topic = this.tables.topics.takeTopic(now)
    if (topic !== undefined) {
      tidyTopic(this.unitOfWork.at(now), topic)
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

  async projections(): Promise<readonly ProjectionRow[]> {
    this.assertOpen()
    return this.tables.projections.all()
  }

  async commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer> {
    this.assertOpen()
    return this.tables.projections.command(command, this.clock.now())
  }

  async feedEnd(): Promise<FeedEnd> {
    this.assertOpen()
    return { position: this.tables.feed.length, isComplete: true }
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

  async deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]> {
    this.assertOpen()
    const rows = [...this.tables.rows.values()]
    const letters = rows.flatMap((row) => row.deadLetters())
    const [runId = '', id = ''] = page.after?.split(/ (.*)/s) ?? []
    return deadLetterPage(letters, filter, page, this.tables.rows.get(runId)?.mailbox?.get(id)?.message)
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

  /** The tables as they are for a call that takes place now. */
  private work(): MemoryWork {
    return this.unitOfWork.at(this.clock.now())
  }

  private assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }
}
