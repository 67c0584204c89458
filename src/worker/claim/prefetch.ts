// Runs that are claimed before a slot is free for them. Under a backlog a slot that is freed has its next run at once, and a
// claim of many costs the store hardly more than a claim of one.
//
//   claimed → begun       a slot is free
//   claimed → given back  none was free for a second; nothing may begin any more: a pause, a lost session, the end of the
//                         worker; or this one may not: an operator has paused or cancelled the run, it was cancelled
//                         because its parent ended, or the claim is lost. Nothing has begun, so nothing is counted against
//                         the run, and the store ignores a release of a lost claim
//
// A run is dropped as soon as this process knows that it may not begin. It knows at once of a call in this process, from a hint
// of a call in another one, and otherwise from the answer to a heartbeat, which lists the runs that wait here, too. A run that
// begins before that learns of the request as any run that is being performed does: with the answer to its first commit. A run
// that was being cancelled when it was claimed begins: only a holder can undo its steps. The removal of a held run is known only
// to the process that asked for it.
//
// There are three times as many as left their slots in the last tenth of a second: a worker whose runs take long keeps none from
// others, and one that waits for its claims more than it works claims more each time.

import type { Cancel, Clock } from '../../core/runtime/ports.ts'
import type { Run } from '../../core/model/run.ts'
import type { Fresh, HeldClaim } from '../../store.ts'

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
  /** Their ids: every control request and every announced end of a run is looked up here. */
  private readonly ids = new Set<string>()
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
    return this.ids.has(runId)
  }

  /** A run has left its slot. */
  slotFreed(): void {
    this.roll()
    this.left += 1
  }

  put({ runs, fresh }: Batch): void {
    if (runs.length === 0) return
    const firsts = new Map(fresh.map((one) => [one.runId, one]))
    for (const run of runs) {
      this.waiting.push({ run, fresh: firsts.get(run.id) ?? null })
      this.ids.add(run.id)
    }
    this.cancelPatience()
    this.cancelPatience = this.clock.after(patienceMs, () => this.clear())
  }

  /** The first of them, in the order of their claims. */
  take(count: number): Batch {
    const taken = this.waiting.splice(0, count)
    for (const { run } of taken) this.ids.delete(run.id)
    if (this.waiting.length === 0) this.cancelPatience()
    return { runs: taken.map(({ run }) => run), fresh: taken.flatMap(({ fresh }) => fresh ?? []) }
  }

  /** Their claims, for the heartbeat. */
  claims(): readonly HeldClaim[] {
    return this.waiting.map(({ run }) => ({ runId: run.id, token: run.token, extendMs: null }))
  }

  /** Gives a run back that may not begin, if it waits here and this is true of it. Returns whether it did. */
  drop(runId: string, isMeant: (run: Run) => boolean): boolean {
    if (!this.ids.has(runId)) return false
    const at = this.waiting.findIndex(({ run }) => run.id === runId && isMeant(run))
    if (at === -1) return false
    this.ids.delete(runId)
    for (const { run } of this.waiting.splice(at, 1)) this.giveBack(run)
    if (this.waiting.length === 0) this.cancelPatience()
    return true
  }

  /** Gives all of them back. */
  clear(): void {
    this.cancelPatience()
    const { waiting } = this
    this.waiting = []
    this.ids.clear()
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
