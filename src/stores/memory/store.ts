// The memory store: the reference of what a store does, and the oracle of the property tests. Every method takes effect
// in one synchronous step, so whatever it does is atomic; it keeps nothing when the process ends.

import type { Draft, Entry } from '../../core/entry.ts'
import { bug, HoldfastError } from '../../core/error.ts'
import type { Clock } from '../../core/ports.ts'
import { holds, isTerminal, mayMove, type Lease, type Run } from '../../core/run.ts'
import type { Due, Transition } from '../../core/transition.ts'
import type {
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
  RunFilter,
  Started,
  Store,
  StoreAdmin,
} from '../../store.ts'
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
    const runs: Run[] = []
    while (runs.length < request.limit) {
      const row = firstReady(queues)
      if (row === undefined) break
      this.lease(row, { session: request.session, token: row.token + 1 })
      row.crashes += 1
      runs.push(row.view())
    }
    return { runs, more: firstReady(queues) !== undefined, nextDue: nextDue(queues), now }
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

  async release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void> {
    this.assertOpen()
    const now = this.clock.now()
    for (const lease of leases) {
      const row = this.rows.get(lease.runId)
      if (row === undefined || row.status !== 'running' || !holds(row, lease)) continue
      row.status = 'pending'
      row.session = null
      row.crashes = 0
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
    if (run.lease !== null) this.lease(row, run.lease)
    else this.schedule(row, now + (run.delayMs ?? 0), now)
    return { created: true, run: row.view() }
  }

  private commitOne(transition: Transition, now: number): Committed {
    const row = this.rows.get(transition.runId)
    if (row === undefined) return { outcome: 'refused', reason: 'not-found' }
    const { seq, lease } = transition.guard
    if (row.seq !== seq) {
      const mine = row.entries[seq]?.transition === transition.id
      return mine ? this.repeated(row, transition) : { outcome: 'refused', reason: 'stale' }
    }
    if (!holds(row, lease)) {
      return isParkedBy(row, transition)
        ? { outcome: 'committed', seq, at: row.updatedAt, inbox: row.inbox, released: true }
        : { outcome: 'refused', reason: 'lease-lost' }
    }
    assertLegal(row, transition)

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
    row.session = null
    if (isTerminal(row.status)) {
      row.endedAt = now
      this.queues.remove(row, 'idle')
      this.hint({ kind: 'ended', runId: row.id })
      return
    }
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

  private append(row: Row, transition: string, drafts: readonly Draft[], now: number): void {
    let first: string | null = transition
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

  private lease(row: Row, lease: Lease): void {
    row.status = 'running'
    row.session = lease.session
    row.token = lease.token
    this.queues.remove(row, 'leased')
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

function dueAt(due: Due | null, now: number): number | null {
  if (due === null) return null
  const afterwards = due.afterMs === null ? null : now + due.afterMs
  if (due.at === null || afterwards === null) return due.at ?? afterwards
  return Math.min(due.at, afterwards)
}

/** Parking without an entry leaves no id behind, but only its holder can have parked a run under that token. */
function isParkedBy(row: Row, { append, guard }: Transition): boolean {
  return append.length === 0 && row.status === 'waiting' && row.token === guard.lease.token
}

/** What only a defect of the engine could ask for. */
function assertLegal(row: Row, { append, status, parkIf }: Transition): void {
  if (append.length === 0 && status !== 'waiting') throw bug('A transition appends nothing', { runId: row.id })
  if (status !== null && !mayMove(row.status, status)) {
    throw bug(`A run cannot go from ${row.status} to ${status}`, { runId: row.id })
  }
  if ((status === 'waiting') !== (parkIf !== null)) {
    throw bug('Parking, and only parking, says what it has seen', { runId: row.id })
  }
}
