// The request and the answer of a claim, which runs it may take, and the row of a claimed run. The order in which it takes
// them is in `claim-order.ts`.

import { isTimeOver } from './deadline.ts'
import { isReadable } from './readable.ts'
import type { Entry } from '../../model/entry.ts'
import type { Run } from '../../model/run.ts'

export interface ClaimRequest {
  /** The claiming session. A session that has ended gets nothing. */
  readonly session: string
  /** Which types and versions, and in which order types take turns: the type that was served last is named last. */
  readonly selectors: readonly ClaimSelector[]
  readonly limit: number
  /** Suspects, which may end the process that performs them, and nothing else. @default false */
  readonly isolated?: boolean
  /** The keys that the claimer reads with: runs that were last written with another one are passed over. @default any key */
  readonly keys?: readonly string[]
  /**
   * This run and no other, if it is due and is no suspect. The answer says nothing of other runs: `more` is false, and `nextDue`
   * null. @default any run
   */
  readonly runId?: string
}

export interface Selector {
  readonly type: string
  readonly version: number
}

export interface ClaimSelector extends Selector {
  /** The deadline of each claim of this type. @default null, only the session's heartbeat keeps it */
  readonly leaseMs?: number | null
}

export interface Claimed {
  readonly runs: readonly Run[]
  /**
   * The journals of those that no worker has begun or written to: one entry each. They need not be loaded. A store that has
   * them at hand spares its caller a round trip. Together they take `mostFreshBytes` at most: larger ones are left to a
   * load, which is bounded, too. @default all must be loaded
   */
  readonly fresh?: readonly Fresh[]
  /** More that match were ready than the limit allowed. */
  readonly more: boolean
  /**
   * When the next run that matches, of any key, and is not due yet comes due by itself; null if there is none. A store may
   * leave out one that is more than ten seconds away: a worker asks again sooner than that.
   */
  readonly nextDue: number | null
  readonly now: number
}

/** The most bytes that the payloads of `fresh` take together, in UTF-8. */
export const mostFreshBytes = 8 * 1024 * 1024

/** A run that no worker has begun, and the one entry of its journal. */
export interface Fresh {
  readonly runId: string
  readonly entry: Entry
}

/** Whether a run that is due may be claimed: its time is not over, and the claimer can read it. */
export function isClaimable(
  run: Pick<Run, 'timeoutAt' | 'expiresAt' | 'keyId'>,
  request: ClaimRequest,
  now: number,
): boolean {
  return !isTimeOver(run, now) && isReadable(run, request)
}

/** Whether a claim that names one run gets it. */
export function isClaimableByName(run: Run, request: ClaimRequest, now: number): boolean {
  const isDue = run.readiness === 'ready' || run.readiness === 'timed'
  if (!isDue || run.due === null || run.due > now || run.id !== request.runId) return false
  return isClaimable(run, request, now) && request.selectors.some((one) => isSelected(run, one))
}

function isSelected(run: Selector, { type, version }: Selector): boolean {
  return run.type === type && run.version === version
}

/** The columns of a run that a claim writes. */
export type ClaimColumns = Pick<
  Run,
  'status' | 'readiness' | 'due' | 'session' | 'token' | 'crashes' | 'deadline' | 'expiresAt' | 'wakeNames'
>

/** What a claim writes to a run that it takes. */
export function claimColumns(run: Run, request: ClaimRequest, now: number): ClaimColumns {
  const leaseMs = leaseMsOf(run, request)
  return {
    status: run.status === 'cancelling' ? 'cancelling' : 'running',
    readiness: 'leased',
    due: null,
    session: request.session,
    token: run.token + 1,
    // A suspect is counted when it begins.
    crashes: request.isolated === true ? run.crashes : run.crashes + 1,
    deadline: leaseMs === null ? null : now + leaseMs,
    expiresAt: null,
    wakeNames: null,
  }
}

/** How long a claim of that run lasts without a word of its holder. The first selector that names it counts. */
function leaseMsOf(run: Selector, { selectors }: ClaimRequest): number | null {
  return selectors.find((one) => isSelected(run, one))?.leaseMs ?? null
}
