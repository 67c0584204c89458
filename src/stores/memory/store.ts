// The memory store: the reference of what a store does, and the oracle of the property tests. Every method takes effect
// in one synchronous step, so whatever it does is atomic; it keeps nothing when the process ends.

import type { Draft, Entry } from '../../core/entry.ts'
import { bug, HoldfastError } from '../../core/error.ts'
import type { Clock } from '../../core/ports.ts'
import { holds, isTerminal, type Lease, type Run } from '../../core/run.ts'
import { assertLegal, dueAt, isParkedBy, type Transition } from '../../core/transition.ts'
import type {
  Beat,
  BeatRequest,
  Capabilities,
  Change,
  Claimed,
  ClaimRequest,
  Committed,
  Delivered,
  Hint,
  Loaded,
  LoadRequest,
  NewMessage,
  NewRun,
  RescueFailure,
  Rescued,
  RescueRequest,
  RunFilter,
  Started,
  Store,
  StoreAdmin,
  TakenOver,
} from '../../store.ts'
import { Bounds, isOver } from './bounds.ts'
import { Feed } from './feed.ts'
import { firstReady, nextDue, Queues } from './queues.ts'
import { Row } from './row.ts'

export interface MemoryStoreOptions {
  readonly clock: Pick<Clock, 'now'>
}

