// How runs are taken from holders that died, are past their deadline, or give them back, and how runs end whose time is over,
// for every store: `takeover.ts` decides about each. Each store looks up those runs in its own way; it calls these rules with
// the rows locked, for one run after the other.

import { change, type ChangeWork } from '../change.ts'
import { isBoundByTime, isTimeOver } from './deadline.ts'
import { giveBack, takeOver, timeOut, type Rescued, type TakeoverRules } from './takeover.ts'
import { holds, type Run } from '../../model/run.ts'
import type { ReleasedLease } from '../../model/heartbeat.ts'

/** The outcomes of runs. One that needs no rescue any more is in none of the lists. */
export type RescuedRuns = Pick<Rescued, 'takenOver' | 'ended' | 'paused'>

const nothing: RescuedRuns = { takenOver: [], ended: [], paused: [] }

/**
 * Whether a rescue takes this run from its holder: the holder's session is not alive, or the deadline of the claim is
 * over.
 */
export function isOrphaned(run: Run, isAlive: (session: string) => boolean, now: number): boolean {
  const { session, status, deadline } = run
  if (session === null || (status !== 'running' && status !== 'cancelling')) return false
  return (deadline !== null && deadline <= now) || !isAlive(session)
}

/** Whether a rescue ends this run, because its time is over and no session holds it. */
export function isOverdue(run: Run, now: number): boolean {
  return isBoundByTime(run) && isTimeOver(run, now)
}

/**
 * The order in which runs are rescued that were found together. The end of one may reach another, so that it is visible: runs
 * with a holder first, each by id.
 */
export function rescueOrder(a: Pick<Run, 'id' | 'session'>, b: Pick<Run, 'id' | 'session'>): number {
  return Number(a.session === null) - Number(b.session === null) || (a.id < b.id ? -1 : 1)
}

/** When the next of these runs, or sessions that live, may need a rescue, if nothing happens; null if none will. */
export function nextRescue(runs: Iterable<Run>, aliveUntil: Iterable<number>): number | null {
  let next = Number.POSITIVE_INFINITY
  for (const time of aliveUntil) next = Math.min(next, time)
  for (const run of runs) {
    const { deadline, timeoutAt, expiresAt } = run
    const bounds = isBoundByTime(run) ? [timeoutAt, expiresAt] : [deadline]
    for (const time of bounds) if (time !== null) next = Math.min(next, time)
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}

/**
 * Rescues a run, as it is by now: the end of another one may have reached it since it was looked up. It judges neither the holder nor
 * the clock: a store that looked the run up without a lock asks `isOrphaned` or `isOverdue` again under the lock.
 */
export function rescueRun(work: ChangeWork, run: Run | undefined, rules: TakeoverRules): RescuedRuns {
  // Its parent may have ended just before it. Undo work has no bound on its time.
  if (run === undefined || (run.session === null && !isBoundByTime(run))) return nothing
  const { id: runId, type, session, crashes } = run
  const taken = session === null ? timeOut(run, rules, work.now) : takeOver(run, rules, work.now)
  change(work, run, taken, null)
  const paused = taken.isConvicted ? [runId] : []
  const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
  if (reason !== null) return { takenOver: [], ended: [{ runId, type, reason }], paused }
  if (session === null) return { ...nothing, paused }
  return { takenOver: [{ runId, type, session, crashes: Math.max(crashes, 1) }], ended: [], paused }
}

/** The lists of all of them, in order. */
export function rescuedTogether(rescued: readonly RescuedRuns[]): RescuedRuns {
  return {
    takenOver: rescued.flatMap(({ takenOver }) => takenOver),
    ended: rescued.flatMap(({ ended }) => ended),
    paused: rescued.flatMap(({ paused }) => paused),
  }
}

/** Gives a lease back; a lost one is passed over. */
export function releaseRun(work: ChangeWork, run: Run | undefined, lease: ReleasedLease): void {
  if (run === undefined || !holds(run, lease)) return
  change(work, run, giveBack(run, work.now, lease.crashes), null)
}
