// Looks at the store after every call: what every state of a run must be, what every step from one state to the next may
// be, and whether the answers of the call fit to both. It reads past the store port, so that what stands in between cannot
// deceive it. A read-committed store is looked at after every commit instead: there, a call is not one step.

import type { Entry } from '../../src/core/model/entry.ts'
import { isHoldfastError } from '../../src/core/errors/error.ts'
import type { Message } from '../../src/core/model/message.ts'
import { isTerminal, mayMove, type Run } from '../../src/core/model/run.ts'
import { matching } from '../../src/core/rules/find.ts'
import type { BeatRequest, Change, ClaimRequest, RunFilter, Store } from '../../src/store.ts'
import { MemoryStore } from '../../src/stores/memory/store.ts'
import type { ReadCommittedStore } from '../read-committed/store.ts'
import type { TakenMessage } from '../../src/core/invariants/invariant.ts'
import {
  checkAll,
  checkFeed,
  checkExchange,
  checkRun,
  checkStep,
  type Cause,
  type RunState,
} from '../../src/testing/invariants/index.ts'
import { Answers } from './answers.ts'
import { callerOf, choresIn } from './callers.ts'
import { isOfInstances } from './instance-journal.ts'
import { Commits, type Lying } from './commits.ts'
import type { Chore } from '../../src/core/model/chore.ts'
import type { Topics } from '../../src/stores/memory/tables/topics.ts'
import type { Facts } from './effects.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'
import { GivenPositions } from './given-positions.ts'
import { isRewritten, isSame, numberIn, waitsForOthers } from './seen-run.ts'

export interface Known extends RunState {
  /** The numbers of the results that are recorded. */
  readonly numbers: ReadonlySet<number>
}

interface Kept extends Known {
  run: Run
  readonly entries: Entry[]
  messages: readonly Message[]
  taken: readonly TakenMessage[]
  readonly numbers: Set<number>
}

interface Insides {
  readonly tables: { readonly rows: ReadonlyMap<string, Lying>; readonly topics: Topics }
}

interface Session {
  readonly until: number
  readonly isOver: boolean
}

export class Checker implements Facts {
  readonly violations: Violation[] = []
  readonly runs = new Map<string, Kept>()
  /** How commits are seen one by one; null if every call is one step. */
  private readonly commits: Commits | null
  private readonly rows: ReadonlyMap<string, Lying>
  /** What lies between runs; null if that is not seen. */
  private readonly topics: Topics | null
  private readonly sessions = new Map<string, Session>()
  private readonly answers: Answers
  private readonly positions = new GivenPositions()
  private readonly storeClock: () => number
  private readonly chores: () => readonly Chore[]

  constructor(store: MemoryStore | ReadCommittedStore, storeNow: () => number) {
    const isSerial = store instanceof MemoryStore
    this.commits = isSerial ? null : new Commits(store)
    this.rows = isSerial ? (store as unknown as Insides).tables.rows : new Map()
    this.topics = isSerial ? (store as unknown as Insides).tables.topics : null
    this.answers = new Answers(this.runs, (name, run, message) => this.fail(name, run, message), isSerial)
    this.storeClock = storeNow
    const { topics } = this
    this.chores = () => (topics === null ? choresIn(store as ReadCommittedStore) : topics.allChores())
  }

  /** What ends and broadcasts have left to do, and nobody has done. */
  get choresLeft(): readonly Chore[] {
    return this.chores()
  }

  get storeNow(): number {
    return this.storeClock()
  }

  run(id: string): Kept | undefined {
    return this.runs.get(id)
  }

  /** The runs that a query finds, as the store has them now. */
  find(filter: RunFilter): readonly Run[] {
    this.catchUp()
    return matching(
      [...this.runs.values()].map(({ run }) => run),
      filter,
    )
  }

  readonly report = (violation: Violation): void => {
    if (this.violations.length < 20) this.violations.push(violation)
  }

  /** A request has reached the store. */
  sent(method: keyof Store, request: readonly unknown[]): void {
    this.commits?.sent(method, request)
  }

  /** The store goes on with a statement. */
  executes(statement: string): void {
    this.commits?.executes(statement)
  }

  /** Looks at what was committed, if something was; true if so. */
  catchUp(): boolean {
    const { commits } = this
    const method = commits?.committed() ?? null
    if (commits === null || method === null) return false
    const now = this.storeNow
    for (const row of commits.changed()) this.look(row, method, [], now)
    this.checkKeys()
    return true
  }

