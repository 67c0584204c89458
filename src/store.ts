// The port behind which a database stands. A store commits batches of transitions and hands out work; it knows nothing
// of workflows, styles or payloads. What each method must do is told by the contract suite in `holdfast/testing`,
// which every store passes; the memory store is the reference.
//
// All times are the store's own: a caller learns them from answers and never compares its own clock with a lease.
// What a store hands out is a copy: it does not change later, and changing it does not change the store.

import type { Entry, EntryKind } from './core/entry.ts'
import type { Letter } from './core/exchange.ts'
import type { Delivered, Fate, Message } from './core/message.ts'
import type { NewRun } from './core/new-run.ts'
import type { Lease, Run, RunStatus, Wish } from './core/run.ts'
import type { Steered, SteerRequest } from './core/steering.ts'
import type { RescueFailure, TakeoverRules } from './core/takeover.ts'
import type { NewBroadcast } from './core/topic.ts'
import type { Transition } from './core/transition.ts'

export { mailAtOnce, type Delivered, type Message } from './core/message.ts'
export type { NewRun } from './core/new-run.ts'
export type { NewBroadcast } from './core/topic.ts'
export type { Steered, SteerRequest } from './core/steering.ts'
export type { RescueFailure } from './core/takeover.ts'

export interface Store {
  readonly capabilities: Capabilities

  /** Creates or updates the schema. Safe to call from many processes at once, and again. */
  migrate(): Promise<void>

  /**
   * Inserts runs, each with its first entry. One answer per run, in order. A run is not inserted, and the one that is in
   * its way is answered, when its id exists or comes twice, when a run of its type that is not deleted has its idempotency
   * key, or when a live run has its business key in its scope; in this order, and by unique indexes.
   */
  start(runs: readonly NewRun[]): Promise<readonly Started[]>

  /**
   * Leases what is due to a session: highest priority first, then the longest due, then the lowest id. A leased run is
   * due no more. A run whose time is over is not handed out; one that is being cancelled is, and stays `cancelling`.
   */
  claim(request: ClaimRequest): Promise<Claimed>

  /**
   * Reads what a holder needs to go on: a page of each run's journal, and what it asks for of its mailbox. One answer per
   * request, in order.
   */
  load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]>

  /**
   * Commits transitions, each atomic and fenced. One answer per transition, in order; a refusal harms no other.
   * A batch holds at most one transition of a run. What only a defect could ask for (nothing to append without parking,
   * a move that the status machine does not know) rejects the whole call with BUG; what else was in it may be repeated.
   */
  commit(transitions: readonly Transition[]): Promise<readonly Committed[]>

  /**
   * Puts messages into mailboxes and wakes runs that wait; one that is due already keeps its place. What is sent to a topic
   * goes to those who wait on it, by the rules of `exchange.ts`. One answer per message, in order; of two, the second finds
   * what the first made of everything.
   */
  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]>

  /**
   * Does what people ask of runs from outside, each by the rules of `steering.ts`. One answer per request, in order. Of two
   * requests for one run the second finds what the first made of it.
   */
  steer(requests: readonly SteerRequest[]): Promise<readonly Steered[]>

  /**
   * Keeps a session alive and, with it, all its leases. The first beat opens the session, before it leases anything; one
   * that has ended never comes back.
   */
  beat(request: BeatRequest): Promise<Beat>

  /**
   * Takes runs from holders that are dead or past their deadline, and ends runs whose time is over. First, in a
   * transaction of its own, every session is marked as ended whose heartbeat ran out; then what such sessions hold (or
   * sessions that never beat) is taken by the rules of `takeover.ts`. Anyone may call it, any number at once.
   */
  rescue(request: RescueRequest): Promise<Rescued>

  /**
   * Gives leased runs back unharmed, by the rules of `takeover.ts`: due at once, no crash counted and none of earlier
   * holders forgotten. Leases that are lost are passed over.
   */
  release(leases: readonly (Lease & { readonly runId: string })[]): Promise<void>

  /** Reads rows. One answer per id, in order; undefined where there is no such run. */
  get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]>

  /** The feed: entries of all runs in commit order, after a position. It may lag behind commits; it never skips one. */
  changes(after: number, limit: number): Promise<readonly Change[]>

  /**
   * Calls back when something may have become claimable, now or at a time nearer than was known, when a run has ended, or
   * when a message came for one that is being performed.
   * A hint comes after what it tells of can be read, and never after unsubscribing. It may be lost; polling is the truth.
   */
  listen(onHint: (hint: Hint) => void): Promise<() => void>

  /** Lets go of everything. Afterwards every call is rejected with CLOSED; closing again is fine. */
  close(): Promise<void>
}

