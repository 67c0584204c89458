// The runs in the order of claims. Each type and version has a queue of its own: a heap of ready runs in the order in which
// they are claimed, a heap of timed ones by due time, from which they move over when that comes, and a heap of suspects, due
// or not, which are claimed in isolation. A row is in at most one heap; `readiness` says in which.

import { placesOf } from '../../../core/rules/claims/claim-order.ts'
import type { Selector } from '../../../store.ts'
import { Heap } from './heap.ts'
import type { Row } from './row.ts'

/** The runs of one type and version that have no holder and that time or a worker will move. */
export class Queue {
  readonly ready = new Heap<Row>(claimedBefore)
  readonly timed = new Heap<Row>(dueBefore)
  readonly isolated = new Heap<Row>(dueBefore)
}

export class Queues {
  private readonly byType = new Map<string, Map<number, Queue>>()

  /** Makes the row due, and leads it to where that says, given the present time. */
  enqueue(row: Row, due: number, now: number, isIsolated = false): void {
    const queue = this.queueOf(row)
    this.leave(row, queue)
    row.due = due
    row.readiness = isIsolated ? 'isolated' : due > now ? 'timed' : 'ready'
    queue[row.readiness].push(row)
  }

  /** Takes the row out: it is leased, or idle, and not due. */
  remove(row: Row, readiness: 'leased' | 'idle'): void {
    if (row.place !== -1) this.leave(row, this.queueOf(row))
    row.readiness = readiness
    row.due = null
  }

  /** The queues of those selected; with a time, everything that has come due by then is where it can be claimed. */
  select(selectors: readonly Selector[], now: number | null): readonly Queue[] {
    const queues: Queue[] = []
    for (const { type, version } of selectors) {
      const queue = this.byType.get(type)?.get(version)
      if (queue === undefined) continue
      if (now !== null) promote(queue, now)
      queues.push(queue)
    }
    return queues
  }

  /** When the next suspect is due, of any type. */
  nextIsolated(): number | null {
    const queues = Array.from(this.byType.values(), (versions) => [...versions.values()]).flat()
    return earliest(queues.map(({ isolated }) => isolated.peek()?.due ?? null))
  }

  private leave(row: Row, queue: Queue): void {
    const { readiness } = row
    if (row.place !== -1) queue[readiness === 'timed' || readiness === 'isolated' ? readiness : 'ready'].remove(row)
  }

  private queueOf({ type, version }: Selector): Queue {
    let versions = this.byType.get(type)
    if (versions === undefined) this.byType.set(type, (versions = new Map<number, Queue>()))
    let queue = versions.get(version)
    if (queue === undefined) versions.set(version, (queue = new Queue()))
    return queue
  }
}

/** The ready runs of some queues as one claim takes them: at one priority the types take turns, one run each. */
export class ReadyTurns {
  private readonly queues: readonly Queue[]
  private readonly places: ReadonlyMap<string, number>
  private priority: number | null = null
  /** How many runs of each type were taken at that priority. */
  private readonly taken = new Map<string, number>()

  constructor(queues: readonly Queue[], selectors: readonly Selector[]) {
    this.queues = queues
    this.places = placesOf(selectors)
  }

  /** The run that goes first; it stays. */
  first(): Row | undefined {
    let first: Row | undefined
    for (const { ready } of this.queues) {
      const candidate = ready.peek()
      if (candidate !== undefined && (first === undefined || this.goesBefore(candidate, first))) first = candidate
    }
    return first
  }

  /** That run has had the turn of its type. */
  take({ type, priority }: Row): void {
    if (priority !== this.priority) this.taken.clear()
    this.priority = priority
    this.taken.set(type, (this.taken.get(type) ?? 0) + 1)
  }

  private goesBefore(a: Row, b: Row): boolean {
    if (a.priority !== b.priority || a.type === b.type) return claimedBefore(a, b)
    const isSame = a.priority === this.priority
    const ahead = isSame ? (this.taken.get(a.type) ?? 0) - (this.taken.get(b.type) ?? 0) : 0
    return (ahead || (this.places.get(a.type) ?? 0) - (this.places.get(b.type) ?? 0)) < 0
  }
}

/** The suspect that has been due longest; it stays. */
export function firstIsolated(queues: readonly Queue[], now: number): Row | undefined {
  let first: Row | undefined
  for (const { isolated } of queues) {
    const candidate = isolated.peek()
    if (candidate !== undefined && (first === undefined || dueBefore(candidate, first))) first = candidate
  }
  return first !== undefined && dueOf(first) <= now ? first : undefined
}

/** When the next of the timed runs comes due. */
export function nextDue(queues: readonly Queue[]): number | null {
  return earliest(queues.map(({ timed }) => timed.peek()?.due ?? null))
}

/** When the next suspect comes due that is not due yet. There are few, and seldom any. */
export function nextDueIsolated(queues: readonly Queue[], now: number): number | null {
  const later = queues.flatMap(({ isolated }) => isolated.all().filter((row) => dueOf(row) > now))
  return earliest(later.map(({ due }) => due))
}

function earliest(times: readonly (number | null)[]): number | null {
  let first: number | null = null
  for (const time of times) if (time !== null && (first === null || time < first)) first = time
  return first
}

function promote({ ready, timed }: Queue, now: number): void {
  for (let row = timed.peek(); row !== undefined && dueOf(row) <= now; row = timed.peek()) {
    timed.remove(row)
    row.readiness = 'ready'
    ready.push(row)
  }
}

/** Within a type: higher priority first, then longer due, then the lower id. */
function claimedBefore(a: Row, b: Row): boolean {
  return a.priority === b.priority ? dueBefore(a, b) : a.priority > b.priority
}

function dueBefore(a: Row, b: Row): boolean {
  const dueA = dueOf(a)
  const dueB = dueOf(b)
  return dueA === dueB ? a.id < b.id : dueA < dueB
}

/** Every row in a queue has a due time. */
function dueOf(row: Row): number {
  return row.due ?? 0
}
