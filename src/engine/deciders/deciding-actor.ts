// What the parts of an actor know of it, and its callers.

import type { Accepted, Answer, DeciderDefinition } from '../../core/definition/decider-model.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { CachedInstance } from './cached-instance.ts'
import type { DecidingEngine } from './deciding-engine.ts'

/** The answer to a caller. An input that failed is an error. */
export type InputAnswer = Accepted | Extract<Answer, { outcome: 'rejected' | 'already-completed' }>

export interface Input {
  readonly input: unknown
  readonly command: string | null
  /** How long to wait at most for a holder of the run. */
  readonly timeoutMs: number
}

export interface Call {
  readonly kind: 'call'
  readonly input: unknown
  /** Null if its caller gave none: it gets one when it goes through the mailbox. */
  command: string | null
  /** How long its caller waits for a holder of the run, and when that is over in the time of this process. */
  readonly timeoutMs: number
  readonly until: number
  /** Its caller has an answer: nothing is sent for it any more. */
  isGivenUp: boolean
  readonly resolve: (answer: InputAnswer) => void
  readonly reject: (error: unknown) => void
}

/** Gives callers an answer whose inputs are on their way to the store for too long. */
export interface CallWatch {
  watch(call: Call): void
  /** It has its answer, or lies in the mailbox. */
  done(call: Call): void
}

export interface DecidingActor {
  readonly engine: DecidingEngine
  readonly definition: DeciderDefinition
  readonly id: string
  readonly bytes: number
  readonly late: CallWatch
  /** What is known of the instance; null while it was not read, or is not to be trusted. */
  cached: CachedInstance | null
  /** Calls back with the instance as the store has it, null if there is none, while nothing is pending. */
  look<Result>(read: (cached: CachedInstance | null) => Result): Promise<Result>
  add(call: Call): void
  /** Gives the first of the calls their answers. */
  answer(cached: CachedInstance, calls: readonly Call[], answers: readonly Answer[]): Promise<void>
  noteCommitted(cached: CachedInstance, transition: Transition): void
  /** Inputs that went through the mailbox have their answers. */
  rested(): void
}

/** The collection that an actor belongs to. */
export interface InstanceKeeper {
  /** Nothing is under way any more. */
  rested(actor: DecidingActor): void
}
