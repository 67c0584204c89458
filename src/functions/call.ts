// The calls that a body has made and that have not settled yet. A call is settled by its outcome in the journal, once.

import type { RetryPolicy } from '../core/retry.ts'
import type { Condition } from '../core/wait.ts'
import type { Attempt, StepTools } from '../core/attempt.ts'

export type Call = StepCall | WaitCall

export interface CallOutcome {
  readonly failed: boolean
  readonly value: unknown
  /** The entry that says so. */
  readonly seq: number
}

/** How the work of a step is undone: gets what the step returned. */
export type Undo = (result: never, step: StepTools) => unknown

/** The work of a step; `tx` is of meaning only if it is a transaction. */
export type Perform = (tools: StepTools, tx?: unknown) => unknown

class Pending {
  readonly name: string
  /** What the body awaits. */
  readonly promise: Promise<unknown>
  /** The outcome that the body has not seen yet. */
  outcome: CallOutcome | null = null
  /** It has its turn among the outcomes that the body has not seen, though not yet its outcome. */
  isExpected = false
  /** The neighbours among the calls of the body, in the order in which they were made. */
  previous: Call | null = null
  next: Call | null = null
  /** The file and line of the call, when that was asked for. */
  place: string | null = null
  private fulfil!: (value: unknown) => void
  private refuse!: (error: unknown) => void

  constructor(name: string) {
    this.name = name
    this.promise = new Promise((resolve, reject) => {
      this.fulfil = resolve
      this.refuse = reject
    })
  }

  settle({ failed, value }: CallOutcome): void {
    if (!failed) return this.fulfil(value)
    // A body may begin a step now and await it later. If it fails in between, that must not end the process.
    this.promise.catch(() => undefined)
    this.refuse(value)
  }
}

export class StepCall extends Pending {
  readonly kind = 'step'
  readonly perform: Perform
  readonly policy: RetryPolicy
  readonly timeoutMs: number | undefined
  readonly undo: Undo | undefined
  /** What it writes through its transaction and what is recorded of it are committed together. */
  readonly isTransaction: boolean
  /** Attempts that failed so far. */
  failures = 0
  /** The attempt that is running. */
  attempt: Attempt | null = null
  /** The delay before the next attempt, while there is one. */
  delay: Delay | null = null

  constructor(
    name: string,
    perform: Perform,
    options: {
      readonly policy: RetryPolicy
      readonly timeoutMs: number | undefined
      readonly undo: Undo | undefined
      readonly isTransaction: boolean
    },
  ) {
    super(name)
    this.perform = perform
    this.policy = options.policy
    this.timeoutMs = options.timeoutMs
    this.undo = options.undo
    this.isTransaction = options.isTransaction
  }
}

export interface Delay {
  readonly ms: number
  /** The time of the entry that announced it; null until that is durable. */
  since: number | null
}

export class WaitCall extends Pending {
  readonly kind = 'wait'
  readonly conditions: readonly Condition[]
  /** The time of the entry that registered it; null until that is durable. */
  registeredAt: number | null

  constructor(name: string, conditions: readonly Condition[], registeredAt: number | null) {
    super(name)
    this.conditions = conditions
    this.registeredAt = registeredAt
  }
}
