// Exit codes: one table, by who must act. Help, docs/cli.md and the tests read it from here.

import { isHoldfastError, type ErrorFamily } from '../core/errors/error.ts'

const exitCodes = {
  usage: 2,
  'not-found': 3,
  conflict: 4,
  failure: 5,
  drift: 6,
  unavailable: 7,
  bug: 70,
} as const satisfies Record<ErrorFamily, number>

const unexpectedExit = 1

/** Each code and what it says, as help shows it. */
export const exitCodeRows: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'it was done'],
  [unexpectedExit, 'something unexpected happened'],
  [exitCodes.usage, 'usage: an argument, option, module or store address is wrong'],
  [exitCodes['not-found'], 'not-found: there is no such run'],
  [exitCodes.conflict, 'conflict: the run is in the way, or in another status'],
  [exitCodes.failure, 'failure: the run failed or was cancelled (start --wait, watch), or the input was rejected'],
  [exitCodes.drift, 'drift: code and journal disagree (start --wait, watch, check --against)'],
  [exitCodes.unavailable, 'unavailable: the store does not answer, or refuses; the message says what to do'],
  [exitCodes.bug, 'bug: a defect of Holdfast, please report it'],
  [130, 'interrupted by Ctrl-C (143: by SIGTERM)'],
]

export function exitCodeOf(error: unknown): number {
  return isHoldfastError(error) ? (exitCodes[error.family] ?? unexpectedExit) : unexpectedExit
}
