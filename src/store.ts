// The port behind which a database stands. A store commits batches of transitions and hands out work; it knows nothing
// of workflows, styles or payloads. What each method must do is told by the contract suite in `holdfast/testing`,
// which every store passes; the memory store is the reference.
//
// All times are the store's own: a caller learns them from answers and never compares its own clock with a lease.
// What a store hands out is a copy: it does not change later, and changing it does not change the store.

import type { Draft, Entry } from './core/entry.ts'
import type { Lease, Run, RunStatus } from './core/run.ts'
import type { Due, Transition } from './core/transition.ts'

export interface Store {
  readonly capabilities: Capabilities

  /** Creates or updates the schema. Safe to call from many processes at once, and again. */
  migrate(): Promise<void>

  /**
   * Inserts runs, each with its first entry. One answer per run, in order; an id that exists, or that comes twice, is
   * answered, not replaced.
   */
  start(runs: readonly NewRun[]): Promise<readonly Started[]>

  /**
   * Leases what is due to a session: highest priority first, then the longest due, then the lowest id. A leased run is
   * due no more. A run whose time is over is not handed out.
   */
  claim(request: ClaimRequest): Promise<Claimed>

  /** Reads what a holder needs to go on: a page of each run's journal and its mailbox. One answer per request, in order. */
  load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]>

  /**
   * Commits transitions, each atomic and fenced. One answer per transition, in order; a refusal harms no other.
   * A batch holds at most one transition of a run. What only a defect could ask for (nothing to append without parking,
   * a move that the status machine does not know) rejects the whole call with BUG; what else was in it may be repeated.
   */
  commit(transitions: readonly Transition[]): Promise<readonly Committed[]>

  /**
   * Puts messages into mailboxes and wakes runs that wait; one that is due already keeps its place. One answer per
   * message, in order.
   */
  deliver(messages: readonly NewMessage[]): Promise<readonly Delivered[]>

  /**
   * Keeps a session alive and, with it, all its leases. The first beat opens the session, before it leases anything; one
   * that has ended never comes back.
   */
  beat(request: BeatRequest): Promise<Beat>

  /**
   * Takes runs from holders that are dead or past their deadline, and ends runs whose time is over. First, in a
   * transaction of its own, every session is marked as ended whose heartbeat ran out; then what such sessions hold (or
   * sessions that never beat) is released: `pending`, due at once, with a `crashed` entry, or `failed` after too many
   * crashes. Anyone may call it, any number at once.
   */
  rescue(request: RescueRequest): Promise<Rescued>

  /**
   * Gives leased runs back unharmed: `pending`, due at once, no crash counted and none of earlier holders forgotten. Leases
   * that are lost are passed over.
   */
  release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void>

  /** Reads rows. One answer per id, in order; undefined where there is no such run. */
  get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]>

  /** The feed: entries of all runs in commit order, after a position. It may lag behind commits; it never skips one. */
  changes(after: number, limit: number): Promise<readonly Change[]>

  /**
   * Calls back when something may have become claimable, now or at a time nearer than was known, or a run has ended.
   * A hint comes after what it tells of can be read, and never after unsubscribing. It may be lost; polling is the truth.
   */
  listen(onHint: (hint: Hint) => void): Promise<() => void>

  /** Lets go of everything. Afterwards every call is rejected with CLOSED; closing again is fine. */
  close(): Promise<void>
}

/** Queries for people and pages. They may be slow; nothing that moves runs depends on them. */
export interface StoreAdmin {
  /** Runs that match, newest first: by id, which tells when it was made. */
  find(filter: RunFilter): Promise<readonly Run[]>
}

export interface Capabilities {
  /** Other processes are told of new work without polling. */
  readonly notifies: boolean
  /** Several processes may open this store at once. */
  readonly multiProcess: boolean
}

export interface NewRun {
  readonly id: string
  readonly shard: number
  readonly type: string
  readonly version: number
  readonly priority: number
  /** Not to be claimed before this; null for at once. */
  readonly due: Due | null
  /** It fails if it has not ended by then, counted from the insert; null for never. */
  readonly timeoutMs: number | null
  /** It fails if nobody has begun it by then, counted from the insert; null for never. */
  readonly expiresInMs: number | null
  /** Leases the run to the caller in the same insert, unless the caller's session has ended. */
  readonly lease: Lease | null
  /** The deadline of that lease; null if only the session's heartbeat keeps it. */
  readonly leaseMs: number | null
  /** Makes the repetition of this start a no-op: it is told that it created the run, as long as the run exists. */
  readonly transition: string
  readonly first: Draft
}

