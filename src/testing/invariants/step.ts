// Two states of one run that follow each other, and the call of the store that lies between them. A step is what one request
// of one call made of the run: of a batch with two requests for one run, the state between them must be seen, too.

import type { InvariantKind, RunState } from '../../core/invariants/invariant.ts'
import type { Run } from '../../core/run.ts'
import type { Store } from '../../store.ts'

/** Which call made the step. */
export interface Cause {
  readonly method: keyof Store
  /** The session that called; null if it was nobody's. */
  readonly session: string | null
  /** Store time of the call. */
  readonly now: number
  /** The token of the lease that the caller showed; undefined if that is not known. */
  readonly token?: number
  /** Whether a session was alive when the call was over; undefined if that is not known. */
  readonly isAlive?: (session: string) => boolean
}

export interface StepInvariant {
  readonly name: string
  readonly kind: Extract<InvariantKind, 'T'>
  readonly about: string
  /** Says what is wrong, or null. It is asked only about steps of a run that was there before. */
  readonly check: (before: RunState, after: RunState, cause: Cause) => string | null
}

/** The fields of the row in which two states differ. */
export function changedFields(before: Run, after: Run): readonly (keyof Run)[] {
  return (Object.keys(after) as (keyof Run)[]).filter((field) => !isSame(before[field], after[field]))
}

export function isSame(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))
}

export function isChanged(before: RunState, after: RunState): boolean {
  return after.entries.length !== before.entries.length || changedFields(before.run, after.run).length > 0
}

/** The entries that the step appended. */
export function appended(before: RunState, after: RunState): RunState['entries'] {
  return after.entries.slice(before.entries.length)
}
