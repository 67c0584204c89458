// Operations: every call that changes something, as data that can be made, looked at, logged and compared before it is submitted.
// `holdfast.submit(operation)` performs one and `submitBatch` many; each method that changes something is exactly the submission
// of its operation. With workflows, topics and runs named by text, an operation is plain JSON.

import type { Definition, TypedDefinition } from '../core/definition/definition.ts'
import type { Topic } from '../core/definition/declared-topic.ts'
import type { Executed, TypedDecider } from '../core/definition/decider-model.ts'
import type { Enqueued, ExecuteOptions } from './deciders/executor.ts'
import type { CompleteOptions, CompleteOutcome } from './send/complete.ts'
import type { RunHandle } from './run-handle.ts'
import type { RunReference } from './run-reference.ts'
import type { SendOrStartOptions, SendOrStartOutcome } from './start/send-or-start.ts'
import type { BroadcastOptions, BroadcastOutcome, SignalOptions, SignalOutcome } from './send/send.ts'
import type { StartOptions } from './start/start-options.ts'
import type {
  CancelOutcome,
  CancelOptions,
  NoteOptions,
  PauseOutcome,
  PauseOptions,
  RemoveOptions,
  ResumeOptions,
  ResumeOutcome,
  RetryOutcome,
} from './control/run-control.ts'
import type { Target } from './send/signal-target.ts'

export interface StartOperation {
  readonly kind: 'start'
  readonly workflow: Definition | string
  readonly input?: unknown
  readonly options?: StartOptions | undefined
}

export interface SignalOperation {
  readonly kind: 'signal'
  readonly to: Target
  /** The name of the signal, or a topic in whose name it is sent. */
  readonly name: string | Topic
  readonly payload?: unknown
  readonly options?: SignalOptions | undefined
}

export interface BroadcastOperation {
  readonly kind: 'broadcast'
  readonly topic: Topic
  readonly payload?: unknown
  readonly options?: BroadcastOptions | undefined
}

export interface SendOrStartOperation {
  readonly kind: 'sendOrStart'
  readonly workflow: Definition | string
  readonly key: string
  readonly name: string | Topic
  readonly payload?: unknown
  readonly input?: unknown
  readonly options?: SendOrStartOptions | undefined
}

export interface CompleteOperation {
  readonly kind: 'complete'
  readonly token: string
  readonly value?: unknown
  readonly options?: CompleteOptions | undefined
}

export interface ExecuteOperation {
  readonly kind: 'execute'
  readonly decider: Definition | string
  readonly input: unknown
  readonly options?: ExecuteOptions | undefined
}

export interface EnqueueOperation {
  readonly kind: 'enqueue'
  readonly decider: Definition | string
  readonly input: unknown
  readonly options?: ExecuteOptions | undefined
}

export interface RefuseOperation {
  readonly kind: 'refuse'
  readonly token: string
  readonly error?: unknown
  readonly options?: CompleteOptions | undefined
}

/** An operation on one run that exists. */
interface RunOperation<Kind extends string, Options> {
  readonly kind: Kind
  readonly run: RunReference
  readonly options?: Options | undefined
}

/** Each kind of operation, and its answer. */
interface Operations {
  readonly start: readonly [StartOperation, RunHandle<unknown>]
  readonly signal: readonly [SignalOperation, SignalOutcome]
  readonly broadcast: readonly [BroadcastOperation, BroadcastOutcome]
  readonly sendOrStart: readonly [SendOrStartOperation, SendOrStartOutcome]
  readonly complete: readonly [CompleteOperation, CompleteOutcome]
  readonly execute: readonly [ExecuteOperation, Executed]
  readonly enqueue: readonly [EnqueueOperation, Enqueued]
  readonly refuse: readonly [RefuseOperation, CompleteOutcome]
  readonly cancel: readonly [RunOperation<'cancel', CancelOptions>, CancelOutcome]
  readonly pause: readonly [RunOperation<'pause', PauseOptions>, PauseOutcome]
  readonly resume: readonly [RunOperation<'resume', ResumeOptions>, ResumeOutcome]
  readonly retry: readonly [RunOperation<'retry', NoteOptions>, RetryOutcome]
  readonly remove: readonly [RunOperation<'remove', RemoveOptions>, void]
}

