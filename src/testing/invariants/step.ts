// Two states of one run that follow each other, and the call of the store that lies between them. A step is what one request
// of one call made of the run: of a batch with two requests for one run, the state between them must be seen, too.

import type { InvariantKind, RunState } from '../../core/invariants/invariant.ts'
import type { Run } from '../../core/model/run.ts'
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

/** Calls in which something may pass from one run to others. */
const exchanging: ReadonlySet<keyof Store> = new Set(['commit', 'deliver', 'control', 'rescue', 'release', 'doChores'])

/** What a message, and somebody who waits for its end, change of a row. */
const message = ['inbox', 'watched', 'readiness', 'due'] as const
/** What the end of the run that started it changes of a row, besides. */
const bound = ['status', 'controlRequest', 'undo', 'timeoutAt', 'expiresAt', 'seq', 'updatedAt'] as const

/**
 * What the step made of the run is what others may do to it: they put messages into its mailbox, which wakes it if it
 * waits; they wait for its end; and they end, so that it is cancelled.
 */
export function isExchange(before: RunState, after: RunState, method: keyof Store): boolean {
  if (!exchanging.has(method)) return false
  const fields = changedFields(before.run, after.run)
  const added = appended(before, after)
  if (before.run.status !== 'cancelling' && after.run.status === 'cancelling') {
    const allowed: readonly (keyof Run)[] = [...message, ...bound]
    const isKnown = added.every(({ kind }) => kind === 'cancelling') && added.length <= 1
    return method !== 'deliver' && isKnown && fields.every((field) => allowed.includes(field))
  }
  const isWoken = before.run.status === 'waiting' && after.run.readiness === 'ready' && fields.includes('inbox')
  const isMoved = fields.includes('readiness') || fields.includes('due')
  return added.length === 0 && fields.every((field) => isOf(message, field)) && (isWoken || !isMoved)
}

function isOf(fields: readonly (keyof Run)[], field: keyof Run): boolean {
  return fields.includes(field)
}

/** The entries that the step appended. */
export function appended(before: RunState, after: RunState): RunState['entries'] {
  return after.entries.slice(before.entries.length)
}
