// How inputs of deciders are sent, and what a caller learns.

import type { DeciderTypes, Executed, TypedDecider } from '../../core/definition/decider-model.ts'
import type { Duration } from '../../core/definition/duration.ts'
import type { AbortOption } from '../abort-option.ts'

export interface ExecuteOptions extends AbortOption {
  /**
   * Names the input: repeated under the same id, it is not decided again, and its caller gets the first outcome. An instance
   * remembers the last thousand. @default a repetition is decided like any other input
   */
  readonly commandId?: string
  /**
   * How long to wait for another process that holds the instance. Then the call is rejected with EXECUTE_TIMEOUT; the input
   * lies in the mailbox and will be decided. A store that does not answer, because the row is locked, has five seconds more. Without effect in a transaction, which never waits. @default '1 min'
   */
  readonly timeout?: Duration
  /**
   * Returns only once this projection, or the one of this name, has seen what is committed by then: its read model shows the
   * events. Within the `timeout`, else the call is rejected with PROJECTION_BEHIND, and the input is decided all the same. Only
   * for `execute` outside of a transaction. @default it does not wait
   */
  readonly waitFor?: string | { readonly name: string }
}

/** What became of an input for the mailbox. The first input of an instance is decided at once. */
export type Enqueued<Types extends DeciderTypes = DeciderTypes> =
  | Executed<Types>
  /** It will be decided after those that were enqueued before it; `commandId` is its id. */
  | { readonly outcome: 'queued'; readonly commandId: string }

export interface Executor {
  /**
   * Has an input decided by the instance that it names, which it may begin. When this returns, what follows is committed.
   * Rejects with DECIDE_FAILED if `decide` or `evolve` throws: then nothing has happened. Rejects with WRONG_STATUS if the
   * instance is paused.
   *
   * @example
   * const answer = await holdfast.execute(order, { type: 'Pay', orderId: '42', amount: 99 })
   * if (answer.outcome === 'accepted') console.log(answer.state)
   */
  execute<Types extends DeciderTypes>(
    decider: TypedDecider<Types>,
    input: Types['input'],
    options?: ExecuteOptions,
  ): Promise<Executed<Types>>
  /** The same by the name of the decider, for inputs whose type is not known before, as those of an HTTP request. */
  executeDynamic(type: string, input: unknown, options?: ExecuteOptions): Promise<Executed>
}

export interface Enqueuer {
  /**
   * Puts an input into the mailbox of an instance, where a worker decides it after those before it. It is stored when this
   * returns. `execute` does not wait behind it.
   */
  enqueue<Types extends DeciderTypes>(
    decider: TypedDecider<Types>,
    input: Types['input'],
    options?: ExecuteOptions,
  ): Promise<Enqueued<Types>>
  enqueue(decider: string, input: unknown, options?: ExecuteOptions): Promise<Enqueued>
}
