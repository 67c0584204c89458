// What a client does inside of a transaction that its user began: it takes effect if and only if that commits. Nothing here
// may look at the store from outside, which does not see what the transaction has written; nor is a run begun or told of
// anything before it is certain that it exists.

import type { Definition } from '../core/definition.ts'
import { HoldfastError } from '../core/error.ts'
import { checkKey } from '../core/key.ts'
import { messagePlace } from '../core/message.ts'
import { isPrintable } from '../core/printable.ts'
import { checkOptions, shown } from '../core/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { transactionsOf } from '../engine/transacting.ts'
import type { Delivered, Steered, Within } from '../store.ts'
import type { Client } from './client.ts'
import { idOf, type RunReference } from './run-reference.ts'
import type { RunHandle } from './run-handle.ts'
import type { StartOptions } from './start-options.ts'
import type { Starts } from './starts.ts'
import { cancelledOf, cancelRequest, type Cancelled, type CancelOptions } from './steering.ts'

export interface DeliverOptions {
  /** Makes a repeated delivery harmless: a run takes each id once. @default a new one */
  readonly id?: string
}

/** Holdfast inside a transaction of yours. A handle that it gives back can be asked for its result after the commit. */
export interface Using extends Starts {
  /** Leaves a message in the mailbox of a run, and wakes it if it waits. */
  deliver(reference: RunReference, name: string, data?: unknown, options?: DeliverOptions): Promise<Delivered>
  /** Stops a run for good; see `holdfast.cancel`. One that is being performed learns of it with its next heartbeat. */
  cancel(reference: RunReference, options?: CancelOptions): Promise<Cancelled>
}

const longestName = 200

/** Throws INVALID_OPTION if the store has no transactions, or does not know this kind. */
export function usingTransaction(engine: Engine, client: Client, tx: unknown): Using {
  engine.assertOpen()
  const transactions = transactionsOf(engine.store)
  if (transactions === null) {
    throw new HoldfastError(
      'INVALID_OPTION',
      'The memory store has no transactions of yours to take part in: holdfast.using(tx) needs a store in the database that ' +
        "has your tables, 'sqlite:app.db' or 'postgres://…'.",
    )
  }
  const within = transactions.within(tx)
  const start = (workflow: Definition | string, input?: unknown, options?: StartOptions): Promise<RunHandle<unknown>> =>
    client.startWithin(within, workflow, input, options)
  return {
    start,
    deliver: (reference, name, data, options) =>
      deliverOne(engine, within, { runId: idOf(reference), name, data }, options),
    async cancel(reference, options = {}) {
      const runId = idOf(reference)
      const request = { ...cancelRequest(options), id: engine.transitionId(), runId }
      const [answer] = await within.steer([request])
      return cancelledOf(runId, answer as Steered)
    },
  }
}

async function deliverOne(
  engine: Engine,
  within: Within,
  { runId, name, data }: { readonly runId: string; readonly name: string; readonly data: unknown },
  options: DeliverOptions = {},
): Promise<Delivered> {
  checkOptions(options, ['id'], 'deliver()')
  if (typeof name !== 'string' || name === '' || name.length > longestName || !isPrintable(name)) {
    throw new HoldfastError(
      'INVALID_NAME',
      `A message needs a name: printable text of 1 to ${longestName} characters. Got ${shown(name)}.`,
    )
  }
  const id = options.id === undefined ? engine.transitionId() : checkKey(options.id, 'The id of a message')
  const text = engine.payloads.encode(data, messagePlace(runId, id))
  const [answer] = await within.deliver([{ id, runId, name, data: text }])
  return answer as Delivered
}
