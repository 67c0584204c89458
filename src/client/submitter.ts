// Performs operations. In a batch, neighbours of the same sort go to the store together (sends as one delivery, starts as one
// insert), and all others one after the other. The end state is that of submitting one by one, the answers are in the order of the
// operations, and one that fails does not affect the others.

import { HoldfastError } from '../core/errors/error.ts'
import { checkBatch } from '../core/definition/limits.ts'
import { checkOptions, didYouMean, shown } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { checkAbortSignal, type AbortOption } from './abort-option.ts'
import type { Client, PreparedStart } from './client.ts'
import { enqueueInput } from './deciders/enqueue.ts'
import { executeInput } from './deciders/execute.ts'
import { completeToken, refuseToken } from './send/complete.ts'
import { operationFields, type Operation, type OperationKind, type SettledOperation } from './operation.ts'
import { idOf } from './run-reference.ts'
import { sendOrStart } from './start/send-or-start.ts'
import { checkedSignal, prepareBroadcast, send, type PreparedSend } from './send/send.ts'
import { cancelRun, pauseRun, removeRun, resumeRun, retryRun } from './control/run-control.ts'

type Sending = Extract<Operation, { kind: 'signal' | 'broadcast' }>
type Starting = Extract<Operation, { kind: 'start' }>

export class Submitter {
  private readonly engine: Engine
  private readonly client: Client

  /** @internal */
  constructor(engine: Engine, client: Client) {
    this.engine = engine
    this.client = client
  }

  async submit(operation: Operation): Promise<unknown> {
    checkOperation(operation)
    const { engine, client } = this
    switch (operation.kind) {
      case 'start':
        return client.start(operation.workflow, operation.input, operation.options)
      case 'signal':
      case 'broadcast':
        return send(engine, await this.prepareSend(operation))
      case 'sendOrStart':
        return sendOrStart(engine, client, operation)
      case 'complete':
        return completeToken(engine, operation.token, operation.value, operation.options)
      case 'execute':
        return executeInput(engine, operation.decider, operation.input, operation.options)
      case 'enqueue':
        return enqueueInput(engine, operation.decider, operation.input, operation.options)
      case 'refuse':
        return refuseToken(engine, operation.token, operation.error, operation.options)
      case 'cancel':
        return cancelRun(engine, idOf(operation.run), operation.options)
      case 'pause':
        return pauseRun(engine, idOf(operation.run), operation.options)
      case 'resume':
        return resumeRun(engine, idOf(operation.run), operation.options)
      case 'retry':
        return retryRun(engine, idOf(operation.run), operation.options)
      case 'remove':
        return removeRun(engine, idOf(operation.run), operation.options)
    }
  }

  /** Submits operations of one kind, given without it. */
  async submitAll(
    kind: 'signal' | 'start',
    given: readonly object[],
    options?: AbortOption,
  ): Promise<readonly SettledOperation<unknown>[]> {
    const where = kind === 'signal' ? 'signals()' : 'startMany()'
    this.checkList(given, where)
    // Spreading a text would make a member of each letter; a value that is no operation is refused as it is.
    const operations = given.map((one) => (typeof one === 'object' ? { ...one, kind } : one) as Operation)
    return withBatchSignal(operations, options, where, (abortable) => this.perform(abortable))
  }

  async submitBatch(
    operations: readonly Operation[],
    options?: AbortOption,
  ): Promise<readonly SettledOperation<unknown>[]> {
    this.checkList(operations, 'submitBatch()')
    return withBatchSignal(operations, options, 'submitBatch()', (abortable) => this.perform(abortable))
  }

  private async perform(operations: readonly Operation[]): Promise<readonly SettledOperation<unknown>[]> {
    const answers: SettledOperation<unknown>[] = []
    while (answers.length < operations.length) {
      const from = answers.length
      const sends = neighbours(operations, from, isSending)
      const starts = neighbours(operations, from, isStarting)
      if (sends.length > 0) for (const answer of await this.sendAll(sends)) answers.push(answer)
      else if (starts.length > 0) for (const answer of await this.startAll(starts)) answers.push(answer)
      else answers.push(await settled(this.submit(operations[from] as Operation)))
    }
    return answers
  }

  private checkList(given: unknown, where: string): void {
    if (Array.isArray(given)) return checkBatch(given, this.engine.limits, where)
    throw new HoldfastError('INVALID_OPTION', `${where} takes a list of operations. Got ${shown(given)}.`)
  }

  private async prepareSend(operation: Sending): Promise<PreparedSend<unknown>> {
    const { engine } = this
    engine.assertOpen()
    const { payload, options } = operation
    if (operation.kind === 'broadcast') return prepareBroadcast(engine, operation.topic, payload, options)
    return checkedSignal(engine, operation.to, operation.name, payload, options)
  }