export type OperationKind = keyof Operations

/** An operation that answers with this. */
export type Operation<Answer = unknown> = {
  [Kind in OperationKind]: Operations[Kind][1] extends Answer ? Operations[Kind][0] : never
}[OperationKind]

/** The answer of an operation. */
export type OperationResult<Given extends Operation> = Given extends {
  readonly kind: 'start'
  readonly workflow: TypedDefinition<infer _Input, infer Output>
}
  ? RunHandle<Output>
  : Given extends { readonly kind: 'execute'; readonly decider: TypedDecider<infer Types> }
    ? Executed<Types>
    : Given extends { readonly kind: 'enqueue'; readonly decider: TypedDecider<infer Types> }
      ? Enqueued<Types>
      : Operations[Given['kind']][1]

/** The answer of one operation of several: one that fails does not affect the others. */
export type SettledOperation<Answer> =
  { readonly ok: true; readonly value: Answer } | { readonly ok: false; readonly error: unknown }

/** The fields of an operation of each kind besides `kind`. */
export const operationFields: Readonly<Record<OperationKind, readonly string[]>> = {
  start: ['workflow', 'input', 'options'],
  signal: ['to', 'name', 'payload', 'options'],
  broadcast: ['topic', 'payload', 'options'],
  sendOrStart: ['workflow', 'key', 'name', 'payload', 'input', 'options'],
  complete: ['token', 'value', 'options'],
  execute: ['decider', 'input', 'options'],
  enqueue: ['decider', 'input', 'options'],
  refuse: ['token', 'error', 'options'],
  cancel: ['run', 'options'],
  pause: ['run', 'options'],
  resume: ['run', 'options'],
  retry: ['run', 'options'],
  remove: ['run', 'options'],
}

/** Makes operations from the arguments of the method of the same name. */
export const operation = {
  start: <Workflow extends Definition | string>(workflow: Workflow, input?: unknown, options?: StartOptions) =>
    made({ kind: 'start', workflow, input, options }),
  signal: (to: Target, name: string | Topic, payload?: unknown, options?: SignalOptions): SignalOperation =>
    made({ kind: 'signal', to: named(to), name, payload, options }),
  broadcast: <Payload>(topic: Topic<Payload>, payload: Payload, options?: BroadcastOptions): BroadcastOperation =>
    made({ kind: 'broadcast', topic, payload, options }),
  sendOrStart: (
    workflow: Definition | string,
    key: string,
    name: string | Topic,
    payload?: unknown,
    input?: unknown,
    options?: SendOrStartOptions,
  ): SendOrStartOperation => made({ kind: 'sendOrStart', workflow, key, name, payload, input, options }),
  complete: (token: string, value?: unknown, options?: CompleteOptions): CompleteOperation =>
    made({ kind: 'complete', token, value, options }),
  execute: <Named extends Definition | string>(decider: Named, input: unknown, options?: ExecuteOptions) =>
    made({ kind: 'execute', decider, input, options }),
  enqueue: <Named extends Definition | string>(decider: Named, input: unknown, options?: ExecuteOptions) =>
    made({ kind: 'enqueue', decider, input, options }),
  refuse: (token: string, error: unknown, options?: CompleteOptions): RefuseOperation =>
    made({ kind: 'refuse', token, error, options }),
  cancel: (run: RunReference, options?: CancelOptions) => made({ kind: 'cancel', run: named(run), options }),
  pause: (run: RunReference, options?: PauseOptions) => made({ kind: 'pause', run: named(run), options }),
  resume: (run: RunReference, options?: ResumeOptions) => made({ kind: 'resume', run: named(run), options }),
  retry: (run: RunReference, options?: NoteOptions) => made({ kind: 'retry', run: named(run), options }),
  remove: (run: RunReference, options?: RemoveOptions) => made({ kind: 'remove', run: named(run), options }),
}

/** The id in place of a handle, so that an operation is data. It is checked when the operation is submitted. */
function named<Name extends Target>(target: Name): Name | string {
  const isObject = typeof target === 'object' && target !== null
  return isObject && 'id' in target && typeof target.id === 'string' ? target.id : target
}

/** Leaves out what is undefined, so that operations that mean the same are equal. */
function made<const Made extends Operation>(given: Made): Made {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as unknown as Made
}
