// The interface between a style and the worker: a definition that can open a frame for a run, and the host that the worker
// provides. The worker knows nothing else of the three styles.

import type { AttemptMeta, Entry } from '../model/entry.ts'
import type { Limits } from './limits.ts'
import type { Message } from '../model/message.ts'
import type { NewRun } from '../model/new-run.ts'
import type { Payloads } from '../payload/payload.ts'
import type { Ports } from '../runtime/ports.ts'
import type { KeyScope } from '../model/key.ts'
import type { Lease, Run, TerminalStatus, ControlRequest } from '../model/run.ts'
import type { Committed } from '../rules/judge.ts'
import type { OnCrashes } from '../rules/claims/takeover.ts'
import type { Continuation, Transition } from '../model/transition.ts'

/** The business key that a workflow reads from the input of each of its runs. */
export interface Unique {
  /** The field of the input; null if a function reads the key. */
  readonly field: string | null
  /** Among which live runs the key is unique. */
  readonly scope: KeyScope
  /** The key as the row of the run has it. Throws INVALID_INPUT or INVALID_NAME. */
  readonly keyOf: (input: unknown) => string
}

export interface Definition {
  readonly type: string
  readonly version: number
  readonly style: 'function' | 'decider' | 'graph'
  /** How long one claim may last without a heartbeat of its own; null if the session's heartbeat is enough. */
  readonly leaseMs: number | null
  /** How many processes one of its runs may crash. @default null, the bound of the worker */
  readonly maxCrashes?: number | null
  /** The action at that bound. @default 'pause' */
  readonly onCrashes?: OnCrashes
  /** The journals of its runs are in the feed. */
  readonly feed: boolean
  /** How the business key of a run is read from its input; null if a start may give a key. */
  readonly unique: Unique | null
  /** Tags and metadata of each of its runs. */
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** Turns the argument of `start` into the input that the run sees, or throws. */
  readonly validate: (input: unknown) => unknown
  /** Definitions of the runs that its own runs need: they are registered together with it. @default none */
  readonly parts?: readonly Definition[]
  /** Prepares the execution of a run that this process holds. Nothing happens before `start`. */
  open(host: Host, claim: Claim): Frame
}

/** A definition of any style whose input and output the compiler knows. */
export interface TypedDefinition<Input, Output> extends Definition {
  /** Only for the compiler; there is no such value. */
  readonly types?: { readonly input: Input; readonly output: Output }
}

/** A run that this process has just leased. */
export interface Claim {
  readonly run: Run
  readonly lease: Lease
  /** The whole journal from the run's `base` on; not read when a frame is resumed. */
  readonly entries: readonly Entry[]
  /**
   * The messages in its mailbox: the first `messagesAtOnce`; when a frame is resumed, those that it wants. Null if the
   * mailbox was not read.
   */
  readonly messages: readonly Message[] | null
}

/** An object and no promise, which with its closures would be 330 bytes of memory for each run in flight. */
export interface DepartureListener {
  /** How the frame left. Called at most once, never while `start` or `resume` is being called, and in any async context. */
  departed(departure: Departure): void
}

