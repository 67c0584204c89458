// What a style gives to the worker: a definition that can open a frame for a run, and what the worker lends to it.
// The worker knows nothing else of the three styles.

import type { Entry } from './entry.ts'
import type { Payloads } from './payload.ts'
import type { Ports } from './ports.ts'
import type { Lease, Run, TerminalStatus } from './run.ts'
import type { Transition } from './transition.ts'

export interface Definition {
  readonly type: string
  readonly version: number
  readonly style: 'function' | 'decider' | 'graph'
  /** How long one claim may last without a heartbeat of its own; null if the session's heartbeat is enough. */
  readonly leaseMs: number | null
  /** Turns what a caller gave to `start` into what the run will see, or says what is wrong with it. */
  readonly validate: (input: unknown) => unknown
  /** Prepares the execution of a run that this process holds. Nothing happens before `start`. */
  open(host: Host, claim: Claim): Frame
}

/** A run that this process has just leased. */
export interface Claim {
  readonly run: Run
  readonly lease: Lease
  /** The whole journal from the run's `base` on; not read when a frame is resumed. */
  readonly entries: readonly Entry[]
}

/** The execution of one run in this process. While the run is parked, its frame may stay in memory. */
export interface Frame {
  /** The `seq` up to which this frame knows the journal: it can be resumed while that is the run's. Null if never. */
  readonly seq: number | null
  /** Moves the run on until it ends, parks, is due again later, or is lost. */
  start(): Promise<Departure>
  /** Moves a parked run on, under a new lease and without replay. */
  resume(claim: Claim): Promise<Departure>
  /** Stops at once: aborts what is running and commits nothing any more. */
  abort(reason: unknown): void
}

export type Departure =
  /** The run is over. `data` is the payload of its last entry. */
  | { readonly kind: 'ended'; readonly status: TerminalStatus; readonly seq: number; readonly data: string }
  /** The run waits. Its frame may be kept for when it is claimed again. */
  | { readonly kind: 'parked' }
  /** The run is pending again, or paused. */
  | { readonly kind: 'released' }
  /** The lease or the journal went elsewhere; nothing more may be done for this run here. */
  | { readonly kind: 'lost'; readonly reason: unknown }

export interface Host {
  readonly ports: Ports
  readonly payloads: Payloads
  readonly services: unknown
  /** Retry delays up to this are waited in memory; longer ones release the run. */
  readonly inlineRetryMs: number
  /** A step of this run says that it is alive: the deadline of its claim moves on. */
  heartbeat(runId: string): void
  /** Store time as far as this process knows: never ahead of it. */
  now(): number
  /** An id for a transition, unique over all processes. */
  transitionId(): string
  /** Rejects with LEASE_LOST or STALE_WRITE when the store refuses. */
  commit(transition: Transition): Promise<Acknowledged>
}

export interface Acknowledged {
  readonly seq: number
  readonly at: number
  readonly inbox: number
  readonly released: boolean
}
