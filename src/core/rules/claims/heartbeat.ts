// The effects of a heartbeat on the runs that a session holds, and its answer.

import { isTimeOver } from './deadline.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../model/heartbeat.ts'
import { holds, type Run } from '../../model/run.ts'

/** The rest is reported with the next heartbeat. */
export const unknownLeasesAtOnce = 100

/**
 * The answer to a session. `mine` are the runs that name it as their session, in the order of their ids: of those that it
 * lists, and all others if it looks for unknown leases.
 */
export function beatAnswer(request: BeatRequest, isAlive: boolean, mine: readonly Run[], now: number): Beat {
  const { session, held = [] } = request
  const byId = new Map(mine.map((run) => [run.id, run]))
  const listed = new Set(held.map(({ runId }) => runId))
  const isLost = ({ runId, token }: HeldClaim): boolean => {
    const run = byId.get(runId)
    return !isAlive || run === undefined || !holds(run, { session, token })
  }
  return {
    alive: isAlive,
    lost: held.filter(isLost).map(({ runId }) => runId),
    unknownLeases: mine
      .filter((run) => !listed.has(run.id) && holds(run, { session, token: run.token }))
      .slice(0, unknownLeasesAtOnce)
      .map(({ id, token }) => ({ runId: id, token })),
    controlRequests: mine.flatMap(({ id, controlRequest }) =>
      controlRequest === null ? [] : [{ runId: id, controlRequest: { ...controlRequest } }],
    ),
    messages: held.flatMap((claim) => {
      const inbox = byId.get(claim.runId)?.inbox ?? 0
      const isNews = claim.inbox !== undefined && inbox > claim.inbox && !isLost(claim)
      return isNews ? [{ runId: claim.runId, inbox }] : []
    }),
    timedOut: mine
      .filter((run) => run.status === 'running' && run.deletedAt === null && isTimeOver(run, now))
      .map(({ id }) => id),
    now,
  }
}

/** The columns that a heartbeat writes for a run that the session holds: its deadline is moved, and it may have begun. */
export function extended(run: Pick<Run, 'deadline' | 'crashes'>, { extendMs, begun }: HeldClaim, now: number) {
  return { deadline: extendMs === null ? run.deadline : now + extendMs, crashes: begun ?? run.crashes }
}