export class MemoryStore implements Store, StoreAdmin {
  readonly capabilities: Capabilities = { notifies: true, multiProcess: false }
  private readonly clock: Pick<Clock, 'now'>
  private readonly rows = new Map<string, Row>()
  private readonly queues = new Queues()
  private readonly feed = new Feed()
  private readonly bounds = new Bounds()
  private readonly listeners = new Set<(hint: Hint) => void>()
  private untold: Hint[] = []
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
    return runs.map((run) => this.startOne(run, now))
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    this.assertOpen()
    const now = this.clock.now()
    const queues = this.queues.select(request.selectors, now)
    const limit = this.bounds.sessions.hasEnded(request.session) ? 0 : request.limit
    const runs: Run[] = []
    const over: { readonly row: Row; readonly due: number }[] = []
    let row = firstReady(queues)
    for (; row !== undefined; row = firstReady(queues)) {
      if (isOver(row, now)) {
        // It is left to the rescue; meanwhile it must not hide those behind it.
        over.push({ row, due: row.due ?? now })
        this.queues.remove(row, 'idle')
      } else if (runs.length < limit) {
        this.lease(row, { session: request.session, token: row.token + 1 }, leaseMsOf(row, request), now)
        row.crashes += 1
        runs.push(row.view())
      } else break
    }
    for (const one of over) this.queues.enqueue(one.row, one.due, now)
    return { runs, more: row !== undefined, nextDue: nextDue(queues), now }
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    this.assertOpen()
    return requests.map(({ runId, after, limit }) => {
      const row = this.rows.get(runId)
      return row === undefined
        ? { entries: [], messages: [] }
        : { entries: row.page(after, limit), messages: row.messages() }
    })
  }

  async commit(transitions: readonly Transition[]): Promise<readonly Committed[]> {
    this.assertOpen()
    const now = this.clock.now()
    return transitions.map((transition) => this.commitOne(transition, now))
  }

  async deliver(messages: readonly NewMessage[]): Promise<readonly Delivered[]> {
    this.assertOpen()
    const now = this.clock.now()
    return messages.map((message) => this.deliverOne(message, now))
  }

  async beat(request: BeatRequest): Promise<Beat> {
    this.assertOpen()
    const now = this.clock.now()
    const { session } = request
    const alive = this.bounds.sessions.beat(request, now)
    const lost: string[] = []
    for (const { runId, token, ms } of request.extend ?? []) {
      const row = this.rows.get(runId)
      if (alive && row !== undefined && holds(row, { session, token })) row.deadline = now + ms
      else lost.push(runId)
    }
    const timedOut = this.bounds.timedOut(session, now).map(({ id }) => id)
    return { alive, lost, timedOut, now }
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    this.assertOpen()
    const now = this.clock.now()
    const sessionsEnded = this.bounds.sessions.endExpired(now)
    const orphans = this.bounds.orphans(now)
    const over = this.bounds.over(now)
    const found = [...orphans, ...over].slice(0, request.limit)
    const takenOver: TakenOver[] = []
    const failed: { runId: string; type: string; reason: RescueFailure }[] = []
    for (const row of found) {
      const reason = this.takeOver(row, request, takenOver, now)
      if (reason === null) continue
      this.fail(row, request.failures[reason], now)
      failed.push({ runId: row.id, type: row.type, reason })
    }
    const more = found.length < orphans.length + over.length
    return { sessionsEnded, takenOver, failed, more, next: this.bounds.next(), now }
  }

  async release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void> {
    this.assertOpen()
    const now = this.clock.now()
    for (const lease of leases) {
      const row = this.rows.get(lease.runId)
      if (row === undefined || row.status !== 'running' || !holds(row, lease)) continue
      row.status = 'pending'
      this.letGo(row)
      row.crashes = Math.max(row.crashes - 1, 0)
      this.schedule(row, now, now)
    }
  }

  async get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]> {
    this.assertOpen()
    return runIds.map((id) => this.rows.get(id)?.view())
  }

  async changes(after: number, limit: number): Promise<readonly Change[]> {
    this.assertOpen()
    return this.feed.read(after, limit)
  }

  async find(filter: RunFilter): Promise<readonly Run[]> {
    this.assertOpen()
    return [...this.rows.values()]
      .filter((row) => filter.type === undefined || row.type === filter.type)
      .filter((row) => filter.status === undefined || row.status === filter.status)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, filter.limit)
      .map((row) => row.view())
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.assertOpen()
    this.listeners.add(onHint)
    return () => this.listeners.delete(onHint)
  }

  async close(): Promise<void> {
    this.closed = true
    this.listeners.clear()
  }

  private startOne(run: NewRun, now: number): Started {
    const existing = this.rows.get(run.id)
    if (existing !== undefined) {
      // Our own insert whose answer was lost carries our transition id; any other run of that id is somebody else's.
      return { created: existing.entries[0]?.transition === run.transition, run: existing.view() }
    }
    const row = new Row(run, now)
    this.rows.set(run.id, row)
    this.append(row, run.transition, [run.first], now)
    this.bounds.note(row)
    if (run.lease !== null && !this.bounds.sessions.hasEnded(run.lease.session))
      this.lease(row, run.lease, run.leaseMs, now)
    else this.schedule(row, dueAt(run.due, now) ?? now, now)
    return { created: true, run: row.view() }
  }

  private commitOne(transition: Transition, now: number): Committed {
    const row = this.rows.get(transition.runId)
    if (row === undefined) return { outcome: 'refused', reason: 'not-found' }
    const { seq, lease } = transition.guard
    if (row.entries[seq]?.transition === transition.id) return this.repeated(row, transition)
    if (!holds(row, lease)) {
      return isParkedBy(row, transition)
        ? { outcome: 'committed', seq, at: row.updatedAt, inbox: row.inbox, released: true }
        : { outcome: 'refused', reason: 'lease-lost' }
    }
    if (row.seq !== seq) return { outcome: 'refused', reason: 'stale' }
    assertLegal(row.status, transition)

    this.append(row, transition.id, transition.append, now)
    row.crashes = 0
    const released = transition.status !== null && (transition.parkIf === null || transition.parkIf.inbox === row.inbox)
    if (released) this.leave(row, transition, now)
    return { outcome: 'committed', seq: row.seq, at: now, inbox: row.inbox, released }
  }

  /** The answer to a transition that was committed before, when its first answer was lost. */
  private repeated(row: Row, transition: Transition): Committed {
    const last = row.entries[transition.guard.seq + transition.append.length - 1]
    if (last === undefined) throw bug('A transition was committed in part', { runId: row.id })
    const released = transition.status !== null && !holds(row, transition.guard.lease)
    return { outcome: 'committed', seq: last.seq, at: last.at, inbox: row.inbox, released }
  }

  /** Ends the lease and leads the run to the status that the transition asks for. */
  private leave(row: Row, transition: Transition, now: number): void {
    row.status = transition.status ?? row.status
    this.letGo(row)
    if (isTerminal(row.status)) return this.end(row, now)
    const due = dueAt(transition.due, now)
    if (row.status === 'pending') this.schedule(row, due ?? now, now)
    else if (row.status === 'waiting' && due !== null) this.schedule(row, due, now)
    else this.queues.remove(row, 'idle')
  }

  private deliverOne(message: NewMessage, now: number): Delivered {
    const row = this.rows.get(message.runId)
    if (row === undefined) return { outcome: 'target-not-found' }
    const known = row.mailbox?.get(message.id)
    if (known !== undefined) return { ...known.answer }
    if (isTerminal(row.status)) return { outcome: 'target-terminated', status: row.status }
    const { id, runId, name, data } = message
    row.inbox += 1
    row.mailbox ??= new Map()
    const answer: Delivered = { outcome: row.status === 'waiting' ? 'delivered' : 'queued' }
    row.mailbox.set(id, { message: { id, runId, name, data, position: row.inbox, at: now }, answer })
    // A run that is due already keeps its place: whoever is written to often must not be claimed last.
    if (row.status === 'waiting') this.schedule(row, Math.min(row.due ?? now, now), now)
    return { ...answer }
  }

  /** Takes a run from its holder. Answers why it must fail instead, or null when it is pending again. */
  private takeOver(row: Row, request: RescueRequest, taken: TakenOver[], now: number): RescueFailure | null {
    const { session } = row
    if (session === null) return row.timeoutAt !== null && row.timeoutAt <= now ? 'timed-out' : 'expired'
    // A holder that committed something and then died has crashed once, too.
    const crashes = Math.max(row.crashes, 1)
    this.letGo(row)
    row.status = 'pending'
    row.crashes = crashes
    this.append(row, null, [{ kind: 'crashed', name: null, meta: { session, crashes }, data: null }], now)
    if (crashes >= request.maxCrashes) return 'crashed'
    if (isOver(row, now)) return 'timed-out'
    this.schedule(row, now, now)
    taken.push({ runId: row.id, type: row.type, session, crashes })
    return null
  }

  private fail(row: Row, data: string, now: number): void {
    this.append(row, null, [{ kind: 'failed', name: null, meta: null, data }], now)
    row.status = 'failed'
    this.end(row, now)
  }

  private end(row: Row, now: number): void {
    row.endedAt = now
    row.expiresAt = null
    this.bounds.note(row)
    this.queues.remove(row, 'idle')
    this.hint({ kind: 'ended', runId: row.id })
  }

  private append(row: Row, transition: string | null, drafts: readonly Draft[], now: number): void {
    let first = transition
    for (const draft of drafts) {
      const entry = {
        kind: draft.kind,
        name: draft.name,
        meta: draft.meta,
        data: draft.data,
        seq: row.entries.length + 1,
        at: now,
        transition: first,
      } as Entry
      row.entries.push(entry)
      this.feed.add(row)
      first = null
    }
    row.updatedAt = now
  }

  private lease(row: Row, lease: Lease, leaseMs: number | null, now: number): void {
    row.status = 'running'
    row.session = lease.session
    row.token = lease.token
    row.deadline = leaseMs === null ? null : now + leaseMs
    row.expiresAt = null
    this.bounds.note(row)
    this.queues.remove(row, 'leased')
  }

  private letGo(row: Row): void {
    row.session = null
    row.deadline = null
    this.bounds.note(row)
  }

  private schedule(row: Row, due: number, now: number): void {
    this.queues.enqueue(row, due, now)
    this.hint({ kind: 'ready', type: row.type })
  }

  /** Tells listeners once the present call has its answer, so that nothing that they do or throw gets into it. */
  private hint(hint: Hint): void {
    if (this.listeners.size === 0) return
    if (this.untold.push(hint) === 1) void Promise.resolve().then(this.tell)
  }

  private readonly tell = (): void => {
    const hints = this.untold
    this.untold = []
    for (const hint of hints) for (const listener of this.listeners) listener(hint)
  }

  private assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }
}

function leaseMsOf({ type, version }: Row, { selectors }: ClaimRequest): number | null {
  return selectors.find((one) => one.type === type && one.version === version)?.leaseMs ?? null
}
