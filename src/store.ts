// The port that every store implements. A store commits batches of transitions and leases runs; it knows nothing of
// workflows, styles or payloads. The contract suite in `holdfast/testing/store` defines each method, and every store passes
// it; the memory store is the reference.
//
// All times are the store's own: a caller learns them from answers and never compares its own clock with a lease. Answers
// are copies: they do not change later, and changing them does not change the store.

import type { Entry } from './core/model/entry.ts'
import type { Claimed, ClaimRequest } from './core/rules/claims/claim.ts'
import type { Hint } from './core/rules/messages/hints.ts'
import type { Loaded, LoadRequest } from './core/rules/claims/load.ts'
import type { Beat, BeatRequest, ReleasedLease } from './core/model/heartbeat.ts'
import type { Delivered } from './core/model/message.ts'
import type { NewMessage } from './core/rules/messages/deliver.ts'
import type { Started } from './core/model/new-run.ts'
import type { RunStart } from './core/rules/run-start.ts'
import type { Committed } from './core/rules/commit.ts'
import type { Run } from './core/model/run.ts'
import type { ControlResult, ControlCommand } from './core/rules/control.ts'
import type { ProjectionAnswer, ProjectionCommand } from './core/rules/projections/command-projection.ts'
import type { ProjectionRow } from './core/rules/projections/projection-row.ts'
import type { Rescued, RescueRequest } from './core/rules/claims/takeover.ts'
import type { NewBroadcast } from './core/model/topic.ts'
import type { Transition } from './core/model/transition.ts'

export type { Beat, BeatRequest, ReleasedLease, HeldClaim } from './core/model/heartbeat.ts'
export { messagesAtOnce, type Delivered, type Message } from './core/model/message.ts'
export type { NewRun, Started } from './core/model/new-run.ts'
export type { RunStart } from './core/rules/run-start.ts'
export type { Committed, Refusal } from './core/rules/commit.ts'
export type { Claimed, ClaimRequest, ClaimSelector, Fresh, Selector } from './core/rules/claims/claim.ts'
export type { Hint } from './core/rules/messages/hints.ts'
export type { Loaded, LoadRequest, MailboxRequest } from './core/rules/claims/load.ts'
export type { NewMessage } from './core/rules/messages/deliver.ts'
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
} from './core/model/store-admin.ts'
export type { ControlResult, ControlCommand } from './core/rules/control.ts'
export type { ProjectionAnswer, ProjectionCommand } from './core/rules/projections/command-projection.ts'
export type {
  FailedEvent,
  ProjectionPart,
  ProjectionRow,
  ProjectionStatus,
  SkippedEvent,
} from './core/rules/projections/projection-row.ts'
export type { Rescued, RescueFailure, RescueRequest } from './core/rules/claims/takeover.ts'

export interface Store {
  readonly capabilities: Capabilities

  /** Creates or updates the schema. Safe to call from many processes at once, and again. */
  migrate(): Promise<void>

  /**
   * Inserts runs, each with its first entry, and with what follows from its first input if that is decided. One answer per run, in order. A run is not inserted, and the conflicting run is
   * returned, when its id exists or comes twice, when a run of its type that is not deleted has its idempotency key, or when
   * a live run has its business key in its scope; in this order, and by unique indexes. If an open transaction is about to
   * take the key, the answer is busy.
   */
  start(runs: readonly RunStart[], options?: BatchOptions): Promise<readonly (Started | StartBusy)[]>

  /**
   * Leases due runs to a session: highest priority first; at one priority the types take turns, one run each, in the order
   * in which the request first names them; within a type, regardless of version, the longest due first, then the lowest id.
   * A leased run is no longer due. A run past its timeout is not leased; one that is being cancelled is, and stays
   * `cancelling`. A claim that names keys skips runs of other keys, and `more` does not count them. An isolated claim leases
   * suspects and nothing else, the longest due first, and counts no crash. A claim may name one run.
   */
  claim(request: ClaimRequest): Promise<Claimed>

  /**
   * Reads what a holder needs to continue: a page of each run's journal, and the requested messages of its mailbox. One
   * answer per request, in order. With `mostBytes`, the pages of all requests together end with the entry whose payload
   * reaches that, and so do messages, counted separately: later requests get none, and are sent again.
   */
  load(requests: readonly LoadRequest[], mostBytes?: number): Promise<readonly Loaded[]>

  /**
   * Commits transitions, each atomic and fenced. One answer per transition, in order; a refusal harms no other. A batch
   * holds at most one transition of a run, besides those that others settle: which of the two comes first is not said, and the
   * second is stale. A transition that only a defect can send (nothing to append without parking, a
   * move that the status machine does not know) rejects the whole call with BUG; the other transitions may be repeated.
   */
  commit(transitions: readonly Transition[], options?: BatchOptions): Promise<readonly Committed[]>