export interface Started {
  readonly created: boolean
  /** The row as it is now; when `created` and a lease was asked for, leased to the caller if its session is alive. */
  readonly run: Run
}

export interface ClaimRequest {
  /** Who claims. A session that has ended gets nothing. */
  readonly session: string
  readonly selectors: readonly ClaimSelector[]
  readonly limit: number
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
  /** More that match were ready than the limit allowed. */
  readonly more: boolean
  /** When the next run that matches and is not due yet comes due by itself; null if there is none. */
  readonly nextDue: number | null
  readonly now: number
}

export interface BeatRequest {
  readonly session: string
  /** How long the session is alive without another beat. */
  readonly leaseMs: number
  /** Claims of this session whose deadline moves to so many milliseconds from now. */
  readonly extend?: readonly { readonly runId: string; readonly token: number; readonly ms: number }[]
  /** Ends the session. What it still holds is treated as a crash by the next rescue. */
  readonly end?: boolean
}

export interface Beat {
  /** False when the session has ended, by its own will or because others thought it dead: its leases are lost. */
  readonly alive: boolean
  /** Those of `extend` that this session does not hold any more. */
  readonly lost: readonly string[]
  /** Runs that this session holds although the time for the whole run is over: their holder must fail them. */
  readonly timedOut: readonly string[]
  readonly now: number
}

export interface RescueRequest {
  /** At most so many runs at once. */
  readonly limit: number
  /** A run whose holders died so many times in a row fails. */
  readonly maxCrashes: number
  /** What is written as the data of a `failed` entry, by reason. */
  readonly failures: Readonly<Record<RescueFailure, string>>
}

/** `crashed`: too many holders died. `timed-out`: the whole run took too long. `expired`: nobody began it in time. */
export type RescueFailure = 'crashed' | 'timed-out' | 'expired'

export interface Rescued {
  /** How many sessions were found dead. */
  readonly sessionsEnded: number
  /** Runs that were taken from their holders and are pending again. */
  readonly takenOver: readonly TakenOver[]
  /** Runs that were ended. */
  readonly failed: readonly { readonly runId: string; readonly type: string; readonly reason: RescueFailure }[]
  /** There may be more to do: rescue again at once. */
  readonly more: boolean
  /** When the next session, deadline or timeout that is known now runs out, if nothing happens; null if there is none. */
  readonly next: number | null
  readonly now: number
}

export interface TakenOver {
  readonly runId: string
  readonly type: string
  /** Who held it. */
  readonly session: string
  readonly crashes: number
}

export interface LoadRequest {
  readonly runId: string
  /** Entries with a higher `seq` than this. */
  readonly after: number
  readonly limit: number
}

export interface Loaded {
  readonly entries: readonly Entry[]
  readonly messages: readonly Message[]
}

export type Committed =
  | {
      readonly outcome: 'committed'
      readonly seq: number
      readonly at: number
      /** As it stands now: the one thing that a repetition may answer otherwise. */
      readonly inbox: number
      /** False when parking was asked for and a message had arrived: look again. The entries are appended all the same. */
      readonly released: boolean
    }
  | { readonly outcome: 'refused'; readonly reason: Refusal }

/**
 * `not-found`: no such run. `lease-lost`: somebody else holds the run, or nobody. `stale`: the writer holds it, but the
 * journal is not where it thinks.
 */
export type Refusal = 'stale' | 'lease-lost' | 'not-found'

export interface NewMessage {
  /**
   * Client-made, unique within its run. Delivering an id again that was accepted changes nothing and answers as the first
   * time, whatever has become of the run.
   */
  readonly id: string
  readonly runId: string
  readonly name: string
  readonly data: string
}

export interface Message extends NewMessage {
  /** The run's `inbox` after this message: first in, first out. */
  readonly position: number
  readonly at: number
}

export type Delivered =
  /** The run was waiting and has been woken. */
  | { readonly outcome: 'delivered' }
  /** The message lies in the mailbox of a run that is busy, not begun or paused. */
  | { readonly outcome: 'queued' }
  | { readonly outcome: 'target-terminated'; readonly status: RunStatus }
  | { readonly outcome: 'target-not-found' }

export interface Change {
  readonly position: number
  readonly runId: string
  readonly entry: Entry
}

export type Hint =
  { readonly kind: 'ready'; readonly type: string } | { readonly kind: 'ended'; readonly runId: string }

export interface RunFilter {
  readonly type?: string
  readonly status?: RunStatus
  readonly limit: number
}