/** The execution of one run in this process. While the run is parked, its frame may stay in memory. */
export interface Frame {
  /** The `seq` up to which this frame knows the journal: it can be resumed while that is the run's. Null if never. */
  readonly seq: number | null
  /** The commit with which it leaves is in flight: soon it departs, or continues. */
  readonly isLeaving: boolean
  /** The same, and no code of the run executes here meanwhile. */
  readonly isVacant: boolean
  /** Moves the run on until it ends, parks, is due again later, or is lost. */
  start(listener: DepartureListener): void
  /** Moves a parked run on, under a new lease and without replay. */
  resume(claim: Claim, listener: DepartureListener): void
  /**
   * A request to cancel or pause the run, which takes effect as soon as possible. Null if the request was withdrawn. May be
   * called more than once.
   */
  applyControl(controlRequest: ControlRequest | null): void
  /** How many messages it knows to have arrived; null if it does not ask for more. */
  readonly arrived: number | null
  /** The names of the messages that can move it on; null if they are too many to ask for by name. */
  readonly wakeNames: readonly string[] | null
  /** More messages have arrived: the number by now, null if that is not known. May be called more than once, and late. */
  messageArrived(inbox: number | null): void
  /** Ends the run with an error, after its undo work. */
  fail(error: unknown): void
  /**
   * Leaves at the next checkpoint: attempts under way end and are recorded, nothing new begins. It departs as `given-back`.
   */
  giveBack(): void
  /** Waits no longer for attempts under way: the journal records them as abandoned. */
  abandon(): void
  /** Stops at once: aborts running attempts and commits nothing any more. */
  abort(reason: unknown): void
}

export type Departure =
  /** The run is over. `data` is the payload of its last entry, `reason` why it was cancelled. */
  | {
      readonly kind: 'ended'
      readonly status: TerminalStatus
      readonly seq: number
      readonly data: string | null
      readonly reason: string | null
    }
  /** The run continues as new under the same lease: `input` is the entry that it begins with. */
  | {
      readonly kind: 'continued'
      readonly as: Continuation
      readonly input: Entry
      /** How many messages are known to have arrived. */
      readonly inbox: number
    }
  /** The run waits. Its frame may be kept for when it is claimed again. */
  | { readonly kind: 'parked' }
  /** The run is pending again, or paused. */
  | { readonly kind: 'released' }
  /**
   * The frame has left the run at a checkpoint. The lease still stands: the caller that asked for this gives the run back.
   */
  | { readonly kind: 'given-back' }
  /** Another holder has the run, or the journal has moved on; this process must not do anything more for it. */
  | {
      readonly kind: 'lost'
      readonly reason: unknown
      /** It would be lost again at once: it is to be tried again less and less often. @default false */
      readonly isLater?: boolean
    }

/** The result of reading a mailbox. */
export interface MailboxRead {
  /** First in, first out. They include each requested name that has a message. */
  readonly messages: readonly Message[]
  /** They were too large to be read at once: of each included name there may be more. */
  readonly isCut: boolean
}

export interface Host {
  readonly ports: Ports
  readonly payloads: Payloads
  readonly services: unknown
  /** Retry delays up to this are waited in memory; longer ones release the run. */
  readonly inlineRetryMs: number
  /** How long an aborted attempt is awaited. */
  readonly abortGraceMs: number
  /** A heartbeat of a step of this run: the deadline of its claim moves on. */
  heartbeat(runId: string): void
  /** Store time as far as this process knows: never ahead of it. */
  now(): number
  /**
   * When this worker first met a run that it may leave to others, with this last entry; null if that cannot be remembered.
   * @default nothing is remembered
   */
  firstMet?(run: Pick<Run, 'id' | 'seq'>): number | null
  /** Takes note of an attempt that failed and is followed by another one. @default it is only in the journal */
  attemptFailed?(failed: FailedAttempt): void
  /** The interval of polling a condition without a notification. */
  readonly untilIntervalMs: number
  /**
   * Reads the mailbox of a run that this process holds: the first `messagesAtOnce` messages of each of these names, or of
   * all if there are none.
   */
  mailbox(runId: string, names: readonly string[] | null): Promise<MailboxRead>
  /** Checks and encodes a run that is to be started, and gives it an id. Rejects if it is invalid. */
  prepare(child: NewChild): NewRun | Promise<NewRun>
  /** The run of a type that has a business key, else the one that had it last; null if there never was one. */
  receiver(key: { readonly type: string; readonly key: string }): Promise<string | null>
  /** How many unread messages a receiver may have when a run sends to it. */
  readonly limits: Pick<Limits, 'mailbox' | 'retained'>
  /**
   * Reads the whole journal of a run that this process holds, from its first entry to that one. @default a journal is only
   * read from its base on
   */
  journal?(runId: string, upTo: number): Promise<readonly Entry[]>
  /**
   * Commits the end of a side effect together with the entries that its instance decides because of it. Rejects as `commit`
   * does, or with the error of the decider if it cannot decide the outcome: then nothing was committed. @default the end is
   * committed by itself, and the instance finds it in its mailbox
   */
  settle?(outcome: EffectOutcome, end: Transition): Promise<Acknowledged>
  /** Has an input decided by an instance of a decider. @default functions cannot do that here */
  execute?(decider: Definition, input: unknown, options: { readonly commandId: string }): Promise<unknown>
  /** An id for a transition, unique over all processes. */
  transitionId(): string
  /** Rejects with LEASE_LOST, STALE_WRITE, RUN_CANCELLING, RUN_TIMEOUT, RUN_RESUMED or RUN_EXISTS when the store refuses. */
  commit(transition: Transition): Promise<Acknowledged>
  /** Runs work in a transaction of the user's; null if the store has none. */
  readonly transact: Transact | null
  /**
   * The key from which the secrets of completion tokens are derived. @default there is none: entries keep the secrets
   * themselves
   */
  readonly tokenKey?: string | null
}