  private prepareStart({ workflow, input, options }: Starting): PreparedStart | Promise<PreparedStart> {
    return this.client.prepare(workflow, input, options)
  }

  private async sendAll(operations: readonly Sending[]): Promise<readonly SettledOperation<unknown>[]> {
    const prepared = await Promise.all(
      operations.map((operation) => settled(attempt(operation, () => this.prepareSend(operation)))),
    )
    // In one turn, so that they go to the store together.
    return Promise.all(prepared.map(async (one) => (one.ok ? settled(send(this.engine, one.value)) : one)))
  }

  private async startAll(operations: readonly Starting[]): Promise<readonly SettledOperation<unknown>[]> {
    const prepared = await Promise.all(
      operations.map((operation) => settled(attempt(operation, async () => this.prepareStart(operation)))),
    )
    const answers: SettledOperation<unknown>[] = []
    // If two operations want the same id or key, the first must be answered before the second is sent.
    while (answers.length < prepared.length) {
      const together = withoutRivals(prepared.slice(answers.length))
      const launched = together.map(async (one) => (one.ok ? settled(this.client.launch(one.value)) : one))
      for (const answer of await Promise.all(launched)) answers.push(answer)
    }
    return answers
  }
}

/**
 * Gives every operation without an abort signal a signal that follows that of the batch, so that each is answered. A signal for
 * each, because adding a hundred thousand listeners to one takes longer than the store does.
 */
async function withBatchSignal(
  operations: readonly Operation[],
  options: AbortOption | undefined,
  where: string,
  perform: (operations: readonly Operation[]) => Promise<readonly SettledOperation<unknown>[]>,
): Promise<readonly SettledOperation<unknown>[]> {
  if (options !== undefined) checkOptions(options, ['abortSignal'], where)
  const signal = checkAbortSignal(options?.abortSignal)
  if (signal === undefined) return perform(operations)
  const controllers: AbortController[] = []
  const abort = (): void => controllers.forEach((controller) => controller.abort(signal.reason))
  const abortable = operations.map((operation) => {
    if (typeof operation !== 'object' || operation === null || operation.options?.abortSignal !== undefined) {
      return operation
    }
    const controller = new AbortController()
    controllers.push(controller)
    return { ...operation, options: { ...operation.options, abortSignal: controller.signal } } as Operation
  })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await perform(abortable)
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

async function attempt<Value>(operation: Operation, work: () => Promise<Value>): Promise<Value> {
  checkOperation(operation)
  return work()
}

async function settled<Value>(promise: Promise<Value>): Promise<SettledOperation<Value>> {
  try {
    return { ok: true, value: await promise }
  } catch (error) {
    return { ok: false, error }
  }
}

function isSending(operation: Operation): operation is Sending {
  return operation?.kind === 'signal' || operation?.kind === 'broadcast'
}

function isStarting(operation: Operation): operation is Starting {
  return operation?.kind === 'start'
}

/** The neighbours of the same sort from that place on. */
function neighbours<Part extends Operation>(
  operations: readonly Operation[],
  from: number,
  is: (operation: Operation) => operation is Part,
): readonly Part[] {
  const found: Part[] = []
  for (let at = from; at < operations.length; at += 1) {
    const operation = operations[at] as Operation
    if (!is(operation)) break
    found.push(operation)
  }
  return found
}

/** The first operations of which no two want the same id, key or idempotency key; at least one. */
function withoutRivals(starts: readonly SettledOperation<PreparedStart>[]): readonly SettledOperation<PreparedStart>[] {
  const taken = new Set<string>()
  for (const [at, start] of starts.entries()) {
    if (!start.ok) continue
    const { id, described } = start.value
    const names = [`id ${id}`]
    if (described.key !== null) names.push(`key ${described.key}`)
    if (described.idempotencyKey !== null) names.push(`idempotency key ${described.idempotencyKey}`)
    if (names.some((name) => taken.has(name))) return starts.slice(0, at)
    for (const name of names) taken.add(name)
  }
  return starts
}

const kinds = Object.keys(operationFields)

/** Throws INVALID_OPTION unless it is an operation. The values of its fields are checked when it is performed. */
function checkOperation(operation: Operation): void {
  const kind: unknown = (operation as Operation | null | undefined)?.kind
  if (typeof kind !== 'string' || !kinds.includes(kind)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `There is no operation of kind ${shown(kind)}.${didYouMean(kind, kinds)} Known: ${kinds.join(', ')}.`,
    )
  }
  checkOptions(operation, ['kind', ...operationFields[kind as OperationKind]], `The operation "${kind}"`)
}
