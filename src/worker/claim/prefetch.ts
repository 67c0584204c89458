// Runs that are claimed before a slot is free for them. Under a backlog a slot that is freed has its next run at once, and a
// claim of many costs the store hardly more than a claim of one.
//
//   claimed → begun       a slot is free
//   claimed → given back  none was free for a second, or nothing may begin any more: a pause, a lost session, the end of the
//                         worker. Nothing has begun, so nothing is counted against the run
//
// There are three times as many as left their slots in the last tenth of a second: a worker whose runs take long keeps none from
// others, and one that waits for its claims more than it works claims more each time.

import type { Cancel, Clock } from '../../core/runtime/ports.ts'
import type { Run } from '../../core/model/run.ts'
import type { Fresh } from '../../store.ts'

/**
 * At most this many times the number of runs that ended within `windowMs` are claimed ahead, and at most `mostPrefetched`
 * runs.
 */
const windows = 3
const windowMs = 100
const mostPrefetched = 500

/** A run that waits for longer is given back: runs that were quick have become slow. */
const patienceMs = 1_000

/** Runs that were claimed, and the first entries that came with them. */
export interface Batch {
  readonly runs: readonly Run[]
  readonly fresh: readonly Fresh[]
}

interface WaitingRun {
  readonly run: Run
  readonly fresh: Fresh | null
}

export class Prefetch {
  private readonly clock: Clock
  private readonly giveBack: (run: Run) => void
  /** Each with the first entry that came with its claim: kept apart from its run, it would meet a later claim of the same run. */
  private waiting: WaitingRun[] = []
  /** How many left their slots since when, and how many that was in a window before. */
  private left = 0
  private since: number
  private pace = 0
  private cancelPatience: Cancel = () => undefined

  constructor(clock: Clock, giveBack: (run: Run) => void) {
    this.clock = clock
    this.giveBack = giveBack
    this.since = clock.monotonic()
  }

  get size(): number {
    return this.waiting.length
  }

  /** How many may be claimed ahead now: none as long as half of them are still there, so that claims are few and large. */
  get room(): number {
    this.roll()
    const most = Math.min(mostPrefetched, Math.floor(windows * this.pace))
    return this.waiting.length > most / 2 ? 0 : most - this.waiting.length
  }

  has(runId: string): boolean {
    return this.waiting.some(({ run }) => run.id === runId)
  }

  /** A run has left its slot. */
  slotFreed(): void {
    this.roll()
    this.left += 1
  }

  put({ runs, fresh }: Batch): void {
    if (runs.length === 0) return
    const firsts = new Map(fresh.map((one) => [one.runId, one]))
    for (const run of runs) this.waiting.push({ run, fresh: firsts.get(run.id) ?? null })
    this.cancelPatience()
    this.cancelPatience = this.clock.after(patienceMs, () => this.clear())
  }

  /** The first of them, in the order of their claims. */
  take(count: number): Batch {
    const taken = this.waiting.splice(0, count)
    if (this.waiting.length === 0) this.cancelPatience()
    return { runs: taken.map(({ run }) => run), fresh: taken.flatMap(({ fresh }) => fresh ?? []) }
  }

  /** Gives all of them back. */
  clear(): void {
    this.cancelPatience()
    const { waiting } = this
    this.waiting = []
    for (const { run } of waiting) this.giveBack(run)
  }

  private roll(): void {
    const elapsed = this.clock.monotonic() - this.since
    if (elapsed < windowMs) return
    this.pace = (this.left * windowMs) / elapsed
    this.left = 0
    this.since += elapsed
  }
}
