// The memory store: the reference of what a store does, and the oracle of the property tests. Every method takes effect
// in one synchronous step, so whatever it does is atomic; it keeps nothing when the process ends.

import { HoldfastError } from '../../core/error.ts'
import { conclude } from '../../core/exchange.ts'
import type { Fate } from '../../core/message.ts'
import type { Clock } from '../../core/ports.ts'
import { holds, type Lease, type Run, type Wish } from '../../core/run.ts'
import type { Rewrite } from '../../core/rewrite.ts'
import { steer } from '../../core/steering.ts'
import { giveBack, takeOver, timeOut } from '../../core/takeover.ts'
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
} from '../../store.ts'
import { MemoryBooks } from './books.ts'
import { isOver } from './bounds.ts'
import { checkStore } from './checking.ts'
import { commitOne } from './committing.ts'
import { deadLetters } from './dead-letters.ts'
import { deliverOne } from './delivering.ts'
import { matching } from './finding.ts'
import { firstReady, nextDue } from './queues.ts'
import type { Row } from './row.ts'
import { startOne } from './starting.ts'
import { Tables } from './tables.ts'

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, 'now'>
}

export class MemoryStore implements Store, StoreAdmin {
  readonly capabilities: Capabilities = { notifies: true, multiProcess: false }
  private readonly clock: Pick<Clock, 'now'>
  private readonly tables = new Tables()
  private closed = false

  constructor(options: MemoryStoreOptions) {
    this.clock = options.clock
  }

  async migrate(): Promise<void> {
    this.assertOpen()
  }

  async start(runs: readonly NewRun[]): Promise<readonly Started[]> {
    this.assertOpen()
    const now = this.clock.now()
    return runs.map((run) => startOne(this.tables, run, now))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    this.assertOpen()
    const now = this.clock.now()
    const queues = this.tables.queues.select(request.selectors, now)
    const limit = this.tables.bounds.sessions.hasEnded(request.session) ? 0 : request.limit
    const runs: Run[] = []
    const over: { readonly row: Row; readonly due: number }[] = []
    let row = firstReady(queues)
    for (; row !== undefined; row = firstReady(queues)) {
      if (isOver(row, now)) {
        // It is left to the rescue; meanwhile it must not hide those behind it.
        over.push({ row, due: row.due ?? now })
        this.tables.queues.remove(row, 'idle')
      } else if (runs.length < limit) {
        this.tables.lease(row, { session: request.session, token: row.token + 1 }, leaseMsOf(row, request), now)
        row.crashes += 1
        runs.push(row.view())
      } else break
    }
    for (const one of over) this.tables.queues.enqueue(one.row, one.due, now)
    return { runs, more: row !== undefined, nextDue: nextDue(queues), now }
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    this.assertOpen()
    return requests.map((request) => {
      const row = this.tables.rows.get(request.runId)
      return row === undefined ? { entries: [], messages: [] } : row.load(request)
    })
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.assertOpen()
    const now = this.clock.now()
    return transitions.map((transition) => commitOne(this.tables, transition, now))
  }

  async deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]> {
    this.assertOpen()
    const now = this.clock.now()
    return messages.map((message) => deliverOne(this.tables, message, now))
  }

  async beat(request: BeatRequest): Promise<Beat> {
    this.assertOpen()
    const now = this.clock.now()
    const { session, held = [] } = request
    const alive = this.tables.bounds.sessions.beat(request, now)
    const lost: string[] = []
    const mail: Beat['mail'][number][] = []
    for (const { runId, token, extendMs, inbox } of held) {
      const row = this.tables.rows.get(runId)
      if (!alive || row === undefined || !holds(row, { session, token })) lost.push(runId)
      else {
        if (extendMs !== null) row.deadline = now + extendMs
        if (inbox !== undefined && row.inbox > inbox) mail.push({ runId, inbox: row.inbox })
      }
    }
    const wished = this.tables.bounds.wished(session).map((row) => ({ runId: row.id, wish: { ...(row.wish as Wish) } }))
    const timedOut = this.tables.bounds.timedOut(session, now).map(({ id }) => id)
    const strays = this.tables.bounds.strays(session, new Set(held.map(({ runId }) => runId)))
    return { alive, lost, strays, wished, mail, timedOut, now }
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    this.assertOpen()
    const now = this.clock.now()
    return requests.map((request) => this.steerOne(request, now))
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
    for (const row of found) {
      const run = row.view()
      // The end of another one of them may have cancelled it: that has no bound on its time.
      if (run.session === null && run.status === 'cancelling') continue
      const { id: runId, type, session } = run
      const taken = session === null ? timeOut(run, request, now) : takeOver(run, request, now)
      this.rewrite(row, taken, null, now)
      const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
      if (reason !== null) ended.push({ runId, type, reason })
      else if (session !== null) takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
    }
    const more = found.length < orphans.length + over.length
    return { sessionsEnded, takenOver, ended, more, next: this.tables.bounds.next(), now }
  }

  async release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void> {
    this.assertOpen()
    const now = this.clock.now()
    for (const lease of leases) {
      const row = this.tables.rows.get(lease.runId)
      if (row !== undefined && holds(row, lease)) this.rewrite(row, giveBack(row.view(), now), null, now)
    }
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

  async check(): Promise<readonly Checked[]> {
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

  private steerOne(request: SteerRequest, now: number): Steered {
    const { rows, keys } = this.tables
    const row = rows.get(request.runId)
    if (row === undefined) return { outcome: 'not-found' }
    const run = row.view()
    if (row.entries.some(({ transition }) => transition === request.id)) return { outcome: 'done', run }
    const keyHolder = request.kind === 'retry' ? (keys.holder(run)?.id ?? null) : null
    const { answer, write } = steer(run, request, now, keyHolder)
    if (write !== null) this.rewrite(row, write, request.id, now)
    return answer
  }

  /** Makes the row what it shall be; if it has ended with that, those who watch it are told. */
  private rewrite(row: Row, write: Rewrite, transition: string | null, now: number): void {
    if (this.tables.rewrite(row, write, transition, now)) conclude(new MemoryBooks(this.tables, now), row.view())
  }

  private assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }
}

function leaseMsOf({ type, version }: Row, { selectors }: ClaimRequest): number | null {
  return selectors.find((one) => one.type === type && one.version === version)?.leaseMs ?? null
}
