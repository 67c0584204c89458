// The calls that a body has made and that have not settled yet. A call is settled by its outcome in the journal, once.

import type { Isolation } from '../../core/definition/definition.ts'
import type { RetryPolicy } from '../../core/definition/retry.ts'
import type { WokenMeta } from '../../core/model/entry.ts'
import { messageNameOf, type RecordedCondition } from '../../core/model/wait-condition.ts'
import type { Attempt, StepTools } from '../../core/runtime/attempt.ts'
import { CallPromise } from '../api/call-promise.ts'
import type { WaitCase } from '../waits/wait-case.ts'

export type Call = StepCall | WaitCall | SendCall

export interface CallOutcome {
  readonly failed: boolean
  readonly value: unknown
  /** The entry of the outcome; null if there is none, because the call was not recorded. */
  readonly seq: number | null
}

/** An outcome that stands in the journal. */
export interface RecordedOutcome extends CallOutcome {
  readonly seq: number
}

/** How a wait ended, as the journal has it. */
export interface WokenOutcome {
  readonly meta: WokenMeta
  readonly data: string | null
  /** The data is as the journal keeps it: it may lie elsewhere. */
  readonly isKept: boolean
}

/** Undoes the work of a step: gets the result of the step. */
export type UndoFunction = (result: never, step: StepTools) => unknown

/** The work of a step; `tx` is of meaning only if it is a transaction. */
export type Perform = (tools: StepTools, tx?: unknown) => unknown

type Fulfil = (value: unknown) => void
type Refuse = (error: unknown) => void

// The two functions that settle the promise that was made last: one shared executor takes them, so that no call makes its
// own.
let fulfilLast: Fulfil = () => undefined
let refuseLast: Refuse = () => undefined
const hold = (fulfil: Fulfil, refuse: Refuse): void => {
  fulfilLast = fulfil
  refuseLast = refuse
}

class Pending {
  readonly name: string
  /** The promise that the body awaits. */
  readonly promise: CallPromise<unknown>
  /** The outcome that the body has not seen yet. */
  outcome: CallOutcome | null = null
  /** It has its turn among the outcomes that the body has not seen, though not yet its outcome. */
  isExpected = false
  /** The neighbours among the calls of the body, in the order in which they were made. */
  previous: Call | null = null
  next: Call | null = null
  /** The file and line of the call, when that was asked for. */
  place: string | null = null
  private readonly fulfil: Fulfil
  private readonly refuse: Refuse

  constructor(name: string) {
    this.name = name
    this.promise = new CallPromise(hold)
    this.fulfil = fulfilLast
    this.refuse = refuseLast
  }

  settle({ failed, value }: CallOutcome): void {
    if (!failed) return this.fulfil(value)
    this.promise.silence()
    this.refuse(value)
  }
}

export class StepCall extends Pending {
  readonly kind = 'step'
  /** The name that the body uses: `charge`, of which `eu/charge#2` may be the identity. */
  readonly calledAs: string
  readonly perform: Perform
  readonly policy: RetryPolicy
  readonly timeoutMs: number | undefined
  readonly undo: UndoFunction | undefined
  /** The writes through its transaction and its entry are committed together. */
  readonly isTransaction: boolean
  /** The isolation level of a transaction. */
  readonly isolation: Isolation | undefined
  /** Attempts that failed so far. */
  failures = 0
  /** How many of them failed only because of conflicts with other transactions. */
  conflicts = 0
  /** The attempt that is running. */
  attempt: Attempt | null = null
  /** The delay before the next attempt, while there is one. */
  delay: Delay | null = null

  constructor(
    name: string,
    calledAs: string,
    perform: Perform,
    options: {
      readonly policy: RetryPolicy
      readonly timeoutMs?: number | undefined
      readonly undo?: UndoFunction | undefined
      readonly isTransaction: boolean
      readonly isolation?: Isolation | undefined
    },
  ) {
    super(name)
    this.calledAs = calledAs
    this.perform = perform
    this.policy = options.policy
    this.timeoutMs = options.timeoutMs
    this.undo = options.undo
    this.isTransaction = options.isTransaction
    this.isolation = options.isolation
  }
}

/** A message that the body sends. */
export class SendCall extends Pending {
  readonly kind = 'send'
}

export interface Delay {
  readonly ms: number
  /** The time of the entry that announced it; null until that is durable. */
  since: number | null
}

export class WaitCall extends Pending {
  readonly kind = 'wait'
  /** The recorded conditions; empty until they are known. */
  conditions: readonly RecordedCondition[] = []
  /** The names of the messages that can end it. */
  messageNames: readonly string[] = []
  /** The time of the entry that registered it; null until that is durable. */
  registeredAt: number | null = null
  /** Its place among the waits of the body. */
  order = 0
  /** The body awaits it, or has handed it to a race. */
  isAwaited = false
  /** It is among the calls that settle: the body awaits it itself. One that was handed to a race is not. */
  isEntered = false
  /** Why it cannot begin, if it is not among them. */
  failure: { readonly error: unknown } | null = null
  private readonly cases: readonly WaitCase[]

  constructor(name: string, cases: readonly WaitCase[]) {
    super(name)
    this.cases = cases
  }

  register(conditions: readonly RecordedCondition[], at: number | null): void {
    this.conditions = conditions
    this.registeredAt = at
    const messageNames = conditions.map(messageNameOf).filter((name) => name !== null)
    this.messageNames = messageNames.length > 1 ? [...new Set(messageNames)] : messageNames
  }

  /** The value that the body gets. Throws the error that the body is to catch. */
  read(meta: WokenMeta, value: unknown): unknown {
    return this.cases.find(({ tag }) => tag === meta.winner)?.read(meta, value)
  }
}
