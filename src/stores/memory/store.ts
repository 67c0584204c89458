// The memory store: the reference of what a store does, and the oracle of the property tests. Every method takes effect
// in one synchronous step, so whatever it does is atomic; it keeps nothing when the process ends.

import type { Draft, Entry } from '../../core/entry.ts'
import { bug, HoldfastError } from '../../core/error.ts'
import type { Clock } from '../../core/ports.ts'
import { holds, isTerminal, type Lease, type Run, type Wish } from '../../core/run.ts'
import type { Rewrite } from '../../core/rewrite.ts'
import { steer } from '../../core/steering.ts'
import { giveBack, takeOver, timeOut } from '../../core/takeover.ts'
import { assertLegal, dueAt, isParkedBy, receive, undoAfter, type Transition } from '../../core/transition.ts'
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
import { Bounds, isOver } from './bounds.ts'
import { checkStore } from './checking.ts'
import { Feed } from './feed.ts'
import { matching } from './finding.ts'
import { Hints } from './hints.ts'
import { Keys } from './keys.ts'
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
  private readonly keys = new Keys()
  private readonly hints = new Hints()
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
    const { session, held = [] } = request
    const alive = this.bounds.sessions.beat(request, now)
    const lost: string[] = []
    for (const { runId, token, extendMs } of held) {
      const row = this.rows.get(runId)
      if (!alive || row === undefined || !holds(row, { session, token })) lost.push(runId)
      else if (extendMs !== null) row.deadline = now + extendMs
    }
    const wished = this.bounds.wished(session).map((row) => ({ runId: row.id, wish: { ...(row.wish as Wish) } }))
    const timedOut = this.bounds.timedOut(session, now).map(({ id }) => id)
    const strays = this.bounds.strays(session, new Set(held.map(({ runId }) => runId)))
    return { alive, lost, strays, wished, timedOut, now }
  }

  async steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
    this.assertOpen()
    const now = this.clock.now()
    return requests.map((request) => this.steerOne(request, now))
  }

  async rescue(request: RescueRequest): Promise<Rescued> {
    this.assertOpen()
    const now = this.clock.now()
    const sessionsEnded = this.bounds.sessions.endExpired(now)
    const orphans = this.bounds.orphans(now)
    const over = this.bounds.over(now)
    const found = [...orphans, ...over].slice(0, request.limit)
    const takenOver: Rescued['takenOver'][number][] = []
    const ended: Rescued['ended'][number][] = []
    for (const row of found) {
      const run = row.view()
      const { id: runId, type, session } = run
      const taken = session === null ? timeOut(run, request, now) : takeOver(run, request, now)
      this.rewrite(row, taken, null, now)
      const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
      if (reason !== null) ended.push({ runId, type, reason })
      else if (session !== null) takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
    }
    const more = found.length < orphans.length + over.length
    return { sessionsEnded, takenOver, ended, more, next: this.bounds.next(), now }
  }

  async release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void> {
    this.assertOpen()
    const now = this.clock.now()
    for (const lease of leases) {
      const row = this.rows.get(lease.runId)
      if (row !== undefined && holds(row, lease)) this.rewrite(row, giveBack(row.view(), now), null, now)
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

  async find(filter: RunFilter, { limit, after }: Page): Promise<readonly Run[]> {
    this.assertOpen()
    const found = matching(this.rows.values(), filter)
    const rest = after === undefined ? found : found.filter(({ id }) => id < after)
    return rest.slice(0, limit).map((row) => row.view())
  }

  async count(filter: RunFilter, atMost: number): Promise<number> {
    this.assertOpen()
    return Math.min(matching(this.rows.values(), filter).length, atMost)
  }

  async check(): Promise<readonly Checked[]> {
    this.assertOpen()
    return checkStore(this.rows.values(), this.feed, this.clock.now())
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => void> {
    this.assertOpen()
    return this.hints.listen(onHint)
  }

  async close(): Promise<void> {
    this.closed = true
    this.hints.close()
  }

  private startOne(run: NewRun, now: number): Started {
    const existing = this.rows.get(run.id)
    if (existing !== undefined) {
      // Our own insert whose answer was lost carries our transition id; any other run of that id is somebody else's.
      const created = existing.entries[0]?.transition === run.transition
      return { created, taken: created ? null : 'id', run: existing.view() }
    }
    const obstacle = this.keys.obstacle(run)
    if (obstacle !== null) return { created: false, taken: obstacle.taken, run: obstacle.row.view() }
    const row = new Row(run, now)
    this.rows.set(run.id, row)
    this.append(row, run.transition, [run.first], now)
    this.keys.take(row)
    this.bounds.note(row)
    if (run.lease !== null && !this.bounds.sessions.hasEnded(run.lease.session))
      this.lease(row, run.lease, run.leaseMs, now)
    else this.schedule(row, dueAt(run.due, now) ?? now, now)
    return { created: true, taken: null, run: row.view() }
  }

  private commitOne(transition: Transition, now: number): Committed {
    const row = this.rows.get(transition.runId)
    if (row === undefined) return { outcome: 'refused', reason: 'not-found' }
    const { seq, lease } = transition.guard
    if (row.entries[seq]?.transition === transition.id) return this.repeated(row, transition)
    if (!holds(row, lease)) {
      return isParkedBy(row, transition)
        ? { outcome: 'committed', seq, at: row.updatedAt, inbox: row.inbox, released: true, wish: null }
        : { outcome: 'refused', reason: 'lease-lost' }
    }
    if (row.seq !== seq) return { outcome: 'refused', reason: 'stale' }
    assertLegal(row.status, transition)

    const received = receive(row, transition)
    if (received === 'refused') return { outcome: 'refused', reason: 'cancelling', wish: row.view().wish }
    const { continues } = transition
    if (
      continues !== null &&
      row.deletedAt === null &&
      this.keys.holder({ ...row.view(), ...continues }) !== undefined
    ) {
      return { outcome: 'refused', reason: 'key-taken' }
    }
    this.append(row, transition.id, transition.append, now)
    if (transition.takes.length > 0) row.take(transition.takes, seq + 1)
    row.crashes = 0
    if (transition.undo !== null || continues !== null) this.turn(row, transition)
    const released = received === 'released'
    if (released) this.leave(row, transition, now)
    const wish = released || row.wish === null ? null : { ...row.wish }
    return { outcome: 'committed', seq: row.seq, at: now, inbox: row.inbox, released, wish }
  }

  /** The answer to a transition that was committed before, when its first answer was lost. */
  private repeated(row: Row, transition: Transition): Committed {
    const last = row.entries[transition.guard.seq + transition.append.length - 1]
    if (last === undefined) throw bug('A transition was committed in part', { runId: row.id })
    const held = holds(row, transition.guard.lease)
    const released = transition.status !== null && !held
    const wish = held && row.wish !== null ? { ...row.wish } : null
    return { outcome: 'committed', seq: last.seq, at: last.at, inbox: row.inbox, released, wish }
  }

  /** The run has something else to undo from here on, or begins anew. */
  private turn(row: Row, { undo, continues }: Transition): void {
    row.undo = undoAfter(row.undo, undo)
    if (undo === 'due') {
      row.timeoutAt = null
      row.expiresAt = null
      this.bounds.note(row)
    }
    if (continues === null) return
    this.keys.free(row)
    row.type = continues.type
    row.version = continues.version
    row.base = row.seq
    row.undo = 'none'
    this.keys.take(row)
  }

  /** Ends the lease and leads the run to the status that the transition asks for. */
  private leave(row: Row, transition: Transition, now: number): void {
    row.status = transition.status ?? row.status
    row.session = null
    row.deadline = null
    // What a cancellation said is wanted until it is over, and that has no bound on its time.
    if (row.status === 'cancelling') row.timeoutAt = null
    else row.wish = null
    this.bounds.note(row)
    if (isTerminal(row.status)) return this.end(row, now)
    const due = dueAt(transition.due, now)
    if (row.deletedAt !== null) this.queues.remove(row, 'idle')
    else if (row.status === 'pending' || row.status === 'cancelling') this.schedule(row, due ?? now, now)
    else if (row.status === 'waiting' && due !== null) this.schedule(row, due, now)
    else this.queues.remove(row, 'idle')
  }

  private steerOne(request: SteerRequest, now: number): Steered {
    const row = this.rows.get(request.runId)
    if (row === undefined) return { outcome: 'not-found' }
    const run = row.view()
    if (row.entries.some(({ transition }) => transition === request.id)) return { outcome: 'done', run }
    const keyHolder = request.kind === 'retry' ? (this.keys.holder(run)?.id ?? null) : null
    const { answer, write } = steer(run, request, now, keyHolder)
    if (write !== null) this.rewrite(row, write, request.id, now)
    return answer
  }

  /** Appends the entries and makes the row what it shall be. */
  private rewrite(row: Row, { run, append }: Rewrite, transition: string | null, now: number): void {
    const ended = isTerminal(run.status) && !isTerminal(row.status)
    this.append(row, transition, append, now)
    if (row.place !== -1) this.queues.remove(row, 'idle')
    this.keys.free(row)
    row.adopt(run)
    this.keys.take(row)
    this.bounds.note(row)
    if (ended) this.hints.give({ kind: 'ended', runId: row.id })
    if (run.due !== null) this.schedule(row, run.due, now)
  }

  private deliverOne(message: NewMessage, now: number): Delivered {
    const row = this.rows.get(message.runId)
    if (row === undefined) return { outcome: 'target-not-found' }
    const known = row.mailbox?.get(message.id)
    if (known !== undefined) return { ...known.answer }
    if (row.deletedAt !== null) return { outcome: 'target-not-found' }
    if (isTerminal(row.status)) return { outcome: 'target-terminated', status: row.status }
    const { id, runId, name, data } = message
    row.inbox += 1
    row.mailbox ??= new Map()
    const answer: Delivered = { outcome: row.status === 'waiting' ? 'delivered' : 'queued' }
    row.mailbox.set(id, { message: { id, runId, name, data, position: row.inbox, at: now }, answer, takenBy: null })
    // A run that is due already keeps its place: whoever is written to often must not be claimed last.
    if (row.status === 'waiting') this.schedule(row, Math.min(row.due ?? now, now), now)
    return { ...answer }
  }

  private end(row: Row, now: number): void {
    row.endedAt = now
    row.expiresAt = null
    this.keys.free(row)
    this.keys.take(row)
    this.bounds.note(row)
    this.queues.remove(row, 'idle')
    this.hints.give({ kind: 'ended', runId: row.id })
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
    if (row.status !== 'cancelling') row.status = 'running'
    row.session = lease.session
    row.token = lease.token
    row.deadline = leaseMs === null ? null : now + leaseMs
    row.expiresAt = null
    this.bounds.note(row)
    this.queues.remove(row, 'leased')
  }

  private schedule(row: Row, due: number, now: number): void {
    this.queues.enqueue(row, due, now)
    this.hints.give({ kind: 'ready', type: row.type })
  }

  private assertOpen(): void {
    if (this.closed) throw new HoldfastError('CLOSED', 'This store is closed. Open a new one to go on.')
  }
}

function leaseMsOf({ type, version }: Row, { selectors }: ClaimRequest): number | null {
  return selectors.find((one) => one.type === type && one.version === version)?.leaseMs ?? null
}