  /** The store has done what was asked. */
  after(method: keyof Store, request: readonly unknown[], answer: unknown): void {
    if (method === 'load' || method === 'get' || method === 'migrate' || method === 'changes') return
    if (this.commits !== null) {
      this.catchUp()
      return this.answers.after(method, request, answer)
    }
    const now = this.storeNow
    this.answers.before(method, request)
    if (method === 'beat') this.beat(request[0] as BeatRequest, now)
    for (const row of this.rows.values()) this.look(row, method, request, now)
    this.checkKeys()
    if (method === 'deliver' || method === 'commit' || method === 'doChores') this.checkBetween(method)
    this.answers.after(method, request, answer)
  }

  /** The store has thrown. */
  threw(method: keyof Store, error: unknown): void {
    if (isHoldfastError(error) && error.code !== 'BUG') return
    this.report({ name: 'store_never_breaks', runId: null, message: `${method} threw ${String(error)}` })
  }

  private beat({ session, leaseMs, end }: BeatRequest, now: number): void {
    const known = this.sessions.get(session)
    if (known?.isOver === true) return
    this.sessions.set(session, { until: now + leaseMs, isOver: end === true })
  }

  private look(row: Lying, method: keyof Store, request: readonly unknown[], now: number): void {
    const kept = this.runs.get(row.id)
    const run = row.view()
    if (kept === undefined) {
      const fresh: Kept = { run, entries: [], messages: [], taken: [], numbers: new Set() }
      this.runs.set(row.id, fresh)
      this.adopt(fresh, row, now)
      this.checkState(run, fresh.entries)
      this.checkInvariants(null, fresh, method, request, now)
      return
    }
    const before = kept.run
    if (isSame(before, run) && kept.entries.length === row.entries.length && !isRewritten(kept, row)) {
      // A chore settles what a run has left unread, and changes nothing else of it.
      if (method === 'doChores' && kept.messages.length > 0) {
        kept.messages = row.messages()
        kept.taken = row.taken()
      }
      return
    }
    const seqBefore = kept.entries.length
    const { messages, taken } = kept
    const stateBefore: RunState = { run: before, entries: kept.entries.slice(), messages, taken }
    if (isRewritten(kept, row)) this.fail('history_append_only', run, 'an entry was replaced or taken away')
    this.adopt(kept, row, now)
    this.checkState(run, kept.entries)
    this.checkMove(before, run, kept.entries.slice(seqBefore), method, request, now)
    this.checkInvariants(stateBefore, kept, method, request, now)
  }

  /** What the engine itself promises of every state and every step. */
  private checkInvariants(
    before: RunState | null,
    after: Kept,
    method: keyof Store,
    [request]: readonly unknown[],
    now: number,
  ): void {
    const isAlive = (session: string): boolean => {
      if (this.commits !== null) return this.commits.isAlive(session)
      const known = this.sessions.get(session)
      return known !== undefined && !known.isOver && known.until > now
    }
    for (const violation of checkRun(after, now)) this.report(violation)
    const { commits } = this
    if (commits === null) {
      const cause: Cause = { method, now, isAlive, ...callerOf(method, request, after.run.id, before?.run) }
      for (const violation of checkStep(before, after, cause)) this.report(violation)
      return
    }
    const cause: Cause = { method, now, isAlive, ...commits.callerOf(method, before, after) }
    for (const violation of checkStep(before, after, cause)) {
      // A transaction judges time when it looks, and commits later.
      if (violation.name !== 'claim_in_time') this.report(violation)
    }
    const lost = before === null || method !== 'commit' ? null : commits.lostWakeUp(before, after)
    if (lost !== null) this.report(lost)
  }

  private checkBetween(method: keyof Store): void {
    if (this.topics === null) return
    const { topics } = this
    const between = { waits: topics.allWaits(), broadcasts: topics.allBroadcasts(), chores: topics.allChores() }
    for (const violation of this.positions.check(between.broadcasts, method === 'doChores')) this.report(violation)
    for (const violation of checkExchange(between, [...this.runs.values()], this.storeNow)) this.report(violation)
  }

  /** All runs together. */
  checkFleet(): void {
    for (const violation of checkAll([...this.runs.values()], this.storeNow)) this.report(violation)
  }

  /** A projection has seen every entry of those that ask for that, once and in order, and nothing of the others. */
  checkFeed(changes: readonly Change[]): void {
    for (const violation of checkFeed(changes, [...this.runs.values()])) this.report(violation)
  }

