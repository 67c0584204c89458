// The obstacles to a start, and its answer, for every store. A run is not inserted if its id exists, if a run of its type
// that is not deleted has its idempotency key, or if a live run has its business key in its scope: in this order.
//
// A store with exclusive access to its rows looks first and inserts then (`startRun`). Where other transactions may insert
// meanwhile, the unique indexes decide: such a store inserts, and looks up the obstacle to each run that was not inserted
// (`obstacleTo`). If that obstacle is gone by then, the start goes into another round (`startInRounds`).

import { bug } from '../errors/error.ts'
import { commit, judge, type StartingWork } from './commit.ts'
import type { NewRun, Started } from '../model/new-run.ts'
import type { RunStart } from './run-start.ts'
import type { Run } from '../model/run.ts'
import type { Transition } from '../model/transition.ts'

/** A run, and the transition with which it was inserted. */
export interface Twin {
  readonly run: Run
  readonly transition: string | null | undefined
}

/** The rows that the rules read to find the obstacle to a start. */
export interface ObstacleWork {
  /** The run that has its id. */
  twin(given: NewRun): Twin | undefined
  /** The run, not deleted, that was started as its type with its idempotency key. */
  sameStart(given: NewRun): Run | undefined
  /** The live run that has its business key in its scope. */
  keyRival(given: NewRun): Run | undefined
}

/** The rows that the rules read and write to start runs, of a store with exclusive access to them. */
export interface StartWork extends ObstacleWork {
  hasEnded(session: string): boolean
  /** Inserts the row, its first entry and what lies in its mailbox. Answers the row, as it may be handed out. */
  insert(given: RunStart, isLeased: boolean): Run
  /** What follows from the first input of a run takes effect: `follow`. */
  follow(decided: Transition): Followed
}

/** The answer to a start that inserts nothing; null if nothing is in its way. */
export function obstacleTo(work: ObstacleWork, given: NewRun): Started | null {
  const twin = work.twin(given)
  if (twin !== undefined) return startedBefore(twin, given)
  const same = given.idempotencyKey === null ? undefined : work.sameStart(given)
  if (same !== undefined) return { created: false, taken: 'idempotency-key', run: same }
  const rival = given.key === null ? undefined : work.keyRival(given)
  return rival === undefined ? null : { created: false, taken: 'key', run: rival }
}

/** A start whose first answer was lost finds its own transition id; any other run of that id is in its way. */
export function startedBefore({ run, transition }: Twin, given: NewRun): Started {
  const created = transition === given.transition
  return { created, taken: created ? null : 'id', run }
}

export function startRun(work: StartWork, given: RunStart): Started {
  const answer = obstacleTo(work, given) ?? insertRun(work, given)
  const { decided = null } = given
  return decided === null || !answer.created ? answer : { ...answer, ...work.follow(decided) }
}

function insertRun(work: StartWork, given: RunStart): Started {
  const { lease, decided = null } = given
  const isLeased = lease !== null && decided === null && !work.hasEnded(lease.session)
  return { created: true, taken: null, run: work.insert(given, isLeased) }
}

/** The row of a run after what follows from its first input, and the children that were leased with that. */
export type Followed = Pick<Started, 'run' | 'leased'>

/** What follows from the first input takes effect; or it did, with a start whose answer was lost. */
export function follow(work: StartingWork, decided: Transition): Followed {
  const { runId } = decided
  const run = work.run(runId)
  const answer = judge(work, run, decided) ?? commit(work, run as Run, decided)
  if (answer.outcome === 'refused') throw bug('What follows from a first input is refused', { runId })
  const { leased } = answer
  return { run: work.run(runId) as Run, ...(leased === undefined ? {} : { leased }) }
}

/** The conflicting run may end before it is looked up, and the next one, too; but not for ever. */
const mostRounds = 100

/** Tries those that are not answered yet, round after round. One answer for each, in order. */
export async function startInRounds(
  runs: readonly RunStart[],
  tryOnce: (open: readonly RunStart[], answers: Map<RunStart, Started>) => Promise<void>,
): Promise<readonly Started[]> {
  const answers = new Map<RunStart, Started>()
  let open = runs
  for (let round = 0; open.length > 0; round += 1) {
    if (round === mostRounds) throw bug('A start was neither inserted nor found in conflict', { runs: open.length })
    await tryOnce(open, answers)
    open = answers.size === runs.length ? [] : open.filter((run) => !answers.has(run))
  }
  return runs.map((run) => answers.get(run) as Started)
}
