// Which runs become suspects when processes die, and when a suspect has its next turn.
//
// A process that dies takes all its runs with it, so that a death says little about a run. A run that was claimed twice
// without a commit is a suspect: it is performed in isolation, in a process that does nothing else meanwhile. Only the
// outcome there decides about it. If it commits something it is innocent; if its process dies, that was one more crash. A
// process that lost the suspect and lives takes that crash back.

import type { Run } from '../../model/run.ts'

/** From so many crashes on a run is a suspect. One death is no suspicion: everything that a process held would be one. */
const suspectFrom = 2

/** The least bound on crashes that can be kept: only a suspect that died in isolation has more crashes than a suspect. */
export const leastMaxCrashes = suspectFrom + 1

const firstDelayMs = 1_000
const longestDelayMs = 60_000

/** Whether a run without a holder must be performed in isolation. */
export function isSuspect({ crashes }: Pick<Run, 'crashes'>): boolean {
  return crashes >= suspectFrom
}

/** Whether a death counts that a run died in isolation. */
export function diedIsolated({ crashes }: Pick<Run, 'crashes'>): boolean {
  return crashes > suspectFrom
}

/**
 * How long a suspect waits for its next turn: not at all at first, then longer after each death in isolation, so that others
 * go on.
 */
export function isolatedDelayMs(crashes: number): number {
  const deaths = crashes - suspectFrom
  return deaths <= 0 ? 0 : Math.min(firstDelayMs * 2 ** Math.min(deaths - 1, 30), longestDelayMs)
}
