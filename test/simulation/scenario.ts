// Everything that a simulation is given, as data: a seed gives a scenario, and shrinking takes parts of one away.

import type { Program } from './program.ts'
import type { SignalName, TopicName } from './node.ts'

export interface Scenario {
  readonly seed: number
  readonly swarm: Swarm
  readonly isolation: Isolation
  readonly programs: readonly Program[]
  readonly operations: readonly Operation[]
  readonly blows: readonly Blow[]
  /** Users' transactions, which hold rows of runs. Only a read-committed store has such. */
  readonly strangers: readonly Stranger[]
  /** When everything heals. */
  readonly chaosMs: number
}

/**
 * `serial`: a store call takes effect at once. `read committed`: its statements do, one after the other, and those of other
 * calls come in between.
 */
export type Isolation = 'serial' | 'read committed'

/** What is drawn once for a whole seed: whole classes of faults are on or off. */
export interface Swarm {
  readonly workers: number
  readonly slots: number
  readonly parked: number
  readonly leaseMs: number
  readonly inlineRetryMs: number
  /** The longest usual way of a request or a reply. */
  readonly latencyMs: number
  /** The store sends hints of new work; each hint is lost with this probability. */
  readonly hints: { readonly sent: boolean; readonly lost: number }
  /** Committer and starter send so much at once; null for their own limit. */
  readonly batch: number | null
  /** The probability of each fault of a store call. */
  readonly faults: Readonly<Record<FaultKind, number>>
  /** By worker. */
  readonly skews: readonly Skew[]
}

/**
 * `before`: an error, and nothing happened. `after`: an error, and it happened. `slow`: it takes long to get there or back.
 * `lost`: it happened, and nobody answers before the connection is given up.
 */
export type FaultKind = 'before' | 'after' | 'slow' | 'lost'

export const faultKinds: readonly FaultKind[] = ['before', 'after', 'slow', 'lost']

/** How the clock of a process differs from true time. */
export interface Skew {
  readonly shape: 'none' | 'offset' | 'step' | 'drift' | 'swing'
  readonly offsetMs: number
  readonly stepAtMs: number
  readonly stepMs: number
  /** How fast it goes; 1 is right. */
  readonly rate: number
  readonly swingMs: number
  readonly swingEveryMs: number
}

export type Blow = {
  readonly at: number
  /** Which process. */
  readonly process: number
} & (
  | { readonly kind: 'crash'; readonly backAfterMs: number }
  | { readonly kind: 'stand-still'; readonly ms: number }
  /** It is closed in good order, and begun anew. */
  | { readonly kind: 'restart'; readonly backAfterMs: number }
)

/** An open transaction of a stranger, which locks the row of a run. */
export interface Stranger {
  readonly at: number
  /**
   * The run that is to be claimed next, the one that comes due next, or one of those that are held or wait for others then: a
   * fraction of their number.
   */
  readonly row: 'first' | 'next' | number | { readonly waiting: number }
  readonly ms: number
}

export interface StartPlan {
  readonly kind: 'start'
  readonly program: number
  readonly how: 'id' | 'idempotency-key' | 'key' | 'key-return' | 'anyhow'
  readonly timeoutMs: number | null
  readonly expiresInMs: number | null
  readonly runAtMs: number | null
  readonly priority: number
  /** A client waits for the result. */
  readonly waits: boolean
}

export type Operation = {
  readonly at: number
  /** Which process does it; another if that one is away. */
  readonly by: number
} & (
  | StartPlan
  | { readonly kind: 'cancel'; readonly program: number; readonly mode: 'cooperative' | 'now' }
  | { readonly kind: 'pause' | 'resume' | 'retry' | 'remove'; readonly program: number }
  | { readonly kind: 'signal'; readonly program: number; readonly name: SignalName; readonly id: string }
  | { readonly kind: 'broadcast'; readonly program: number; readonly topic: TopicName; readonly id: string }
)

/** Asked for processes that do no work: they only start and steer. */
export const clients = 1
