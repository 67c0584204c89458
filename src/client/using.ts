// The client inside a transaction of the user: its calls take effect if and only if that transaction commits. They must not read
// the store outside of it, which does not see what the transaction has written; and no run is begun or notified before
// the commit.

import type { Executed } from '../core/definition/decider-model.ts'
import type { Definition } from '../core/definition/definition.ts'
import type { Topic } from '../core/definition/declared-topic.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { isRunId } from '../core/model/run-id.ts'
import { checkOptions } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { transactionsOf } from '../engine/store/transact.ts'
import type { Delivered, ControlResult } from '../store.ts'
import type { AbortOption } from './abort-option.ts'
import type { Client } from './client.ts'
import { executeInTransaction } from './deciders/execute-in-transaction.ts'
import type { ExecuteOptions, Executor } from './deciders/executor.ts'
import { idOf, type RunReference } from './run-reference.ts'
import type { RunHandle } from './run-handle.ts'
import {
  broadcastOf,
  broadcastOutcome,
  signalPayloadOf,
  messageTo,
  signalOutcome,
  type BroadcastOptions,
  type BroadcastOutcome,
  type SignalOptions,
  type SignalOutcome,
} from './send/send.ts'
import type { StartOptions } from './start/start-options.ts'
import type { Starter } from './start/starts.ts'
import { cancelledOf, cancelRequest, type CancelOutcome, type CancelOptions } from './control/run-control.ts'

/** Holdfast inside a transaction of yours. A handle that it gives back can be asked for its result after the commit. */
export interface TransactionClient extends Starter, Executor {
  /** Sends a signal to a run; see `holdfast.signal`. A run that is being performed learns of it after the commit. */
  signal<Payload>(
    reference: RunReference,
    topic: Topic<Payload>,
    payload: Payload,
    options?: SignalOptions,
  ): Promise<SignalOutcome>
  signal(reference: RunReference, name: string, payload?: unknown, options?: SignalOptions): Promise<SignalOutcome>
  /** Sends something to a topic; see `holdfast.broadcast`. The topic is locked until the commit. */
  broadcast<Payload>(topic: Topic<Payload>, payload: Payload, options?: BroadcastOptions): Promise<BroadcastOutcome>
  /** Stops a run for good; see `holdfast.cancel`. One that is being performed learns of it with its next heartbeat. */
  cancel(reference: RunReference, options?: CancelOptions): Promise<CancelOutcome>
}

/** Throws INVALID_OPTION if the store has no transactions, or does not know this kind. @internal */
export function usingTransaction(engine: Engine, client: Client, tx: unknown): TransactionClient {
  engine.assertOpen()
  const transactions = transactionsOf(engine.store)
  if (transactions === null) {
    throw new HoldfastError(
      'INVALID_OPTION',
      'The memory store has no transactions of yours to take part in: holdfast.using(tx) needs a store in the database that ' +
        "has your tables, 'sqlite:app.db' or 'postgres://…'.",
    )
  }
  if (isHoldfast(tx)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      'holdfast.using(tx) must be given the transaction of your library. Got a Holdfast.',
    )
  }
  const transactionStore = transactions.inTransaction(tx)
  const start = async (
    workflow: Definition | string,
    input?: unknown,
    options: StartOptions = {},
  ): Promise<RunHandle<unknown>> => {
    refuseAbortSignal(options)
    transactionStore.recognise?.()
    return client.startInTransaction(transactionStore, workflow, input, options)
  }
  const execute = (decider: Definition | string, input: unknown, options: ExecuteOptions = {}): Promise<Executed> => {
    refuseAbortSignal(options)
    transactionStore.recognise?.()
    return executeInTransaction(engine, { store: transactionStore, tx }, { decider, input, options })
  }
  return {
    start: start as Starter['start'],
    execute,
    executeDynamic: execute,
    async signal(
      reference: RunReference,
      named: string | Topic,
      payload?: unknown,
      options: SignalOptions = {},
    ): Promise<SignalOutcome> {
      const runId = idOf(reference)
      refuseAbortSignal(options)
      checkOptions(options, ['id'], 'signal()')
      transactionStore.recognise?.()
      const content = await signalPayloadOf(engine, named, payload, options.id)
      if (!isRunId(runId)) return { outcome: 'target-not-found' }
      const [delivered] = await transactionStore.deliver([await messageTo(engine, runId, content)])
      return signalOutcome(engine.limits, runId, content.id, delivered as Delivered)
    },
    async broadcast(topic, payload, options = {}) {
      refuseAbortSignal(options)
      transactionStore.recognise?.()
      const message = await broadcastOf(engine, topic, payload, options)
      const [delivered] = await transactionStore.deliver([message])
      return broadcastOutcome(engine.limits, message, delivered as Delivered)
    },
    async cancel(reference, options = {}) {
      refuseAbortSignal(options)
      const runId = idOf(reference)
      transactionStore.recognise?.()
      const request = { ...cancelRequest(options), id: engine.transitionId(), runId }
      const [answer] = await transactionStore.control([request])
      return cancelledOf(runId, answer as ControlResult)
    },
  }
}

/** It has a method `query`, as a transaction may have. */
function isHoldfast(tx: unknown): boolean {
  const { using, work, journal } = (tx ?? {}) as Readonly<Record<string, unknown>>
  return [using, work, journal].every((method) => typeof method === 'function')
}

/** A call inside a transaction cannot be given up without the transaction, so it takes no abort signal. */
function refuseAbortSignal({ abortSignal }: AbortOption): void {
  if (abortSignal === undefined) return
  throw new HoldfastError(
    'INVALID_OPTION',
    'holdfast.using(tx) takes no abortSignal: its calls wait as all statements of your transaction do. Roll that back instead.',
  )
}