/** Queries for people and pages. They may be slow; nothing that moves runs depends on them. */
export interface StoreAdmin {
  /** Runs that match all of the filter, newest first: by id, which tells when it was made. */
  find(filter: RunFilter, page: Page): Promise<readonly Run[]>

  /** How many match, counted no further than to `atMost`. */
  count(filter: RunFilter, atMost: number): Promise<number>

  /** Messages that gave up because their run had ended, the newest first. */
  deadLetters(filter: DeadLetterFilter, page: Page): Promise<readonly DeadLetter[]>

  /** A dead letter is dead no more: it was sent again, or is not wanted. False if it was not dead. */
  settleDeadLetter(letter: { readonly runId: string; readonly id: string }, fate: Fate): Promise<boolean>

  /**
   * Checks what must be true of every committed state, whatever crashed or raced: all invariants of docs/invariants.md that
   * are about states. It reads everything, and changes nothing.
   */
  check(): Promise<readonly Checked[]>
}

/**
 * What a store offers whose database users write to as well: work that takes effect if and only if their transaction
 * commits. Nothing in it waits for the user's transaction, hints, or raises an error that would spoil it.
 */
export interface StoreTransactions {
  /** This store inside a transaction that a user has begun. `handle` is whatever their library calls a transaction. */
  within(handle: unknown): Within

  /**
   * Begins a transaction, lets `work` write with its handle and through `within`, and commits it when `work` is fulfilled; if
   * it is rejected, nothing has happened. An error of the COMMIT itself is STORE_UNAVAILABLE, and leaves open what became
   * of it.
   */
  transact<Result>(work: (handle: unknown, within: Within) => Promise<Result>): Promise<Result>
}

/** The parts of a store that can take place inside a user's transaction. They bypass every batch, and never lease. */
export type Within = Pick<Store, 'start' | 'commit' | 'deliver' | 'steer' | 'load'>

export interface DeadLetterFilter {
  /** The name of the signal or topic. */
  readonly name?: string
  readonly runId?: string
}

/** A message that its run had not read when it ended, or that came later, and whose policy is to keep it. */
export interface DeadLetter extends Message {
  /** What its run had become. */
  readonly status: RunStatus
  readonly endedAt: number | null
}

export interface Checked {
  /** The invariant. */
  readonly name: string
  /** The ids of runs for which it does not hold, 20 at most, in order. None means that all is well. */
  readonly offenders: readonly string[]
}

export interface Capabilities {
  /** Other processes are told of new work without polling. */
  readonly notifies: boolean
  /** Several processes may open this store at once. */
  readonly multiProcess: boolean
  /**
   * Over how many shards it spreads runs. An id names its shard; a run whose key or idempotency key is unique lives in the
   * shard of that. The order of claims holds within a shard. @default 1
   */
  readonly shards?: number
  /** It takes part in transactions of its users: it has `StoreTransactions`, too. @default false */
  readonly transactions?: boolean
}

export interface Started {
  readonly created: boolean
  /** What kept the run from being inserted; null when it was created. */
  readonly taken: 'id' | 'idempotency-key' | 'key' | null
  /**
   * The row as it is now, or that of the run in its way; when `created` and a lease was asked for, leased to the caller if
   * its session is alive.
   */
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
  /**
   * The journals of those that nobody has begun or written to: one entry each. They need not be loaded.
   * A store that has them at hand spares its caller a round trip. @default all must be loaded
   */
  readonly fresh?: readonly Fresh[]
  /** More that match were ready than the limit allowed. */
  readonly more: boolean
  /** When the next run that matches and is not due yet comes due by itself; null if there is none. */
  readonly nextDue: number | null
  readonly now: number
}

/** A run that nobody has begun, and the one entry of its journal. */
export interface Fresh {
  readonly runId: string
  readonly entry: Entry
}

export interface BeatRequest {
  readonly session: string
  /** How long the session is alive without another beat. */
  readonly leaseMs: number
  /** What this session believes to hold. */
  readonly held?: readonly HeldClaim[]
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
}

