// The order in which runs of three steps are started and committed by hand.

import { threeStepRun, transitionAfter, type NewRun, type Transition } from './bare-runs.ts'

/** How many are under way at once, and how many of them go together. */
export interface Batches {
  readonly atOnce: number
  readonly start: number
  readonly commit: number
}

/** What takes them. It refuses none, or throws. */
export interface Taker {
  start(runs: readonly NewRun[]): Promise<void>
  commit(transitions: readonly Transition[]): Promise<void>
}

/** Keeps as many runs under way as the engine did, from the first to the last. */
export async function performThreeSteps(
  taker: Taker,
  session: string,
  { atOnce, start, commit }: Batches,
  runs: number,
): Promise<void> {
  let due: Transition[] = []
  let [started, ended] = [0, 0]
  while (ended < runs) {
    while (started < runs && started - ended + start <= Math.max(atOnce, start)) {
      const count = Math.min(start, runs - started)
      const fresh = Array.from({ length: count }, (_, index) => threeStepRun(session, started + index))
      await taker.start(fresh)
      for (const { id } of fresh) due.push(transitionAfter(session, id, 1)!)
      started += count
    }
    const batch = due.slice(0, commit)
    due = due.slice(commit)
    await taker.commit(batch)
    for (const { runId, guard, append } of batch) {
      const next = transitionAfter(session, runId, guard.seq + append.length)
      if (next === null) ended += 1
      else due.push(next)
    }
  }
}
