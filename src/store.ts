// The port behind which a database stands. A store commits batches of transitions and hands out work; it knows nothing
// of workflows, styles or payloads. What each method must do is told by the contract suite in `holdfast/testing/store`,
// which every store passes; the memory store is the reference.
//
// All times are the store's own: a caller learns them from answers and never compares its own clock with a lease.
// What a store hands out is a copy: it does not change later, and changing it does not change the store.

import type { Entry, EntryKind } from './core/model/entry.ts'
import type { MessageDraft } from './core/rules/unit-of-work.ts'
import type { Beat, BeatRequest, ReleasedLease } from './core/model/heartbeat.ts'
import type { Delivered, Message } from './core/model/message.ts'
import type { NewRun, Started } from './core/model/new-run.ts'
import type { Committed } from './core/rules/commit.ts'
import type { Run } from './core/model/run.ts'
import type { ControlResult, ControlCommand } from './core/rules/control.ts'
import type { Rescued, RescueRequest } from './core/rules/takeover.ts'
import type { NewBroadcast } from './core/model/topic.ts'
import type { Transition } from './core/model/transition.ts'

export type { Beat, BeatRequest, ReleasedLease, HeldClaim } from './core/model/heartbeat.ts'
export { messagesAtOnce, type Delivered, type Message } from './core/model/message.ts'
export type { NewRun, Started } from './core/model/new-run.ts'
export type { Committed, Refusal } from './core/rules/commit.ts'
export type { NewBroadcast } from './core/model/topic.ts'
export type {
  InvariantCheck,
  DeadLetter,
  DeadLetterFilter,
  KeyCount,
  Page,
  PayloadRewrite,
  PayloadsRewritten,
  RunFilter,
  StoreAdmin,
} from './core/runtime/store-admin.ts'
export type { ControlResult, ControlCommand } from './core/rules/control.ts'
export type { Rescued, RescueFailure, RescueRequest } from './core/rules/takeover.ts'

export interface Store {
  readonly capabilities: Capabilities

  /** Creates or updates the schema. Safe to call from many processes at once, and again. */
  migrate(): Promise<void>

  /**
   * Inserts runs, each with its first entry. One answer per run, in order. A run is not inserted, and the one that is in
   * its way is answered, when its id exists or comes twice, when a run of its type that is not deleted has its idempotency
   * key, or when a live run has its business key in its scope; in this order, and by unique indexes. One whose key is about
   * to be taken by a transaction that takes its time is answered as busy.
   */
  start(runs: readonly NewRun[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]>

  /**
   * Leases what is due to a session: highest priority first; at one priority the types take turns, one run each, in the order
   * in which the request first names them; within a type, whatever the version, the longest due first, then the lowest id. A
   * leased run is due no more. A run whose time is over is not handed out; one that is being cancelled is, and stays `cancelling`.
   * A claim that names keys passes over runs of other keys, and is not told that there are more of those.
   * An isolated claim leases suspects and nothing else, the longest due first, and counts no crash.
   */
  claim(request: ClaimRequest): Promise<Claimed>

  /**
   * Reads what a holder needs to go on: a page of each run's journal, and what it asks for of its mailbox. One answer per
   * request, in order. With `mostBytes`, the pages of all requests together end with the entry whose payload reaches that, and
   * so do messages, counted apart: whoever is behind gets none, and asks again.
   */
  load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]>

  /**
   * Commits transitions, each atomic and fenced. One answer per transition, in order; a refusal harms no other.
   * A batch holds at most one transition of a run. What only a defect could ask for (nothing to append without parking,
   * a move that the status machine does not know) rejects the whole call with BUG; what else was in it may be repeated.
   */
  commit(transitions: readonly Transition[], options?: BatchOptions): Promise<readonly Committed[]>

  /**
   * Puts messages into mailboxes and wakes runs that wait for them; one that is due already keeps its place. What is sent to a
   * topic goes to those who wait on it, by the rules of `core/rules/exchange.ts`. One answer per message, in order; of two, the second finds
   * what the first made of everything. If one is answered as busy, so are those behind it that go to the same run or topic.
   */
  deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly (Delivered | Busy)[]>

  /**
   * Does what people ask of runs from outside, each by the rules of `core/rules/control.ts`. One answer per request, in order. Of two
   * requests for one run the second finds what the first made of it. Either may be answered as busy.
   */
  control(requests: readonly ControlCommand[]): Promise<readonly (ControlResult | Busy)[]>

