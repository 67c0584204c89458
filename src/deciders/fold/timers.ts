// The timers of an instance. A timer counts from the commit of its entry, whose time is not known while that is pending: until
// then it is not due, so no timer fires early, and none fires in the batch that armed it.

import type { ArmedTimer } from '../../core/definition/decider-model.ts'
import { dueAt, type Due } from '../../core/model/due.ts'
import type { UndoLog } from './undo-log.ts'

/** When something was committed; null while it is pending. All entries of a batch share it. */
export interface Moment {
  at: number | null
}

export interface Timer {
  readonly name: string
  readonly due: Due
  /** The commit from which it counts. */
  readonly since: Moment
  readonly failures: number
  /** Throws if its text cannot be read. */
  readonly input: () => unknown
}

/** A timer without a key is called by the number of its entry. */
export const unkeyed = '#'

/** The time of a timer; null while it is not known. */
function timeOf({ due, since }: Timer): number | null {
  return since.at === null ? null : dueAt(due, since.at)
}

export class Timers {
  private readonly all = new Map<string, Timer>()
  private readonly log: UndoLog
  /** Those that had no time when they were set. */
  private open: Timer[] = []
  /** The first one that has a time; undefined if it must be looked for. */
  private first: Timer | null | undefined = undefined

  constructor(log: UndoLog) {
    this.log = log
  }

  get size(): number {
    return this.all.size
  }

  values(): Iterable<Timer> {
    return this.all.values()
  }

  get(name: string): Timer | undefined {
    return this.all.get(name)
  }

  set(timer: Timer): void {
    this.change(timer.name, timer)
  }

  delete(name: string): void {
    if (this.all.has(name)) this.change(name, null)
  }

  clear(): void {
    // A map may lose its keys while they are read.
    for (const name of this.all.keys()) this.delete(name)
  }

  /** Times have become known. */
  refresh(): void {
    this.first = undefined
  }

  /** The timer that is due first, if it is by then. */
  firstDue(now: number): (Timer & { readonly dueAt: number }) | null {
    const first = this.earliest()
    const at = first === null ? null : timeOf(first)
    return first === null || at === null || at > now ? null : { ...first, dueAt: at }
  }

  /** When the next one is due: pending ones count from the next commit. */
  nextDue(): Due | null {
    const first = this.earliest()
    let [at, afterMs] = [first === null ? null : timeOf(first), null as number | null]
    this.open = this.open.filter((timer) => timer.since.at === null && this.all.get(timer.name) === timer)
    for (const { due } of this.open) {
      at = earlier(at, due.at)
      afterMs = earlier(afterMs, due.afterMs)
    }
    return at === null && afterMs === null ? null : { at, afterMs }
  }

  shown(): readonly ArmedTimer[] {
    return [...this.all.values()].map((timer) => ({
      name: timer.name,
      key: timer.name.startsWith(unkeyed) ? null : timer.name,
      dueAt: timeOf(timer),
      failures: timer.failures,
    }))
  }

  private change(name: string, timer: Timer | null): void {
    this.log.push(() => (this.first = undefined))
    this.log.set(this.all, name, timer)
    if (timer !== null && timer.since.at === null) this.open.push(timer)
    // Of a new one only the time matters, and a pending one has none.
    if (timer === null || this.first?.name === name || timeOf(timer) !== null) this.first = undefined
  }

  private earliest(): Timer | null {
    if (this.first !== undefined) return this.first
    let [first, firstAt]: [Timer | null, number] = [null, Infinity]
    for (const timer of this.all.values()) {
      const at = timeOf(timer)
      if (at !== null && at < firstAt) [first, firstAt] = [timer, at]
    }
    this.first = first
    return first
  }
}

function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other
  return Math.min(one, other)
}
