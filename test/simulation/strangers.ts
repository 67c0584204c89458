// Users' own transactions, beside the processes of the simulation: each locks the row of a run for a while. If it is the run that
// is to be claimed next, or that comes due next, claims must find what is behind it, and pause where there is nothing else; that
// is looked at here, after every claim. If a session holds the run, no heartbeat and no rescue may wait for its row; if it waits
// for others, nobody may who only has something for it: that is looked at when the lock ends.

import type { Claimed, ClaimRequest } from '../../src/store.ts'
import type { ReadCommittedStore } from '../read-committed/store.ts'
import type { RunRow } from '../read-committed/database/tables.ts'
import type { Transaction } from '../read-committed/database/transaction.ts'
import type { Violation } from '../../src/testing/invariants/index.ts'
import type { Stranger } from './scenario.ts'
import type { World } from './world.ts'

/** What a claim could find when it began. */
interface Sight {
  readonly ready: ReadonlySet<RunRow>
  readonly calls: number
  /** Nobody else was asking the store for anything. */
  readonly isAlone: boolean
}

/**
 * So many claims of one process may find nothing but what others hold, in so much time. With pauses there are two a second, and
 * one for each hint that something new has come in.
 */
const contended = { most: 25, withinMs: 500 } as const

interface Call {
  readonly method: string
  readonly request: readonly unknown[]
}

/** A row, and who has locked it. */
interface Owned {
  readonly row: RunRow
  readonly owner: unknown
}

export class Strangers {
  private readonly world: World
  private readonly store: ReadCommittedStore
  private readonly now: () => number
  private readonly report: (violation: Violation) => void
  private readonly open = new Set<Transaction>()
  private haveLeft = false
  /** Calls of the store: how many there were, and how many are under way. */
  private calls = 0
  private readonly underWay = new Set<Call>()
  /** When the claims of each session found nothing but what others hold. */
  private readonly emptyHanded = new Map<string, number[]>()

  constructor(
    world: World,
    store: ReadCommittedStore,
    { now, report }: { readonly now: () => number; readonly report: (violation: Violation) => void },
  ) {
    this.world = world
    this.store = store
    this.now = now
    this.report = report
  }

  schedule(strangers: readonly Stranger[]): void {
    for (const { at, row, ms } of strangers) {
      const hold = (): Promise<void> => {
        if (row === 'first' || row === 'next') return this.holdFirst(row, ms)
        return typeof row === 'number' ? this.holdHeld(row, ms) : this.holdWaiting(row.waiting, ms)
      }
      this.world.after(at, null, 'stranger', () => void hold())
    }
  }

  /** They all go home. */
  leave(): void {
    this.haveLeft = true
    for (const tx of this.open) tx.rollBack()
    this.open.clear()
  }

  /** Called around every call of the store. A claim is reported for what it should have found. */
  async around<Answer>(method: string, request: readonly unknown[], call: () => Promise<Answer>): Promise<Answer> {
    this.calls += 1
    const sight: Sight = { ready: this.free(), calls: this.calls, isAlone: this.underWay.size === 0 }
    const made = { method, request }
    this.underWay.add(made)
    try {
      const answer = await call()
      if (method === 'claim') {
        this.judge(sight, request[0] as ClaimRequest, answer as Claimed)
        this.countPauses(request[0] as ClaimRequest, answer as Claimed)
      }
      return answer
    } finally {
      this.underWay.delete(made)
    }
  }

  /** A claim that finds less than it asked for leaves nothing behind that was ready and that nobody had, from first to last. */
  private judge(sight: Sight, request: ClaimRequest, { runs }: Claimed): void {
    const { session, selectors, limit, isolated = false } = request
    const isUndisturbed = sight.isAlone && sight.calls === this.calls
    if (!isUndisturbed || isolated || runs.length === limit || this.open.size === 0 || this.hasEnded(session)) return
    const isWanted = ({ type, version }: RunRow): boolean =>
      selectors.some((one) => one.type === type && one.version === version)
    for (const row of this.free()) {
      if (!sight.ready.has(row) || !isWanted(row)) continue
      const message = `a claim of ${limit} got ${runs.length} while this run was ready, and only another one was locked`
      this.report({ name: 'a_locked_run_waits_alone', runId: row.id, message: message })
    }
  }

  /** A session that found nothing but what others hold does not ask again and again. */
  private countPauses({ session, limit }: ClaimRequest, { runs, more, nextDue, now }: Claimed): void {
    // Where there is work to be found, those who bring it also call for claims.
    if (runs.length > 0) this.emptyHanded.delete(session)
    const isLeft = more || (nextDue !== null && nextDue <= now)
    if (!isLeft || limit === 0 || runs.length > 0) return
    const times = (this.emptyHanded.get(session) ?? []).filter((at) => at > now - contended.withinMs)
    times.push(now)
    this.emptyHanded.set(session, times)
    if (times.length <= contended.most) return
    const message = `session ${session} claimed ${times.length} times in ${contended.withinMs} ms what others hold`
    this.report({ name: 'contended_claims_pause', runId: null, message: message })
  }

