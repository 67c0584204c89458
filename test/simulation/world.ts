// Virtual time and the order of everything. Events lie in a heap by time and then by number; between two of them all
// microtasks run out, so that the order of events is the only order there is. An event may belong to a process: a dead
// process gets none, and one that stands still gets them later.

import { Draw } from './draw.ts'
import type { Trace } from './trace.ts'

export interface Event {
  at: number
  /** When it would have come if its owner had not stood still: what was put off comes in its old order. */
  readonly due: number
  readonly order: number
  readonly owner: Owner | null
  readonly kind: string
  call: (() => void) | null
}

/** To whom an event belongs. */
export interface Owner {
  readonly label: string
  isAlive: boolean
  /** Until when nothing reaches it. */
  standsStillUntil: number
}

/** Taken before a simulation forbids them. */
const immediate = setImmediate

/** So many events at most go into one turn of the event loop; microtasks run out between them all the same. */
const eventsAtOnce = 64

export class World {
  /** Milliseconds of true time since the simulation began. */
  now = 0
  readonly schedule: Draw
  readonly trace: Trace
  private readonly heap: Event[] = []
  private set = 0
  private failed: Error | null = null
  private stopped = false

  constructor(seed: number, trace: Trace) {
    this.schedule = Draw.of(seed, 'schedule')
    this.trace = trace
  }

  /** Sets an event. Clearing its `call` takes it back. */
  after(ms: number, owner: Owner | null, kind: string, call: () => void): Event {
    const due = this.now + Math.max(0, ms)
    const event: Event = { at: due, due, order: this.set++, owner, kind, call }
    this.push(event)
    return event
  }

  stop(): void {
    this.stopped = true
  }

  /** Runs events until `isOver` says so, time is up, or none is left. */
  run(isOver: () => boolean, until: number): Promise<void> {
    this.stopped = false
    return new Promise((resolve, reject) => {
      let left = 0
      let isDone = false
      const one = (): void => {
        left -= 1
        if (isDone) return
        if (this.failed !== null || this.stopped || isOver() || !this.step(until)) {
          isDone = true
          if (this.failed === null) resolve()
          else reject(this.failed)
        } else if (left === 0) more()
      }
      const more = (): void => {
        left = eventsAtOnce
        for (let index = 0; index < eventsAtOnce; index += 1) immediate(one)
      }
      more()
    })
  }

  private step(until: number): boolean {
    for (;;) {
      const event = this.heap[0]
      if (event === undefined || event.at > until) {
        this.now = Math.max(this.now, Math.min(until, event?.at ?? until))
        return false
      }
      this.pop()
      const { owner, call } = event
      if (call === null || owner?.isAlive === false) continue
      if (owner !== null && owner.standsStillUntil > this.now && owner.standsStillUntil > event.at) {
        event.at = owner.standsStillUntil
        this.push(event)
        continue
      }
      this.now = Math.max(this.now, event.at)
      this.trace.events += 1
      this.trace.number(this.now)
      this.trace.number(event.order)
      this.trace.text(event.kind)
      try {
        call()
      } catch (error) {
        this.failed = error instanceof Error ? error : new Error(String(error))
      }
      return true
    }
  }

  private push(event: Event): void {
    const { heap } = this
    let place = heap.length
    heap.push(event)
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = heap[parent] as Event
      if (isBefore(above, event)) break
      heap[place] = above
      place = parent
    }
    heap[place] = event
  }

  private pop(): void {
    const { heap } = this
    const last = heap.pop() as Event
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1
      if (isBefore(last, heap[child] as Event)) break
      heap[place] = heap[child] as Event
      place = child
    }
    heap[place] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.due === b.due ? a.order < b.order : a.due < b.due
}