export interface Beat {
  /** False when the session has ended, by its own will or because others thought it dead: its leases are lost. */
  readonly alive: boolean
  /** Those of `held` that this session does not hold any more. */
  readonly lost: readonly string[]
  /**
   * Runs that this session holds and did not list: leased to it by a call whose answer it never got, or after the list was
   * made. At most 100 at once.
   */
  readonly strays: readonly { readonly runId: string; readonly token: number }[]
  /** Runs that this session holds and that somebody wants cancelled or paused. */
  readonly wished: readonly { readonly runId: string; readonly wish: Wish }[]
  /** Those of `held` for which more messages have arrived than its holder knows of. */
  readonly mail: readonly { readonly runId: string; readonly inbox: number }[]
  /** Runs that this session holds although the time for the whole run is over: their holder must fail them. */
  readonly timedOut: readonly string[]
  readonly now: number
}

export interface RescueRequest extends TakeoverRules {
  /** At most so many runs at once. */
  readonly limit: number
}

export interface Rescued {
  /** How many sessions were found dead. */
  readonly sessionsEnded: number
  /** Runs that were taken from their holders and did not end with that. */
  readonly takenOver: readonly TakenOver[]
  /** Runs that were ended, and why. */
  readonly ended: readonly {
    readonly runId: string
    readonly type: string
    readonly reason: RescueFailure | 'cancelled'
  }[]
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
  /** Only the last entry of this kind and name, whatever `after` and `limit` say. */
  readonly latest?: { readonly kind: EntryKind; readonly name: string }
  /** What of the mailbox. @default the first 1,000 messages, whatever their names */
  readonly mail?: MailRequest
}

/** The first so many messages of each of these names. */
export interface MailRequest {
  readonly names: readonly string[]
  readonly limit: number
}

export interface Loaded {
  readonly entries: readonly Entry[]
  /** What no transition has taken yet, first in first out. */
  readonly messages: readonly Message[]
}

export type Committed =
  | {
      readonly outcome: 'committed'
      readonly seq: number
      readonly at: number
      /** As it stands now: the one thing that a repetition may answer otherwise. */
      readonly inbox: number
      /**
       * False when the lease was to end and did not, because a message or a wish had arrived: look again. The entries are
       * appended all the same.
       */
      readonly released: boolean
      /** What somebody wants of the holder. */
      readonly wish: Wish | null
    }
  | { readonly outcome: 'refused'; readonly reason: Exclude<Refusal, 'cancelling'> }
  /** `wish` says why, as far as somebody said so. */
  | { readonly outcome: 'refused'; readonly reason: 'cancelling'; readonly wish: Wish | null }

/**
 * `not-found`: no such run. `lease-lost`: somebody else holds the run, or nobody. `stale`: the writer holds it, but the
 * journal is not where it thinks. `cancelling`: the writer holds it, but the run is being cancelled and cannot end otherwise
 * or begin anew. `key-taken`: the run would begin anew as another type, where a live run has its key. `busy`: somebody else
 * has locked the run, and the others of the batch were not to wait for that: send it again, alone.
 */
export type Refusal = 'stale' | 'lease-lost' | 'not-found' | 'cancelling' | 'key-taken' | 'busy'

/**
 * A message to a run. Its `id` is client-made, unique within its run. Delivering an id again that was accepted changes
 * nothing and answers as the first time, whatever has become of the run.
 */
export type NewMessage = Letter

export interface Change {
  readonly position: number
  readonly runId: string
  readonly entry: Entry
}

export type Hint =
  | { readonly kind: 'ready'; readonly type: string }
  | { readonly kind: 'ended'; readonly runId: string }
  /** A message came for a run that somebody holds. */
  | { readonly kind: 'mail'; readonly runId: string }

/** Everything that is given must match; lists match any of their members. Deleted runs match only when asked for. */
export interface RunFilter {
  readonly ids?: readonly string[]
  readonly types?: readonly string[]
  /** `billing.` matches every type that begins with it. */
  readonly typePrefix?: string
  readonly statuses?: readonly RunStatus[]
  readonly key?: string
  readonly idempotencyKey?: string
  readonly tag?: string
  readonly version?: number
  readonly parentId?: string
  /** Created at this time or later. */
  readonly createdFrom?: number
  /** Created before this time. */
  readonly createdBefore?: number
  readonly deleted?: boolean
}

export interface Page {
  readonly limit: number
  /** The id of the last run of the page before. */
  readonly after?: string
}
