// What is fuzzed: something that takes what strangers write. Each target has cases to draw, cases that are kept because they
// once went wrong elsewhere, and says what may come of one: an answer, or one of the errors that it declares.

import { isHoldfastError, type ErrorCode } from '../../src/core/errors/error.ts'
import type { fc } from '../support/properties.ts'

export interface Target {
  readonly name: string
  /** How many of a million cases are its own: what is quick gets more. */
  readonly perMillion: number
  readonly cases: fc.Arbitrary<unknown>
  readonly corpus: readonly unknown[]
  /** Throws, or rejects, if something other came of a case than may. */
  readonly run: (drawn: never) => void | Promise<void>
}

/** The same with the type of its cases checked. */
export function target<Case>(
  one: Omit<Target, 'cases' | 'corpus' | 'run'> & {
    readonly cases: fc.Arbitrary<Case>
    readonly corpus: readonly Case[]
    readonly run: (drawn: Case) => void | Promise<void>
  },
): Target {
  return one
}

/** What the work gives; undefined if it was refused with one of these codes. Anything else that is thrown is a finding. */
export function allowing<Result>(codes: readonly ErrorCode[], work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    assertAllowed(codes, error)
    return undefined
  }
}

/** The same for what takes its time. */
export async function allowingLater<Result>(
  codes: readonly ErrorCode[],
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work()
  } catch (error) {
    assertAllowed(codes, error)
    return undefined
  }
}

function assertAllowed(codes: readonly ErrorCode[], error: unknown): void {
  if (!isHoldfastError(error) || !codes.includes(error.code)) {
    throw new Error(`It threw ${isHoldfastError(error) ? error.code : 'no error of ours'}`, { cause: error })
  }
}

export function holds(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}