  /**
   * Keeps a session alive and, with it, all its leases. The first beat opens the session, before it leases anything; one
   * that has ended never comes back.
   */
  beat(request: BeatRequest): Promise<Beat>

  /**
   * Takes runs from holders that are dead or past their deadline, and ends runs whose time is over. First, in a
   * transaction of its own, every session is marked as ended whose heartbeat ran out; then what such sessions hold (or
   * sessions that never beat) is taken by the rules of `core/rules/takeover.ts`. Anyone may call it, any number at once.
   */
  rescue(request: RescueRequest): Promise<Rescued>

  /**
   * Gives leased runs back unharmed, by the rules of `core/rules/takeover.ts`: due at once, no crash counted and none of earlier
   * holders forgotten. Leases that are lost are passed over. Answers those whose runs somebody else has locked: nothing was
   * done for them, and they are to be given back again.
   */
  release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]>

  /**
   * Goes on with what an end or a broadcast left to be written, by the rules of `core/model/chore.ts`: one page of one chore. Anyone may
   * call it, any number at once.
   */
  doChores(): Promise<ChoresDone>

  /** Reads rows. One answer per id, in order; undefined where there is no such run. */
  get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]>

  /** The feed: entries of the runs that ask for it (`feed`), in commit order, after a position. It may lag behind commits; it never skips one. */
  changes(after: number, limit: number): Promise<readonly Change[]>

  /**
   * Calls back when something may have become claimable, now or at a time nearer than was known, when a run has ended, when
   * a message came for one that is being performed, when the time of one that nobody holds is over soon, or when a chore is
   * left to do.
   * A hint comes after what it tells of can be read, and never after unsubscribing. It may be lost; polling is the truth.
   */
  listen(onHint: (hint: Hint) => void): Promise<() => void>

  /** Lets go of everything. Afterwards every call is rejected with CLOSED; closing again is fine. */
  close(): Promise<void>
}

/** What a store may have, too, if its database has timeouts of its own. */
export interface StoreLimits {
  /**
   * Has no call take longer than so many milliseconds, until what is returned is called: whoever asks gives calls up after
   * that, and what the database still does then would hold up others.
   */
  limit(ms: number): () => void
}

/** What a store may have, too, so that nobody who reads its tables can make tokens. */
export interface StoreSecrets {
  /**
   * A random text of at least 256 bits that is made with the tables and never changes: the secrets of tokens are made with it.
   * Only who performs runs may read it. Null if there is none. @default entries keep the secrets of tokens themselves
   */
  tokenKey(): Promise<string | null>
}

/** How a batch is sent. A store that never waits for locks, and cannot give up what it has begun, need not heed it. */
export interface BatchOptions {
  /**
   * It goes apart from the others, and nobody waits behind it: it may wait a while for what somebody else has locked. Any
   * other batch waits for hardly anything before it is answered as busy. @default false
   */
  readonly mayWait?: boolean
  /** It is given up after so many milliseconds. @default the storage timeout */
  readonly timeoutMs?: number
}

/**
 * What a store offers whose database users write to as well: work that takes effect if and only if their transaction
 * commits. Nothing in it waits for the user's transaction, hints, or raises an error that would spoil it.
 */
export interface StoreTransactions {
  /** This store inside a transaction that a user has begun. `handle` is whatever their library calls a transaction. */
  inTransaction(handle: unknown): TransactionStore

  /**
   * Begins a transaction, lets `work` write with its handle and through `within`, and commits it when `work` is fulfilled; if
   * it is rejected, nothing has happened. An error of the COMMIT itself is STORE_UNAVAILABLE, and leaves open what became
   * of it, unless a SQLSTATE in its causes says that nothing happened. Whoever has to wait for a connection, or for another
   * writer, waits in order, before `work` is called and before it holds anything.
   */
  transact<Result>(
    work: (handle: unknown, inTransaction: TransactionStore) => Promise<Result>,
    options?: TransactOptions,
  ): Promise<Result>

  /**
   * Waits, in the line of those whom `transact` lends a connection, for a transaction that the user's own library is about to
   * begin, perhaps on a pool that it shares with this store. Settles with what gives the place back, or rejects with the signal's
   * reason. @default nobody waits in line
   */
  reserve?(signal: AbortSignal): Promise<() => void>
}