  private adopt(kept: Kept, row: Lying, now: number): void {
    kept.run = row.view()
    kept.messages = row.messages()
    kept.taken = row.taken()
    for (let index = kept.entries.length; index < row.entries.length; index += 1) {
      const entry = row.entries[index] as Entry
      if (entry.seq !== index + 1) this.fail('history_gapless', kept.run, `entry ${index + 1} says it is ${entry.seq}`)
      const isNow = this.commits === null ? entry.at === now : entry.at <= now
      if (!isNow) this.fail('entry_time_is_store_time', kept.run, `${entry.kind} at ${entry.at}, now ${now}`)
      kept.entries.push(Object.freeze(entry))
      if (entry.kind === 'step-succeeded') kept.numbers.add(numberIn(entry.data))
      if (entry.kind === 'woken') this.checkWoken(kept, entry, entry.at)
    }
  }

  private checkWoken({ run, entries }: Kept, woken: Extract<Entry, { kind: 'woken' }>, now: number): void {
    const since = entries.slice(
      Math.max(
        0,
        entries.findLastIndex(({ kind }) => kind === 'continued'),
      ),
    )
    const waiting = since.find((entry) => entry.kind === 'waiting' && entry.name === woken.name)
    if (waiting?.kind !== 'waiting') return this.fail('woken_after_waiting', run, `${woken.name} was never waited for`)
    for (const condition of waiting.meta.conditions) {
      if (condition.tag !== woken.meta.winner) continue
      const due =
        condition.kind === 'delay' ? waiting.at + condition.ms : condition.kind === 'time' ? condition.at : now
      if (now < due) this.fail('timer_never_early', run, `${woken.name} was over ${due - now} ms early`)
    }
  }

  private checkState(run: Run, entries: readonly Entry[]): void {
    const { status, session, readiness, due, endedAt, seq, base } = run
    const last = entries.at(-1)
    const isLeased = session !== null
    if (seq !== entries.length || base < 1 || base > seq) this.fail('row_fits_journal', run, `seq ${seq}, base ${base}`)
    if (isLeased !== (readiness === 'leased'))
      this.fail('status_fields_match', run, `session ${session} but ${readiness}`)
    if (isLeased && status !== 'running' && status !== 'cancelling') this.fail('status_fields_match', run, 'leased')
    if (status === 'running' && !isLeased) this.fail('status_fields_match', run, 'running without a holder')
    if (isLeased && due !== null) this.fail('status_fields_match', run, 'leased and due')
    if (isTerminal(status) !== (endedAt !== null)) this.fail('status_fields_match', run, `ended at ${endedAt}`)
    if (isTerminal(status) && last?.kind !== status)
      this.fail('terminal_has_entry', run, `its last entry is ${last?.kind}`)
    if (status === 'pending' && due === null && run.deletedAt === null)
      this.fail('no_orphan', run, 'pending and never due')
    const isAsleep = status === 'waiting' && due === null && run.deletedAt === null
    if (isAsleep && !isOfInstances(run.type) && !waitsForOthers(entries.slice(base - 1))) {
      this.fail('no_orphan', run, 'waits for nothing')
    }
    if (status === 'paused' && last?.kind === 'paused' && last.meta.reason === 'drift') {
      this.fail('no_drift', run, last.meta.message)
    }
    if (run.deletedAt === null && status === 'waiting' && entries.at(-1)?.kind === 'started') {
      this.fail('status_fields_match', run, 'waits before it began')
    }
  }

  private checkMove(
    before: Run,
    after: Run,
    appended: readonly Entry[],
    method: keyof Store,
    request: readonly unknown[],
    now: number,
  ): void {
    if (before.status !== after.status && !mayMove(before.status, after.status)) {
      this.fail('status_machine', after, `${before.status} → ${after.status} by ${method}`)
    }
    if (isTerminal(before.status)) this.checkTerminal(before, after, appended, method)
    this.checkToken(before, after, method)
    if (after.session !== null && after.session !== before.session) this.checkLeased(before, after, request, now)
    if (before.session !== null && before.session !== after.session) this.checkUnleased(before, after, method, now)
    const moved = after.base === before.base ? null : appended.find(({ seq }) => seq === after.base)
    const isMove = moved === null || moved?.kind === 'snapshot' || appended.at(-1)?.kind === 'continued'
    if (!isMove) this.fail('base_moves_on', after, method)
    const isKept = before.session === after.session && before.session !== null && method !== 'control'
    if (isKept && before.controlRequest !== null && after.controlRequest === null)
      this.fail('control_request_is_kept', after, `gone with ${method}`)
    if (after.inbox < before.inbox) this.fail('inbox_only_grows', after, method)
    if (before.undo === 'due' && after.undo !== 'due') this.fail('undo_only_grows', after, method)
    if (before.status === 'cancelling' && !isTerminal(after.status) && after.status !== 'cancelling') {
      this.fail('no_way_back_from_cancelling', after, `${after.status} by ${method}`)
    }
    if (after.crashes < before.crashes && method === 'rescue' && after.undo !== 'due')
      this.fail('crashes_count', after, method)
  }

