// The effects of a heartbeat on the runs that a session holds, and its answer: decided here, once, for every store.
//
// A store that has whole rows asks for the answer at once (`beatAnswer`). A store that looks up thousands of runs in a
// statement leaves out those about which there is nothing to report, and hands the others to `answerListed` and
// `answerUnlisted`, or judges them in its own statement; `answerBeat` makes the answer of all that.

import type { Beat, BeatRequest, HeldClaim } from '../../model/heartbeat.ts'
import { holds, type ControlRequest, type Run } from '../../model/run.ts'

/** The rest is reported with the next heartbeat. */
export const unknownLeasesAtOnce = 100

/** The columns of a run that the answer to its holder depends on. */
export type BeatRow = Pick<
  Run,
  'id' | 'session' | 'token' | 'status' | 'controlRequest' | 'inbox' | 'timeoutAt' | 'deletedAt'
>

/** The answer about a run that the session lists. */
export interface ListedAnswer {
  /** Its place on the list. */
  readonly place: number
  readonly isLost: boolean
  readonly controlRequest: ControlRequest | null
  /** How many messages have arrived, if its holder asks and does not know that yet. */
  readonly inbox: number | null
  readonly isTimedOut: boolean
}

/** The answer about runs that the session holds and does not list. */
export type UnlistedAnswer = Pick<Beat, 'unknownLeases' | 'unknownLeasesSkipped' | 'controlRequests' | 'timedOut'>

export const nothingUnlisted: UnlistedAnswer = { unknownLeases: [], controlRequests: [], timedOut: [] }

/** The answer for a claim; `run` is undefined if there is no such run. A token that is not the run's is lost. */
export function answerListed(
  session: string,
  { token, inbox: known }: HeldClaim,
  place: number,
  run: BeatRow | undefined,
  now: number,
): ListedAnswer {
  const isMine = run?.session === session
  const isHeld = run !== undefined && holds(run, { session, token })
  return {
    place,
    isLost: !isHeld,
    controlRequest: isMine ? run.controlRequest : null,
    inbox: isHeld && known !== undefined && run.inbox > known ? run.inbox : null,
    isTimedOut: isMine && isTimedOut(run, now),
  }
}

/** The answer for runs that name this session and that it does not list, in the order of their ids. */
export function answerUnlisted(runs: readonly BeatRow[], now: number): UnlistedAnswer {
  return {
    unknownLeases: runs
      .filter((run) => run.session !== null && holds(run, { session: run.session, token: run.token }))
      .slice(0, unknownLeasesAtOnce)
      .map(({ id, token }) => ({ runId: id, token })),
    controlRequests: runs.flatMap(({ id, controlRequest }) =>
      controlRequest === null ? [] : [{ runId: id, controlRequest: { ...controlRequest } }],
    ),
    timedOut: runs.filter((run) => isTimedOut(run, now)).map(({ id }) => id),
  }
}

/** Its holder must fail it: undo work has no bound on its time, and a removed run is not ended. */
function isTimedOut({ status, deletedAt, timeoutAt }: BeatRow, now: number): boolean {
  return status === 'running' && deletedAt === null && timeoutAt !== null && timeoutAt <= now
}

/** The places on the list of a session whose leases it has lost: all, if it has ended. */
export function lostPlaces(
  { held = [] }: BeatRequest,
  isAlive: boolean,
  listed: readonly ListedAnswer[],
): ReadonlySet<number> {
  return new Set(isAlive ? listed.filter(({ isLost }) => isLost).map(({ place }) => place) : held.keys())
}

/** The answer to a session. A listed run without an answer is held, and there is nothing to report about it. */
export function answerBeat(
  request: BeatRequest,
  isAlive: boolean,
  { listed, unlisted }: { readonly listed: readonly ListedAnswer[]; readonly unlisted: UnlistedAnswer },
  now: number,
): Beat {
  const { held = [] } = request
  const lost = lostPlaces(request, isAlive, listed)
  const byPlace = listed.toSorted((one, other) => one.place - other.place)
  const idAt = (place: number): string => held[place]?.runId ?? ''
  const controlRequests = byPlace.flatMap(({ place, controlRequest }) =>
    controlRequest === null ? [] : [{ runId: idAt(place), controlRequest: { ...controlRequest } }],
  )
  const timedOut = byPlace.filter(({ isTimedOut }) => isTimedOut).map(({ place }) => idAt(place))
  return {
    alive: isAlive,
    lost: held.filter((_, place) => lost.has(place)).map(({ runId }) => runId),
    unknownLeases: unlisted.unknownLeases,
    ...(unlisted.unknownLeasesSkipped === true ? { unknownLeasesSkipped: true } : {}),
    controlRequests: onceById([...controlRequests, ...unlisted.controlRequests], ({ runId }) => runId),
    messages: byPlace.flatMap(({ place, inbox }) =>
      inbox === null || lost.has(place) ? [] : [{ runId: idAt(place), inbox }],
    ),
    timedOut: onceById([...timedOut, ...unlisted.timedOut], (runId) => runId),
    now,
  }
}

/**
 * The same from whole rows. `mine` are the runs that name the session, in the order of their ids: of those that it lists, and
 * all others if it looks for unknown leases.
 */
export function beatAnswer(request: BeatRequest, isAlive: boolean, mine: readonly BeatRow[], now: number): Beat {
  const { session, held = [] } = request
  const byId = new Map(mine.map((run) => [run.id, run]))
  const listedIds = new Set(held.map(({ runId }) => runId))
  const listed = held.map((claim, place) => answerListed(session, claim, place, byId.get(claim.runId), now))
  const unlisted = answerUnlisted(
    mine.filter(({ id }) => !listedIds.has(id)),
    now,
  )
  return answerBeat(request, isAlive, { listed, unlisted }, now)
}

/** In the order of their ids, each once. */
export function onceById<One>(all: readonly One[], idOf: (one: One) => string): readonly One[] {
  const byId = new Map(all.map((one) => [idOf(one), one]))
  return [...byId.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
}

/** The columns that a heartbeat writes for a run that the session holds: its deadline is moved, and it may have begun. */
export function extended(run: Pick<Run, 'deadline' | 'crashes'>, { extendMs, begun }: HeldClaim, now: number) {
  return { deadline: extendMs === null ? run.deadline : now + extendMs, crashes: begun ?? run.crashes }
}
