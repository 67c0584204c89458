// Two consecutive states of one run, and the store call between them. A step is the effect of one request of one call: of a
// batch with two requests for one run, the state between them must be captured, too.

import type { InvariantKind, RunState } from '../../core/invariants/invariant.ts'
import type { Run } from '../../core/model/run.ts'
import type { Store } from '../../store.ts'

/** The call that made the step. */
export interface Cause {
  readonly method: keyof Store
  /** The session that called; null if the call has no session. */
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
  /** Describes a violation, or returns null. Called only for steps of a run that existed before. */
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

/** Calls in which one run may affect others. */
const exchanging: ReadonlySet<keyof Store> = new Set(['commit', 'deliver', 'control', 'rescue', 'release', 'doChores'])

/** The fields of a row that a message, or a run that begins to wait for its end, changes. */
const message = ['inbox', 'watched', 'readiness', 'due'] as const
/** The further fields of a row that the end of its parent changes. */
const bound = ['status', 'controlRequest', 'undo', 'timeoutAt', 'expiresAt', 'seq', 'updatedAt'] as const

/**
 * Whether the step is an effect that other runs may have on it: they put messages into its mailbox, which wakes it if it
 * waits; they wait for its end; and its parent ends, so that it is cancelled.
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
