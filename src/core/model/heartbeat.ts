// What a process tells the store of what it holds, what the store tells it, and what it gives back.

import type { Lease, ControlRequest } from './run.ts'

export interface BeatRequest {
  readonly session: string
  /** How long the session is alive without another beat. */
  readonly leaseMs: number
  /** What this session believes to hold. */
  readonly held?: readonly HeldClaim[]
  /**
   * Also looks for runs that the session holds and did not list. That is a walk over all that it holds, so a worker asks
   * for it seldom. Without it, `unknownLeases` is empty, and `controlRequests` and `timedOut` tell of listed runs only. @default true
   */
  readonly seeksUnknownLeases?: boolean
  /** Ends the session. What it still holds is treated as a crash by the next rescue. */
  readonly end?: boolean
}

export interface HeldClaim {
  readonly runId: string
  readonly token: number
  /** Moves the deadline of the claim to so many milliseconds from now; null to leave it. */
  readonly extendMs: number | null
  /** How many messages its holder knows to have arrived. @default it does not want to know */
  readonly inbox?: number
  /**
   * The run was claimed in isolation and begins now: its `crashes` become this number. Saying it again changes nothing.
   * @default they stay
   */
  readonly begun?: number
}

/** A lease that its holder gives back. */
export interface ReleasedLease extends Lease {
  readonly runId: string
  /** How many crashes it had before this claim, if its holder knows. @default one less than it has */
  readonly crashes?: number
}

export interface Beat {
  /** False when the session has ended, by its own will or because others thought it dead: its leases are lost. */
  readonly alive: boolean
  /** Those of `held` that this session does not hold any more. */
  readonly lost: readonly string[]
  /**
   * Those of `held` that somebody else has locked: their deadline was not moved, and their beginning not noted. Whoever
   * holds them asks again with the next beat. The session is kept whatever is locked. @default none
   */
  readonly busy?: readonly string[]
  /**
   * Runs that this session holds and did not list: leased to it by a call whose answer it never got, or after the list was
   * made. At most 100 at once.
   */
  readonly unknownLeases: readonly { readonly runId: string; readonly token: number }[]
  /**
   * Unknown leases were asked for, and the store could not look through all of them in time, or rests from such looks: it tells of none,
   * and whoever asked asks again with the next beat. @default it has looked, if it was asked to
   */
  readonly unknownLeasesSkipped?: true
  /** Runs that this session holds and that somebody wants cancelled or paused. */
  readonly controlRequests: readonly { readonly runId: string; readonly controlRequest: ControlRequest }[]
  /** Those of `held` for which more messages have arrived than its holder knows of. */
  readonly mail: readonly { readonly runId: string; readonly inbox: number }[]
  /** Runs that this session holds although the time for the whole run is over: their holder must fail them. */
  readonly timedOut: readonly string[]
  readonly now: number
}
