// The methods of a Holdfast that send to runs and topics, and those that submit operations.

import type { Definition, TypedDefinition } from '../../core/definition/definition.ts'
import type { Topic } from '../../core/definition/declared-topic.ts'
import type { AbortOption } from '../abort-option.ts'
import type { AskOptions } from './ask.ts'
import type { CompleteOptions, CompleteOutcome } from './complete.ts'
import type {
  DeadLetterOptions,
  DeadLetterPage,
  DeadLetterReference,
  RetryDeadLetterOptions,
  RetryDeadLetterOutcome,
} from './dead-letters.ts'
import type { OperationResult, Operation, SettledOperation, SignalOperation } from '../operation.ts'
import type { RunHandle } from '../run-handle.ts'
import type { SendOrStartOptions, SendOrStartOutcome } from '../start/send-or-start.ts'
import type { BroadcastOptions, BroadcastOutcome, SignalOptions, SignalOutcome } from './send.ts'
import type { OutputOf, StartOf } from '../start/starts.ts'
import type { StartBuilder } from '../start/start-builder.ts'
import type { Target } from './signal-target.ts'

export interface Sender {
  /**
   * Sends a signal to a run. It is never too early: a run finds it when it comes to wait for it. Sent in the name of a topic,
   * its payload is checked, and the topic says what becomes of it if the run ends without having read it.
   *
   * @example
   * await holdfast.signal(run, 'approved', { by: 'Ada' })
   * await holdfast.signal({ type: 'order', key: '42' }, 'approved', { by: 'Ada' }, { id: 'request-7' })
   */
  signal<Payload>(to: Target, topic: Topic<Payload>, payload: Payload, options?: SignalOptions): Promise<SignalOutcome>
  signal(to: Target, name: string, payload?: unknown, options?: SignalOptions): Promise<SignalOutcome>
  /** Sends many signals at once. One answer for each, in order; they arrive in that order, too. */
  signals(
    signals: readonly Omit<SignalOperation, 'kind'>[],
    options?: AbortOption,
  ): Promise<readonly SettledOperation<SignalOutcome>[]>
  /** Sends something to a topic: to every run that waits on it, or to one, as the topic says. */
  broadcast<Payload>(topic: Topic<Payload>, payload: Payload, options?: BroadcastOptions): Promise<BroadcastOutcome>
  /**
   * Sends a signal to the run of a workflow that has a key. If there is none, one is started, and finds the signal in its
   * mailbox.
   */
  sendOrStart<Input>(
    workflow: TypedDefinition<Input, unknown> | string,
    key: string,
    name: string | Topic,
    payload: unknown,
    input: NoInfer<Input>,
    options?: SendOrStartOptions,
  ): Promise<SendOrStartOutcome>
  /** Starts many runs at once. One answer for each, in order; a start that fails does not affect the others. */
  startMany<const Workflows extends readonly (Definition | string)[]>(
    starts: { readonly [At in keyof Workflows]: StartOf<Workflows[At]> },
    options?: AbortOption,
  ): Promise<{ readonly [At in keyof Workflows]: SettledOperation<RunHandle<OutputOf<Workflows[At]>>> }>
  /** Completes the wait of a token that a run has issued with `ctx.token`. */
  complete(token: string, value?: unknown, options?: CompleteOptions): Promise<CompleteOutcome>
  /** Makes the wait of such a token fail with this error, which the body can catch. */
  refuse(token: string, error: unknown, options?: CompleteOptions): Promise<CompleteOutcome>
  /**
   * Asks a run: a signal that it answers, once, with `message.reply` or `message.refuse`. The answer is durable, so that a
   * caller whose process died asks again with the same `id`. Throws ASK_REFUSED, ASK_UNANSWERED if the run ends without an
   * answer, ASK_TIMEOUT, and RUN_NOT_FOUND.
   *
   * @example
   * const price = await holdfast.ask<number>(run, 'price', { of: 'tea' }, { timeout: '5s' })
   */
  ask<Answer = unknown>(to: Target, name: string | Topic, payload?: unknown, options?: AskOptions): Promise<Answer>

  /** Performs an operation. Every method that changes something is exactly this. */
  submit<const Given extends Operation>(operation: Given): Promise<OperationResult<Given>>
  /** Starts a run of a workflow by its name, in a chain of words that ends with `execute()`. */
  submit(type: string, payload?: unknown): StartBuilder
  /**
   * Performs operations of any kinds, in order. One answer for each; one that fails does not affect the others. The end state is
   * that of submitting one by one, but neighbours that send, or that start, go to the store together.
   */
  submitBatch<const Given extends readonly Operation[]>(
    operations: Given,
    options?: AbortOption,
  ): Promise<{ readonly [At in keyof Given]: SettledOperation<OperationResult<Given[At]>> }>

  /** Dead letters: messages that their runs did not read before they ended, and that were to be kept. Newest first, by pages. */
  deadLetters(options?: DeadLetterOptions): Promise<DeadLetterPage>
  /** Sends a dead letter again: to its topic, or to a run. Repeating it changes nothing. */
  retryDeadLetter(letter: DeadLetterReference, options: RetryDeadLetterOptions): Promise<RetryDeadLetterOutcome>
  /** Discards a dead letter. */
  discardDeadLetter(
    letter: DeadLetterReference,
    options?: AbortOption,
  ): Promise<{ readonly outcome: 'discarded' | 'not-dead' }>
}