export interface TransactOptions {
  /**
   * Aborts the transaction at any time before its COMMIT: it is rolled back and its connection destroyed, whatever `work` or a
   * statement of it is doing, and the call rejects with the signal's reason. An abort while COMMIT is under way changes nothing:
   * its answer tells.
   */
  readonly signal?: AbortSignal
  /** A transaction that others have got in the way of is refused with SQLSTATE 40001. @default the database's default */
  readonly isolation?: 'serializable'
}

/** The parts of a store that can take place inside a user's transaction. They bypass every batch, and never lease. */
export interface TransactionStore extends Pick<Store, 'commit' | 'load'>, TransactionMark {
  // Whoever has a transaction of their own waits in it: nothing is answered as busy.
  start(runs: readonly NewRun[]): Promise<readonly Started[]>
  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]>
  control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]>
}

/** How it is noticed that the user's own code has ended a transaction that others began. @default it cannot be, or always is */
export interface TransactionMark {
  /** Remembers which transaction this is. */
  readonly mark?: () => Promise<void>
  /** Throws if that one is over, also if another has begun since, or if it is not isolated like this. */
  readonly assertMarked?: (isolation?: 'serializable') => Promise<void>
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
  /**
   * The name of this database among those that share a server: the schema. It is a part of where every payload stands, so that
   * a codec that encrypts tells texts of one from those of another. @default none
   */
  readonly namespace?: string
  /** How long it lets a call take: its `storageTimeout`, in milliseconds. Callers wait for as long. @default 15 s */
  readonly storageMs?: number
}

/** Nothing was done: see `Busy`. */
export interface StartBusy {
  readonly created: false
  readonly taken: 'busy'
  readonly run: null
}

/**
 * Nothing was done for this one of a batch, because somebody else has locked what it concerns and the others were not to wait
 * for that: send it again, apart from the others.
 */
export interface Busy {
  readonly outcome: 'busy'
}

export interface ClaimRequest {
  /** Who claims. A session that has ended gets nothing. */
  readonly session: string
  /** Which types and versions, and in which order types take turns: who was served last is named last. */
  readonly selectors: readonly ClaimSelector[]
  readonly limit: number
  /** Suspects, which may end the process that performs them, and nothing else. @default false */
  readonly isolated?: boolean
  /** The keys that the claimer reads with: runs that were last written with another one are passed over. @default any key */
  readonly keys?: readonly string[]
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
  /**
   * When the next run that matches, of whatever key, and is not due yet comes due by itself; null if there is none. A store may
   * leave out one that is more than ten seconds away: a worker asks again sooner than that.
   */
  readonly nextDue: number | null
  readonly now: number
}

/** A run that nobody has begun, and the one entry of its journal. */
export interface Fresh {
  readonly runId: string
  readonly entry: Entry
}

export interface ChoresDone {
  /** A page was done, or left to later because somebody else has locked what it is about: call again at once, for the next. */
  readonly worked: boolean
  /** If none was done: in how many milliseconds somebody else must have done one that it has taken; null if there is none. */
  readonly nextInMs: number | null
}

export interface LoadRequest {
  readonly runId: string
  /** Entries with a higher `seq` than this. */
  readonly after: number
  readonly limit: number
  /** Only the last entry of this kind and name, whatever `after` and `limit` say. */
  readonly latest?: { readonly kind: EntryKind; readonly name: string }
  /** What of the mailbox. @default the first 1,000 messages, whatever their names */
  readonly mail?: MailboxRequest
}

/** The first so many messages of each of these names. */
export interface MailboxRequest {
  readonly names: readonly string[]
  readonly limit: number
}

export interface Loaded {
  readonly entries: readonly Entry[]
  /** What no transition has taken yet, first in first out. */
  readonly messages: readonly Message[]
  /** `mostBytes` was reached: there may be more messages than these. */
  readonly cut?: true
}

/**
 * A message to a run. Its `id` is client-made, unique within its run. Delivering an id again that was accepted changes
 * nothing and answers as the first time, whatever has become of the run.
 */
export interface NewMessage extends MessageDraft {
  /** It is refused if so many messages lie unread in the mailbox of its run. @default any number */
  readonly mostUnread?: number
}

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
  /** The time of a run that nobody holds is over soon, and then somebody must end it: a rescue. */
  | { readonly kind: 'deadline'; readonly at: number }
  /** Something is left to do: `doChores`. */
  | { readonly kind: 'chore' }