  /**
   * Puts messages into mailboxes and wakes runs that wait for them; a run that is due already keeps its place. A broadcast
   * goes to the runs that wait on its topic, by the rules of `core/rules/messages/exchange.ts`. One answer per message, in
   * order; each message sees the effects of those before it. If one is answered as busy, so are the later ones to the same
   * run or topic.
   */
  deliver(
    messages: readonly (NewMessage | NewBroadcast)[],
    options?: BatchOptions,
  ): Promise<readonly (Delivered | Busy)[]>

  /**
   * Executes control requests, each by the rules of `core/rules/control.ts`. One answer per request, in order. Of two
   * requests for one run the second sees the effect of the first. Either may be answered as busy.
   */
  control(requests: readonly ControlCommand[]): Promise<readonly (ControlResult | Busy)[]>

  /**
   * Keeps a session alive and, with it, all its leases. The first heartbeat opens the session, before it leases anything; an
   * ended session never comes back. Whenever sessions end, here or in a rescue, some rows of those go that ended a day ago
   * (`endedSessionKeptMs`) and that no run names any more.
   */
  beat(request: BeatRequest): Promise<Beat>

  /**
   * Takes runs from holders that are dead or past their deadline, and ends runs past their timeout. First, in a separate
   * transaction, every session whose heartbeat expired is marked as ended; then the runs of such sessions (and of sessions
   * without any heartbeat) are taken over by the rules of `core/rules/claims/takeover.ts`. Any process may call it, any
   * number at once.
   */
  rescue(request: RescueRequest): Promise<Rescued>

  /**
   * Gives leased runs back unharmed, by the rules of `core/rules/claims/takeover.ts`: due at once, without counting a crash,
   * and keeping the crashes of earlier holders. Lost leases are skipped. Returns the leases whose runs another transaction
   * has locked: nothing was done for them, and they are to be released again.
   */
  release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]>

  /**
   * Continues the work that an end or a broadcast left, by the rules of `core/model/chore.ts`: one page of one chore. Any
   * process may call it, any number at once.
   */
  doChores(): Promise<ChoresDone>

  /** Reads rows. One answer per id, in order; undefined if there is no such run. */
  get(runIds: readonly string[]): Promise<readonly (Run | undefined)[]>

  /**
   * The feed: entries of the runs that ask for it (`feed`), in commit order, after a position. It may lag behind commits, so
   * an empty page is not the end; it never skips one.
   */
  changes(after: number, limit: number): Promise<readonly Change[]>

  /**
   * Calls back when a run may have become claimable, now or sooner than was known, when a run has ended, when a message or a
   * control request came for a held run, when a run without a holder times out soon, or when a chore is left to do. A hint
   * comes after its cause can be read, and never after unsubscribing. It may be lost; polling is authoritative.
   */
  listen(onHint: (hint: Hint) => void): Promise<() => void>

  /** Releases all resources. Afterwards every call is rejected with CLOSED; closing again is allowed. */
  close(): Promise<void>
}

/** An optional part of a store whose database has its own timeouts. */
export interface StoreLimits {
  /**
   * Bounds every call to this many milliseconds, until the returned function is called: the caller gives calls up after
   * that, and work that the database still did would delay others.
   */
  limit(ms: number): () => void
}

/** An optional part of a store that hints at the ends of runs to other processes only while one of them waits for some. */
export interface StoreEndHints {
  /**
   * This process waits for ends in other processes, or waits for none any more. Returns true as long as some of these may not
   * know of it and will soon: an end that comes before that is found by polling. May be called again to ask for that.
   */
  expectEnds(isExpecting: boolean): boolean
}

/** An optional part of a store, so that a reader of its tables cannot make completion tokens. */
export interface StoreSecrets {
  /**
   * A random text of at least 256 bits that is created with the tables and never changes: the secrets of completion tokens
   * are derived from it. Only workers may read it. Null if there is none. @default entries keep the secrets of completion
   * tokens themselves
   */
  tokenKey(): Promise<string | null>
}

/**
 * An optional part of a store: what it keeps of projections. The rules of `core/rules/projections` decide every command, over
 * the rows of one projection, locked.
 */
export interface StoreProjections {
  /** All projections, by name, the live part first. */
  projections(): Promise<readonly ProjectionRow[]>
  /** Executes a command. In a transaction of the read model, `TransactionStore.commandProjection` does. */
  commandProjection(command: ProjectionCommand): Promise<ProjectionAnswer>
  /** How far the feed reaches. */
  feedEnd(): Promise<FeedEnd>
}

export interface FeedEnd {
  /** The last position that was given; 0 if there is none. */
  readonly position: number
  /** Every entry of the feed that was committed before the call has a position by now. */
  readonly isComplete: boolean
}

