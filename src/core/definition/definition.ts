// What a style gives to the worker: a definition that can open a frame for a run, and what the worker lends to it.
// The worker knows nothing else of the three styles.

import type { Entry } from '../model/entry.ts'
import type { Message } from '../model/message.ts'
import type { NewRun } from '../model/new-run.ts'
import type { Payloads } from '../payload/payload.ts'
import type { Ports } from '../runtime/ports.ts'
import type { KeyScope } from '../model/key.ts'
import type { Lease, Run, TerminalStatus, ControlRequest } from '../model/run.ts'
import type { OnCrashes } from '../rules/takeover.ts'
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
  /** How many processes may die of one of its runs. @default null, the bound of the worker */
  readonly maxCrashes?: number | null
  /** What becomes of a run at that bound. @default 'pause' */
  readonly onCrashes?: OnCrashes
  /** The feed tells of the journals of its runs. */
  readonly feed: boolean
  /** How the business key of a run is read from its input; null if a start may give a key. */
  readonly unique: Unique | null
  /** Tags and metadata of each of its runs. */
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** Turns what a caller gave to `start` into what the run will see, or says what is wrong with it. */
  readonly validate: (input: unknown) => unknown
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
   * What lies in its mailbox: the first `mailAtOnce` messages; when a frame is resumed, those that it wants. Null if nobody
   * has looked.
   */
  readonly messages: readonly Message[] | null
}

/** The execution of one run in this process. While the run is parked, its frame may stay in memory. */
export interface Frame {
  /** The `seq` up to which this frame knows the journal: it can be resumed while that is the run's. Null if never. */
  readonly seq: number | null
  /** The commit with which it leaves is on its way: soon it departs, or goes on. */
  readonly isLeaving: boolean
  /** The same, and no code of the run executes here meanwhile. */
  readonly isVacant: boolean
  /** Moves the run on until it ends, parks, is due again later, or is lost. */
  start(): Promise<Departure>
  /** Moves a parked run on, under a new lease and without replay. */
  resume(claim: Claim): Promise<Departure>
  /**
   * Somebody wants the run cancelled or paused: obeys as soon as it can. Null if nobody wants anything any more. May be told
   * more than once.
   */
  applyControl(controlRequest: ControlRequest | null): void
  /** How many messages it knows to have arrived; null if it does not want to know of more. */
  readonly arrived: number | null
  /** The names of the messages that can move it on; null if they are too many to ask for by name. */
  readonly wakeNames: readonly string[] | null
  /** More messages have arrived: so many by now, null if that is not known. May be told more than once, and late. */
  mail(inbox: number | null): void
  /** Ends the run with an error, after undoing what there is to undo. */
  fail(error: unknown): void
  /** Leaves at the next checkpoint: what is under way ends and is recorded, nothing new begins. It departs as `given-back`. */
  giveBack(): void
  /** Waits no longer for what is under way: the journal says that it was abandoned. */
  abandon(): void
  /** Stops at once: aborts what is running and commits nothing any more. */
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
  /** The run begins anew under the same lease: `input` is the entry that it begins with. */
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
  /** The frame has left the run at a checkpoint. The lease still stands: whoever asked for this gives the run back. */
  | { readonly kind: 'given-back' }
  /** The lease or the journal went elsewhere; nothing more may be done for this run here. */
  | { readonly kind: 'lost'; readonly reason: unknown }

/** What was read of a mailbox. */
export interface MailboxRead {
  /** First in, first out. Each name that was asked for is among them if there is a message of that name. */
  readonly messages: readonly Message[]
  /** They were too large to be read at once: of each name that is among them there may be more. */
  readonly isCut: boolean
}

export interface Host {
  readonly ports: Ports
  readonly payloads: Payloads
  readonly services: unknown
  /** Retry delays up to this are waited in memory; longer ones release the run. */
  readonly inlineRetryMs: number
  /** How long an attempt that was told to stop is waited for. */
  readonly abortGraceMs: number
  /** A step of this run says that it is alive: the deadline of its claim moves on. */
  heartbeat(runId: string): void
  /** Store time as far as this process knows: never ahead of it. */
  now(): number
  /** How often a condition is checked that nobody tells of. */
  readonly pauseCheckMs: number
  /**
   * Reads what lies in the mailbox of a run that this process holds: the first `mailAtOnce` messages of each of these names,
   * or of all if there are none.
   */
  mailbox(runId: string, names: readonly string[] | null): Promise<MailboxRead>
  /** Checks and encodes what a run wants to start, and gives it an id. Rejects with what is wrong with it. */
  prepare(child: NewChild): NewRun | Promise<NewRun>
  /** An id for a transition, unique over all processes. */
  transitionId(): string
  /** Rejects with LEASE_LOST, STALE_WRITE, RUN_CANCELLING, RUN_TIMEOUT, RUN_RESUMED or RUN_EXISTS when the store refuses. */
  commit(transition: Transition): Promise<Acknowledged>
  /** Lets work take place in a transaction of the user's; null where the store has none. */
  readonly transact: Transact | null
  /** What the secrets of tokens are made with. @default there is none: entries keep the secrets themselves */
  readonly tokenKey?: string | null
}

/** A run that another one starts. */
export interface NewChild {
  readonly parentId: string
  readonly workflow: Definition
  readonly input: unknown
  /** As given to `ctx.child` or `ctx.start`, and not checked yet; but for what the run that asks knows of. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Never rejects. The transaction is begun anew, until it is aborted, while the store cannot be reached. */
export type Transact = (work: TransactionWork, options: TransactionOptions) => Promise<Transacted>

export interface TransactionOptions {
  /** Aborts when nobody wants the transaction any more: it is torn down, whatever it is doing. Not once its work is fulfilled. */
  readonly signal: AbortSignal
  readonly isolation: Isolation | undefined
}

/** What others do at the same time is not seen, or the transaction is refused. */
export type Isolation = 'serializable'

/** What takes place in one transaction: `commit` commits a transition together with what is written through `tx`. */
export type TransactionWork = (tx: unknown, commit: Host['commit']) => Promise<void>

export type Transacted =
  | { readonly outcome: 'committed' }
  /** Nothing of it has happened. */
  | { readonly outcome: 'rolled-back'; readonly error: unknown }
  /** The answer to its COMMIT is missing: it has happened, or never will. */
  | { readonly outcome: 'in-doubt'; readonly error: unknown }

export interface Acknowledged {
  readonly seq: number
  readonly at: number
  readonly inbox: number
  readonly released: boolean
  readonly controlRequest: ControlRequest | null
}
