// Bounds on the time of a run: which runs time may end, and when.

import { isTerminal, type Run } from '../../model/run.ts'

type Bounded = Pick<Run, 'session' | 'status' | 'undo' | 'deletedAt' | 'timeoutAt' | 'expiresAt'>

/** Rescuers get hints of deadlines that are nearer than this. They find the others by themselves. */
export const nearDeadlineMs = 60 * 60_000

/**
 * Whether a rescue may end this run once its time is over. A held run is left to its holder; undo work has no bound on
 * its time, and a removed run is not ended.
 */
export function isBoundByTime({ session, status, undo, deletedAt }: Omit<Bounded, 'timeoutAt' | 'expiresAt'>): boolean {
  const isUnbound = status === 'paused' || status === 'cancelling' || undo === 'due' || isTerminal(status)
  return session === null && !isUnbound && deletedAt === null
}

/** When a rescue must end this run; null if never, or not before a rescuer will look in any case. */
export function nearDeadline(run: Bounded, now: number): number | null {
  const { timeoutAt, expiresAt } = run
  if (timeoutAt === null && expiresAt === null) return null
  const at = Math.min(timeoutAt ?? Number.POSITIVE_INFINITY, expiresAt ?? Number.POSITIVE_INFINITY)
  return at - now <= nearDeadlineMs && isBoundByTime(run) ? at : null
}

/** The time for it is over: to begin it, or for the whole run. */
export function isTimeOver({ timeoutAt, expiresAt }: Pick<Run, 'timeoutAt' | 'expiresAt'>, now: number): boolean {
  return (timeoutAt !== null && timeoutAt <= now) || (expiresAt !== null && expiresAt <= now)
}