/** How a batch is sent. A store that never waits for locks, and cannot cancel a call, may ignore it. */
export interface BatchOptions {
  /**
   * It is sent separately, and no other item waits behind it: it may wait a while for a locked row. Any other batch hardly
   * waits for a lock before it is answered as busy. @default false
   */
  readonly mayWait?: boolean
  /** It is given up after this many milliseconds. @default the storage timeout */
  readonly timeoutMs?: number
}

/**
 * An optional part of a store in the database of the user's own tables: work that takes effect if and only if the user's
 * transaction commits. Nothing in it waits for the user's transaction, hints, or raises an error that would abort it.
 */
export interface StoreTransactions {
  /** This store inside a transaction that a user has begun. `handle` is the transaction object of their library. */
  inTransaction(handle: unknown): TransactionStore

  /**
   * Begins a transaction, lets `work` write with its handle and through `inTransaction`, and commits it when `work` is
   * fulfilled; if `work` is rejected, nothing has happened. An error of the COMMIT itself is STORE_UNAVAILABLE, and its
   * outcome is unknown, unless a SQLSTATE in its causes says that nothing happened. Calls that wait for a connection, or for
   * another writer, wait in order, before `work` is called and before they hold anything.
   */
  transact<Result>(
    work: (handle: unknown, inTransaction: TransactionStore) => Promise<Result>,
    options?: TransactOptions,
  ): Promise<Result>

  /**
   * Waits, in the queue of `transact`, for a transaction that the user's own library is about to begin, perhaps on a pool
   * that it shares with this store. Resolves with a function that gives the place back, or rejects with the signal's reason.
   * @default such transactions do not wait
   */
  reserve?(signal: AbortSignal): Promise<() => void>
}

export interface TransactOptions {
  /**
   * Aborts the transaction at any time before its COMMIT: it is rolled back and its connection destroyed, even while `work`
   * or one of its statements runs, and the call rejects with the signal's reason. An abort while COMMIT is under way changes
   * nothing: its answer decides.
   */
  readonly signal?: AbortSignal
  /** A transaction that conflicts with others is refused with SQLSTATE 40001. @default READ COMMITTED, or stricter */
  readonly isolation?: 'serializable'
}

/** The calls of a store that can run inside a user's transaction. They bypass every batch, and never lease. */
export interface TransactionStore extends Pick<Store, 'commit' | 'load'>, TransactionMark {
  /**
   * Called at once when the user makes a call, before the call is checked and encoded: nothing of it may be written outside
   * of the transaction that is open now. @default the store recognises the transaction by itself
   */
  recognise?(): void
  // A user's transaction waits for locks itself: nothing is answered as busy.
  start(runs: readonly RunStart[]): Promise<readonly Started[]>
  deliver(messages: readonly (NewMessage | NewBroadcast)[]): Promise<readonly Delivered[]>
  control(requests: readonly ControlCommand[]): Promise<readonly ControlResult[]>
  /** As that of the store. @default the store has no projections */
  commandProjection?(command: ProjectionCommand): Promise<ProjectionAnswer>
}

/**
 * Detects that the user's code has ended a transaction that the engine began. @default it cannot be detected, or always is
 */
export interface TransactionMark {
  /** Remembers which transaction this is. */
  readonly mark?: () => Promise<void>
  /** Throws if that one is over, also if another has begun since, or if its isolation is not this. */
  readonly assertMarked?: (isolation?: 'serializable') => Promise<void>
}

export interface Capabilities {
  /** Other processes are notified of new work without polling. */
  readonly notifies: boolean
  /** Several processes may open this store at once. */
  readonly multiProcess: boolean
  /**
   * Over how many shards it spreads runs. An id names its shard; a run with a unique key or idempotency key lives in the
   * shard of that key. The order of claims holds within a shard. @default 1
   */
  readonly shards?: number
  /** It supports transactions of its users: it implements `StoreTransactions`. @default false */
  readonly transactions?: boolean
  /** It keeps projections: it implements `StoreProjections`. @default false */
  readonly projections?: boolean
  /**
   * The name of this database among those that share a server: the schema. It is part of the place of every payload, so that
   * an encrypting codec refuses texts of another database. @default none
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
 * Nothing was done for this item of a batch, because another transaction has locked a row that it needs and the other items
 * must not wait: send it again, separately.
 */
export interface Busy {
  readonly outcome: 'busy'
}

export interface ChoresDone {
  /**
   * A page was done, or postponed because another transaction has locked a row that it needs: call again at once, for the
   * next.
   */
  readonly worked: boolean
  /**
   * If none was done: in how many milliseconds a chore that another worker has taken becomes free again; null if there is
   * none.
   */
  readonly nextInMs: number | null
}

export interface Change {
  readonly position: number
  readonly runId: string
  /** The type and version of its run, as they are now. */
  readonly type: string
  readonly version: number
  /** The idempotency key of its run: of a decider, the id of the instance. */
  readonly key: string | null
  readonly entry: Entry
}