/** The outcome of a side effect that an instance of a decider has asked for. */
export interface EffectOutcome {
  /** The run of the instance. */
  readonly runId: string
  readonly instance: { readonly type: string; readonly version: number; readonly id: string }
  /** The name of its entry in the journal of the instance: `charge#17`. */
  readonly name: string
  readonly meta: AttemptMeta
  readonly result: { readonly value: unknown } | { readonly effect: unknown; readonly error: unknown }
}

/** An attempt of a step, of its undo, of a body or of a timer that failed, and is followed by another one. */
export interface FailedAttempt {
  readonly run: Pick<Run, 'id' | 'type'>
  /** Null for the body. */
  readonly step: string | null
  readonly kind: 'do' | 'undo' | 'timer'
  readonly attempt: number
  readonly delayMs: number
  readonly error: unknown
}

/** A run that another one starts. */
export interface NewChild {
  readonly parentId: string
  readonly workflow: Definition | string
  readonly input: unknown
  /** The options of `ctx.child` or `ctx.start`, not checked yet, without those that the parent run supplies. */
  readonly options: Readonly<Record<string, unknown>>
  /** It is checked before `prepare` returns: a schema that takes time is refused. @default false */
  readonly atOnce?: boolean
}

/** Never rejects. While the store cannot be reached, the transaction is begun again, until it is aborted. */
export type Transact = (work: TransactionWork, options: TransactionOptions) => Promise<Transacted>

export interface TransactionOptions {
  /** Aborts when the transaction is no longer needed: it is rolled back at once. Not after its work is fulfilled. */
  readonly signal: AbortSignal
  readonly isolation: Isolation | undefined
}

/** Concurrent transactions are not visible, or this one is refused. */
export type Isolation = 'serializable'

/** The work of one transaction: `commit` commits a transition together with the writes through `tx`. */
export type TransactionWork = (tx: unknown, commit: Host['commit']) => Promise<void>

export type Transacted =
  | { readonly outcome: 'committed' }
  /** It had no effect. */
  | { readonly outcome: 'rolled-back'; readonly error: unknown }
  /** The answer to its COMMIT is lost: it has committed, or never will. */
  | { readonly outcome: 'unknown'; readonly error: unknown }

export interface Acknowledged {
  readonly seq: number
  readonly at: number
  readonly inbox: number
  readonly released: boolean
  readonly controlRequest: ControlRequest | null
  /** The runs that it has started and leased. Left out if there are none. */
  readonly leased?: readonly Run[]
  /** The answer to the transition that it settles. Left out if it settles none. */
  readonly settled?: Committed
}