  private checkTerminal(before: Run, after: Run, appended: readonly Entry[], method: keyof Store): void {
    if (before.status === 'failed' && appended.at(-1)?.kind === 'retried' && method === 'control') return
    if (before.status !== after.status || appended.length > 0 || before.session !== after.session) {
      const kinds = appended.map(({ kind }) => kind).join(', ')
      this.fail('terminal_is_final', after, `was ${before.status}; ${method} made it ${after.status} (${kinds})`)
    }
  }

  private checkToken(before: Run, after: Run, method: keyof Store): void {
    if (after.token === before.token) {
      if (after.session !== null && after.session !== before.session) this.fail('token_grows_on_claim', after, method)
      return
    }
    const mayGrow = method === 'claim' || (method !== 'commit' && after.status === 'cancelled')
    if (after.token !== before.token + 1 || !mayGrow) {
      this.fail('token_grows_on_claim', after, `${before.token} → ${after.token} by ${method}`)
    }
  }

  private checkLeased(before: Run, after: Run, [request]: readonly unknown[], now: number): void {
    const isSerial = this.commits === null
    const session = isSerial ? (request as ClaimRequest).session : (after.session ?? '')
    if (before.session !== null) this.fail('lease_not_stolen', after, `${before.session} held it`)
    if (before.due === null || before.due > now)
      this.fail('claim_never_early', after, `due ${before.due}, claimed ${now}`)
    if (before.deletedAt !== null) this.fail('deleted_is_never_leased', after, session)
    if (isSerial && this.sessions.get(session)?.isOver === true) this.fail('dead_session_gets_nothing', after, session)
    const counted = before.readiness === 'isolated' ? 0 : 1
    if (after.crashes !== before.crashes + counted) {
      this.fail('crashes_count', after, `${before.crashes} → ${after.crashes}`)
    }
    if (isSerial && before.timeoutAt !== null && before.timeoutAt <= now && before.status !== 'cancelling') {
      this.fail('over_is_never_leased', after, `its time was over at ${before.timeoutAt}`)
    }
  }

  /** A lease ends by its holder, by a give-back, by a cancellation at once, or because its time is over in store time. */
  private checkUnleased(before: Run, after: Run, method: keyof Store, now: number): void {
    if (method === 'commit' || method === 'release') return
    if (method === 'control' && after.status === 'cancelled') return
    const session = this.sessions.get(before.session ?? '')
    const isDead = session === undefined || session.isOver || session.until <= now
    const isLate = before.deadline !== null && before.deadline <= now
    // At READ COMMITTED sessions are asked what they are, and not when they were heard of: the invariants do that.
    if (method === 'rescue' && (isDead || isLate || this.commits !== null)) return
    this.fail(
      'lease_not_stolen',
      after,
      `${method} took it from ${before.session}, which lives until ${session?.until}`,
    )
  }

  private checkKeys(): void {
    const [keys, idempotencyKeys] = [new Map<string, string>(), new Map<string, string>()]
    for (const { run } of this.runs.values()) {
      const { id, type, key, keyScope, idempotencyKey, status, deletedAt, version } = run
      if (deletedAt !== null) continue
      if (key !== null && !isTerminal(status)) {
        const scope = keyScope === 'global' ? '' : keyScope === 'version' ? `${type} ${version}` : type
        const place = keyScope === 'none' ? id : `${scope} ${key}`
        const other = keys.get(place)
        if (other !== undefined) this.fail('one_key_one_live_run', run, `${other} has the key ${key}, too`)
        keys.set(place, id)
      }
      if (idempotencyKey === null) continue
      const other = idempotencyKeys.get(`${type} ${idempotencyKey}`)
      if (other !== undefined) this.fail('one_idempotency_key_one_run', run, `${other} has ${idempotencyKey}, too`)
      idempotencyKeys.set(`${type} ${idempotencyKey}`, id)
    }
  }

  private fail(name: string, run: Pick<Run, 'id' | 'status'>, message: string): void {
    this.report({ name, runId: run.id, message: `${message} (${run.status})` })
  }
}
