// The messages of a heartbeat and of a release: the leases that a process reports, the store's answer, and the leases that
// it gives back.

import type { Lease, ControlRequest } from './run.ts'

/**
 * For so long a store keeps the row of a session that has ended. A first heartbeat, a claim or a start that was sent before
 * the end arrives within that time, and finds that the session has ended.
 */
export const endedSessionKeptMs = 24 * 60 * 60 * 1_000

/** With each end of sessions, so many rows of others go at most: those that ended first. */
export const sessionsForgottenAtOnce = 100

export interface BeatRequest {
  readonly session: string
  /** How long the session is alive without another heartbeat. */
  readonly leaseMs: number
  /**
   * It may be the first heartbeat of the session, and opens it then. Any other of a session that the store does not have is
   * answered as that of one that has ended: so an ended session never comes back, also when its row is gone. @default true
   */
  readonly opens?: boolean
  /** The leases that this session believes it holds. */
  readonly held?: readonly HeldClaim[]
  /**
   * Also looks for runs that the session holds and did not list. That is a scan over all of its leases, so a worker asks for
   * it rarely. Without it, `unknownLeases` is empty, and `controlRequests` and `timedOut` cover listed runs only. @default
   * true
   */
  readonly seeksUnknownLeases?: boolean
  /** Ends the session. The next rescue treats its remaining leases as crashes. */
  readonly end?: boolean
}

export interface HeldClaim {
  readonly runId: string
  readonly token: number
  /** Moves the deadline of the claim to this many milliseconds from now; null leaves it. */
  readonly extendMs: number | null
  /** How many messages its holder knows to have arrived. @default the holder does not ask for new messages */
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
  /** False when the session has ended, by its own request or because a rescue declared it dead: its leases are lost. */
  readonly alive: boolean
  /** Those of `held` that this session no longer holds. */
  readonly lost: readonly string[]
  /**
   * Those of `held` whose rows another transaction has locked: their deadline was not moved, and their begin mark not
   * written. The holder asks again with the next heartbeat. A lock never costs the session. @default none
   */
  readonly busy?: readonly string[]
  /**
   * Runs that this session holds and did not list: leased to it by a call whose answer it never got, or after the list was
   * made. At most 100 at once.
   */
  readonly unknownLeases: readonly { readonly runId: string; readonly token: number }[]
  /**
   * Unknown leases were requested, and the store could not scan all of them in time, or pauses such scans: it reports none,
   * and the worker asks again with the next heartbeat. @default it has scanned, if it was asked to
   */
  readonly unknownLeasesSkipped?: true
  /** Runs that this session holds and that have a request to cancel or pause. */
  readonly controlRequests: readonly { readonly runId: string; readonly controlRequest: ControlRequest }[]
  /** Those of `held` for which more messages have arrived than its holder knows of. */
  readonly messages: readonly { readonly runId: string; readonly inbox: number }[]
  /** Runs that this session holds past the timeout of the run: their holder must fail them. */
  readonly timedOut: readonly string[]
  readonly now: number
}
