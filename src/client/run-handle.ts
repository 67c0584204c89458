// A handle on a run: waits for its result, reads its status, and sends to it.

import type { Topic } from '../core/definition/declared-topic.ts'
import { Deferred } from '../core/runtime/deferred.ts'
import { formatMs, toMs, type Duration } from '../core/definition/duration.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../core/errors/error.ts'
import { withTimeout } from '../core/runtime/backoff.ts'
import type { Cancel } from '../core/runtime/ports.ts'
import { isTerminal, type Run, type RunStatus } from '../core/model/run.ts'
import { checkOptions } from '../core/text/suggest.ts'
import type { RunEnd, Watcher } from '../engine/run-ends.ts'
import type { Engine } from '../engine/engine.ts'
import { isUnclaimed } from '../engine/unclaimed-warning.ts'
import { checkAbortSignal, reading, type AbortOption } from './abort-option.ts'
import { unreadText, unreadMessages } from './read/unread.ts'
import { runNotFound, runRemoved } from './run-reference.ts'
import { askRun, type AskOptions } from './send/ask.ts'
import { signalRun, type SignalOptions, type SignalOutcome } from './send/send.ts'
import { cancelRun, type CancelOutcome, type CancelOptions } from './control/run-control.ts'
import { quotedText } from '../core/text/printable.ts'

export interface ResultOptions {
  /** Give up waiting when it fires, with RESULT_TIMEOUT; the run goes on. @default none */
  readonly abortSignal?: AbortSignal
  /** Give up waiting after this; the run goes on. @default no limit */
  readonly timeout?: Duration
}

const resultOptionNames = ['timeout', 'abortSignal']

/** Most calls give none: nothing is made or checked for them. */
const noOptions: ResultOptions = {}

export class RunHandle<Output> {
  readonly id: string
  /** False if the run existed before. */
  readonly created: boolean
  /** Its business key, as far as this handle knows. */
  readonly key: string | null
  /** Not `private`: what the compiler alone keeps private is shown in logs. */
  readonly #engine: Engine

  /** @internal */
  constructor(engine: Engine, id: string, created: boolean, key: string | null) {
    this.#engine = engine
    this.id = id
    this.created = created
    this.key = key
  }