  /** Nothing is given to a session that has ended. */
  private hasEnded(session: string): boolean {
    const { db, tables } = this.store.insides
    const reader = db.begin('look')
    const found = reader.select(tables.sessions, { at: ['id', [session]] })
    reader.rollBack()
    return found.some(({ endedAt }) => endedAt !== null)
  }

  /** The first of those that are ready, or of those that come due. */
  private async holdFirst(which: 'first' | 'next', ms: number): Promise<void> {
    const { db, tables } = this.store.insides
    const rows = which === 'first' ? this.ready() : this.timed()
    const first = rows.find(({ owner }) => owner === null)?.row
    if (first === undefined) return
    const tx = db.beginStranger()
    this.open.add(tx)
    await tx.lock(tables.runs, { at: ['id', [first.id]] })
    this.world.after(ms, null, 'stranger leaves', () => {
      if (this.open.delete(tx)) tx.rollBack()
    })
  }

  /** `which` of those that a session holds is a fraction of their number. */
  private async holdHeld(which: number, ms: number): Promise<void> {
    const { db, tables } = this.store.insides
    const held = this.rows().flatMap(({ row }) => (row.session === null ? [] : [row]))
    const run = held[Math.floor(which * held.length)]
    if (run === undefined || this.haveLeft) return
    const letGo = await db.holdRow(tables.runs, run.id)
    this.world.after(ms, null, 'stranger', () => {
      for (const message of this.store.waits()) {
        const isBeat = /^beat\S* .* waits for stranger/.test(message)
        if (isBeat) this.report({ name: 'beats_wait_for_nobody', runId: run.id, message: message })
        const isRescue = /^rescue\S* .* waits for stranger/.test(message)
        if (isRescue) this.report({ name: 'rescues_wait_for_nobody', runId: run.id, message: message })
      }
      letGo()
    })
  }

  /** `which` of those who wait on a run or a topic is a fraction of their number. */
  private async holdWaiting(which: number, ms: number): Promise<void> {
    const { db, tables } = this.store.insides
    const reader = db.begin('look')
    const waiting = [...new Set(reader.select(tables.waits, {}).map(({ runId }) => runId))].toSorted()
    reader.rollBack()
    const runId = waiting[Math.floor(which * waiting.length)]
    if (runId === undefined || this.haveLeft) return
    const letGo = await db.holdRow(tables.runs, runId)
    this.world.after(ms, null, 'stranger', () => {
      for (const message of this.store.waits()) {
        const [, method] = /^(commit|control|release|deliver|rescue|chore)\S* .* waits for stranger/.exec(message) ?? []
        if (method === undefined || this.isAbout(method, runId)) continue
        this.report({ name: 'nobody_waits_to_tell', runId, message: message })
      }
      letGo()
    })
  }

  /** Whether a call of that method that is under way names a run that a stranger may have; a chore does not say what it is. */
  private isAbout(method: string, runId: string): boolean {
    const { db, tables } = this.store.insides
    const reader = db.begin('look')
    const locked = [...tables.runs.all()].flatMap((tuple) => (tuple.owner?.isStranger === true ? tuple.rows() : []))
    const ids = new Set([runId, ...locked.map(({ id }) => id)])
    const targets = reader.select(tables.chores, {}).map(({ target }) => target)
    reader.rollBack()
    if (method === 'chore') return targets.some((target) => ids.has(target))
    const calls = [...this.underWay].filter((call) => call.method === method)
    return calls.some(({ request }) => [...ids].some((id) => JSON.stringify(request).includes(id)))
  }

  /** What anybody could claim at this very moment. */
  private free(): ReadonlySet<RunRow> {
    return new Set(this.ready().flatMap(({ owner, row }) => (owner === null ? [row] : [])))
  }

  private ready(): readonly Owned[] {
    const now = this.now()
    const isOver = (at: number | null): boolean => at !== null && at <= now
    return this.rows()
      .filter(({ row }) => row.readiness === 'ready' && !isOver(row.timeoutAt) && !isOver(row.expiresAt))
      .sort((a, b) => b.row.priority - a.row.priority || (a.row.due ?? 0) - (b.row.due ?? 0))
  }

  private timed(): readonly Owned[] {
    return this.rows()
      .filter(({ row }) => row.readiness === 'timed')
      .sort((a, b) => (a.row.due ?? 0) - (b.row.due ?? 0))
  }

  private rows(): readonly Owned[] {
    const { db, tables } = this.store.insides
    const reader = db.begin('look')
    const found: Owned[] = []
    for (const tuple of tables.runs.all()) {
      const row = tuple.newestFor(reader)
      if (row !== undefined && row !== null) found.push({ row, owner: tuple.owner })
    }
    reader.rollBack()
    return found
  }
}