  /**
   * Waits for the run to end and gives back what it returned. Throws RUN_FAILED, with the error as its `cause`, or
   * RUN_CANCELLED if it ended otherwise, RESULT_TIMEOUT if it has not ended in time, and RUN_NOT_FOUND if it was removed before
   * it could end.
   */
  result(options?: ResultOptions): Promise<Output> {
    // Not an async function: a process may wait for thousands of runs, and each would keep a suspended call.
    try {
      return this.ending(options).then((ending) => outputOf<Output>(this.#engine, ending))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** How it stands. A removed run keeps the status that it had. */
  async status(options?: AbortOption): Promise<RunStatus> {
    const engine = this.#engine
    const { id } = this
    engine.assertOpen()
    const [run] = await reading('run.status()', options, () => engine.store.get([id]))
    if (run === undefined) throw runNotFound(this.id)
    return run.status
  }

  /** Stops the run; see `holdfast.cancel`. */
  cancel(options?: CancelOptions): Promise<CancelOutcome> {
    return cancelRun(this.#engine, this.id, options)
  }

  /** Sends a signal to the run; see `holdfast.signal`. */
  signal<Payload>(topic: Topic<Payload>, payload: Payload, options?: SignalOptions): Promise<SignalOutcome>
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<SignalOutcome>
  signal(named: string | Topic, payload?: unknown, options?: SignalOptions): Promise<SignalOutcome> {
    return signalRun(this.#engine, this.id, named, payload, options)
  }

  /** Asks the run, which answers; see `holdfast.ask`. */
  ask<Answer = unknown>(name: string | Topic, payload?: unknown, options?: AskOptions): Promise<Answer> {
    return askRun(this.#engine, this.id, name, payload, options) as Promise<Answer>
  }

  private ending(options: ResultOptions = noOptions): Promise<RunEnd> {
    if (options !== noOptions) checkOptions(options, resultOptionNames, 'run.result()')
    const { timeout } = options
    const abortSignal = checkAbortSignal(options.abortSignal)
    const timeoutMs = timeout === undefined ? null : toMs(timeout, 'The timeout of run.result()')
    this.#engine.assertOpen()
    if (abortSignal?.aborted === true) throw this.abortError(abortSignal)
    const wait = new EndingWait(this.#engine, this.id)
    if (timeoutMs !== null) wait.limit(timeoutMs, () => this.timeoutError(timeoutMs))
    if (abortSignal !== undefined) wait.heed(abortSignal, () => this.abortError(abortSignal))
    // This process learns of the end of a run that it performs with the commit; it has to read the row of any other.
    if (!this.#engine.isMoving(this.id)) wait.look()
    return wait.promise
  }

  private abortError(abortSignal: AbortSignal): HoldfastError {
    const message = `Stopped waiting for the end of run ${this.id}: the abortSignal fired. The run goes on; ask again later.`
    return new HoldfastError('RESULT_TIMEOUT', message, {
      cause: abortSignal.reason as unknown,
      details: { runId: this.id },
    })
  }

  /** Null if the run has ended in the meantime. */
  private async timeoutError(timeoutMs: number): Promise<HoldfastError | null> {
    const { store, localWorker, ports, clock } = this.#engine
    const looked = store.get([this.id]).then(
      ([found]) => found,
      () => undefined,
    )
    // Bounded, because the caller has already waited for its whole timeout.
    const run = await withTimeout(ports.clock, lookAgainMs, looked)
    const status = run?.status ?? 'of unknown status'
    if (status !== 'of unknown status' && isTerminal(status)) return null
    const unread =
      status === 'waiting'
        ? await withTimeout(
            ports.clock,
            lookAgainMs,
            unreadMessages(this.#engine, this.id).catch(() => undefined),
          )
        : undefined
    const begun = run !== undefined && !isUnclaimed(run, clock.now())
    const here = localWorker === null ? 'This process has no worker (holdfast.work()). ' : ''
    const text =
      run === undefined || begun
        ? ''
        : `, and no worker has ${run.token === 0 ? 'begun it' : 'gone on with it since it was due'}. ${here}Check that a worker ` +
          `for ${quotedText(run.type)}, version ${run.version}, is up`
    return new HoldfastError(
      'RESULT_TIMEOUT',
      `Run ${this.id} has not ended within ${formatMs(timeoutMs)}: it is ${status}${text}.` +
        `${unreadText(unread?.names ?? [])} ${hopeOf(status)}`,
      { details: { runId: this.id, status, ...(run === undefined ? {} : { begun }) } },
    )
  }
}

/** What the run returned. Nearly always its payload is inline, and nothing is awaited. */
function outputOf<Output>({ payloads }: Engine, ending: RunEnd): Output | Promise<Output> {
  const text = ending.data === null ? null : payloads.fetch(ending.data)
  if (!(text instanceof Promise)) return decodedOutput(payloads, ending, text) as Output
  return text.then((fetched) => decodedOutput(payloads, ending, fetched) as Output)
}

function decodedOutput(
  payloads: Engine['payloads'],
  { runId, seq, status, reason }: RunEnd,
  text: string | null,
): unknown {
  const value = text === null ? undefined : payloads.decode(text, payloads.place(runId, seq, status, null))
  switch (status) {
    case 'succeeded':
      return value
    case 'failed': {
      const message = `Run ${runId} failed: ${messageOf(value)}`
      throw new HoldfastError('RUN_FAILED', message, { cause: value, details: { runId } })
    }
    case 'cancelled': {
      const message = `Run ${runId} was cancelled${reason === null ? '' : `: ${reason}`}.`
      throw new HoldfastError('RUN_CANCELLED', message, { details: { runId, reason } })
    }
  }
}

function hopeOf(status: RunStatus | 'of unknown status'): string {
  return status === 'paused'
    ? 'It goes on when it is resumed: holdfast.get() and `holdfast show` show why it was paused.'
    : 'It goes on; ask again later.'
}

/** How long after a failure the store is asked again. */
const lookAgainMs = 1_000

/** One wait for the end of a run. */
class EndingWait extends Deferred<RunEnd> implements Watcher {
  private readonly engine: Engine
  private readonly runId: string
  private cancelTimeout: Cancel | null = null
  private cancelLook: Cancel | null = null
  private deafen: Cancel | null = null
  private isOver = false

  /** @internal */
  constructor(engine: Engine, runId: string) {
    super()
    this.engine = engine
    this.runId = runId
    engine.runEnds.watch(runId, this)
  }

  ended(ending: RunEnd): void {
    this.over()
    this.resolve(ending)
  }

  removed(run: Run): void {
    this.over()
    this.abandon(runRemoved(run))
  }

  closed(): void {
    this.over()
    const message = `This Holdfast was closed before run ${this.runId} ended. The run may go on elsewhere.`
    this.abandon(new HoldfastError('CLOSED', message, { details: { runId: this.runId } }))
  }

  /** Gives up after a time, unless the run has ended by then: its end may not have been noticed yet. */
  limit(ms: number, error: () => Promise<HoldfastError | null>): void {
    const giveUp = async (): Promise<void> => {
      // Once, unless an operator retries the run just between its two looks.
      while (!this.isOver) {
        const reason = await error()
        if (reason !== null) return this.abandon(reason)
        await this.engine.runEnds.look([this.runId]).catch((away: unknown) => this.abandon(away))
      }
    }
    this.cancelTimeout = this.engine.ports.clock.after(ms, () => void giveUp())
  }

  /** Gives up when the signal fires. */
  heed(abortSignal: AbortSignal, error: () => HoldfastError): void {
    const heard = (): void => this.abandon(error())
    abortSignal.addEventListener('abort', heard, { once: true })
    this.deafen = () => abortSignal.removeEventListener('abort', heard)
  }

  /** Finds out whether the run has ended already, or is not there at all. */
  look(): void {
    this.engine.runEnds.look([this.runId]).then(
      ([run]) => run ?? this.abandon(runNotFound(this.runId)),
      (error: unknown) => {
        if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) return this.abandon(error)
        // The store is unavailable: asked again later.
        if (!this.isOver) this.cancelLook = this.engine.ports.clock.after(lookAgainMs, () => this.look())
      },
    )
  }

  private over(): void {
    this.isOver = true
    this.cancelTimeout?.()
    this.cancelLook?.()
    this.deafen?.()
  }

  private abandon(error: unknown): void {
    this.engine.runEnds.unwatch(this.runId, this)
    this.over()
    this.reject(error)
  }
}
