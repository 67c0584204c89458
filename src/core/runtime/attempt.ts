// One attempt of one step, or of its undo: the tools of its function, its abort signal and its timeout. An attempt is closed
// once, by its result, its timeout, the loss of its run, or because it is abandoned; after that its function is ignored. The
// cancellation or failure of its run does not close it: its signal is aborted, and its result still counts. An attempt whose
// result is being committed together with the user's own writes is sealed: only the answer closes it.

import type { Host } from '../definition/definition.ts'
import { formatMs } from '../definition/duration.ts'
import { HoldfastError } from '../errors/error.ts'
import type { Cancel, Scopes } from './ports.ts'
import type { Run } from '../model/run.ts'
import { inspected } from '../text/inspect.ts'
import { LazyAbortSignal } from './lazy-abort-signal.ts'
import { quotedText } from '../text/printable.ts'

/** The argument of a step's function. */
export interface StepTools {
  /** The same on every attempt of this step, and safe in an HTTP header: pass it to the services that you call. */
  readonly idempotencyKey: string
  /** 1 for the first. */
  readonly attempt: number
  readonly isRetry: boolean
  /** Aborts on timeout, on cancellation or failure of the run, at the end of the shutdown timeout, and on loss of the lease. */
  readonly abortSignal: AbortSignal
  /**
   * True once the run is being cancelled. A result that the function returns all the same is recorded, and undone if the step
   * has an undo function.
   */
  isCancelled(): boolean
  /** Says that the attempt is alive: its timeout and the run's lease count anew. Throws if the attempt was aborted. */
  heartbeat(): void
}

/** The frame of an attempt, as far as the attempt sees it. */
interface AttemptFrame {
  readonly host: Host
  readonly runId: string
  readonly run: Pick<Run, 'type'>
  /** The entry that the run began with, or began anew with. */
  readonly history: { readonly input: { readonly seq: number } }
  readonly isCancelled: boolean
}

/** The receiver of the outcome of an attempt, and the call of that attempt. */
export interface AttemptListener<Task> {
  succeeded(task: Task, attempt: Attempt, value: unknown): void
  failed(task: Task, attempt: Attempt, error: unknown): void
}

export class Attempt extends LazyAbortSignal implements StepTools {
  readonly attempt: number
  /** Called when it is aborted. */
  onAbort: (() => void) | null = null
  /** It was aborted because it took too long. */
  hasTimedOut = false
  private readonly frame: AttemptFrame
  private readonly step: string
  private readonly calledAs: string
  private readonly startedAt: number
  private readonly suffix: string
  private state: 'running' | 'sealed' | 'closed' | 'aborted' = 'running'
  private timeout: Timeout | null = null

  constructor(frame: AttemptFrame, step: string, number: number, suffix: '' | ':undo' = '', calledAs = step) {
    super()
    this.frame = frame
    this.step = step
    this.calledAs = calledAs
    this.suffix = suffix
    this.attempt = number
    this.startedAt = frame.host.ports.clock.monotonic()
  }

  get idempotencyKey(): string {
    const { runId, history } = this.frame
    return `${runId}:${history.input.seq}:${encodeURIComponent(this.step)}${this.suffix}`
  }

  get isRetry(): boolean {
    return this.attempt > 1
  }

  toJSON(): object {
    const { idempotencyKey, attempt, isRetry } = this
    return { idempotencyKey, attempt, isRetry }
  }

  [inspected](): object {
    return this.toJSON()
  }

  get isCancelled(): () => boolean {
    return () => this.suffix === '' && this.frame.isCancelled
  }

  get heartbeat(): () => void {
    return () => this.beat()
  }

  /** How long the attempt has taken so far. */
  get ms(): number {
    return Math.round(this.frame.host.ports.clock.monotonic() - this.startedAt)
  }

  /** Its function runs, and its result counts. */
  get isOpen(): boolean {
    return this.state === 'running' || this.state === 'sealed'
  }

  /** Calls the function. Its outcome is reported once, unless the attempt is closed before. */
  run<Task>(perform: (tools: this) => unknown, task: Task, by: AttemptListener<Task>): void {
    void this.stepOfHoldfast(this.outcomeOf(perform), task, by)
  }

  /**
   * An async function whose name (`stepMark`) the runtime shows in the trace of awaits of all that the step's function
   * awaits.
   */
  private async stepOfHoldfast<Task>(outcome: Promise<unknown>, task: Task, by: AttemptListener<Task>): Promise<void> {
    let value: unknown
    try {
      value = await outcome
    } catch (error) {
      if (this.close()) by.failed(task, this, error)
      return
    }
    if (!this.timesOut() && this.close()) by.succeeded(task, this, value)
  }

  /** A function that throws at once fails like one that rejects: later, when all other attempts of this turn have begun. */
  private outcomeOf(perform: (tools: this) => unknown): Promise<unknown> {
    try {
      return Promise.resolve(this.call(perform))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Calls the function, through the effects port if there is one. Its outcome is the caller's to report. */
  call(perform: (tools: this) => unknown): unknown {
    const { scopes } = this.frame.host.ports
    if (scopes?.follows(this.frame.run.type, this.calledAs) !== true) return this.perform(perform)
    return this.followed(scopes, perform)
  }

  /** Separate from `call`, which would make a scope for the closure with each of the many calls that are not followed. */
  private followed(scopes: Scopes, perform: (tools: this) => unknown): unknown {
    return scopes.run(this, () => this.perform(perform))
  }

  private perform(perform: (tools: this) => unknown): unknown {
    const { effects } = this.frame.host.ports
    if (effects === undefined) return perform(this)
    const { step, attempt, idempotencyKey } = this
    const isUndo = this.suffix !== ''
    return effects.perform<this>({ runId: this.frame.runId, step, attempt, idempotencyKey, isUndo }, this, perform)
  }

  /** The function that it calls, if it is one of that run. */
  functionOf(frame: object): CallingFunction | null {
    return this.frame === frame ? { kind: this.suffix === '' ? 'step' : 'undo', step: this.step } : null
  }

  /** The attempt has its outcome. False if it had one before. */
  close(): boolean {
    if (!this.isOpen) return false
    this.state = 'closed'
    this.timeout?.cancel()
    return true
  }

  /** Its function is done, and its outcome is on its way: from here on it cannot be aborted. False if it has one. */
  seal(): boolean {
    if (this.state !== 'running' || this.timesOut()) return false
    this.state = 'sealed'
    this.timeout?.cancel()
    return true
  }

  /** Closes the attempt and signals its function to stop. */
  abort(reason: unknown): void {
    if (this.state === 'sealed' || !this.close()) return
    this.state = 'aborted'
    this.signalAbort(reason)
    this.onAbort?.()
  }

  /** Aborts the attempt when it takes longer than this without a heartbeat. */
  limit(ms: number, onTimeout: (error: HoldfastError) => void): void {
    const { clock } = this.frame.host.ports
    const cancel = clock.after(ms, () => this.timeOut(ms, onTimeout))
    this.timeout = { ms, since: clock.monotonic(), onTimeout, cancel }
  }

  private timeOut(ms: number, onTimeout: (error: HoldfastError) => void): void {
    if (this.state !== 'running') return
    const error = timeoutError(this.step, this.attempt, ms)
    this.hasTimedOut = true
    this.abort(error)
    onTimeout(error)
  }

  /** A function that keeps the thread busy past its time returns before the timer is called: its result is late all the same. */
  private timesOut(): boolean {
    const { timeout } = this
    if (timeout === null || this.frame.host.ports.clock.monotonic() - timeout.since <= timeout.ms) return false
    this.timeOut(timeout.ms, timeout.onTimeout)
    return true
  }

  private beat(): void {
    // An attempt that was asked to stop is still waited for: its run keeps its claim meanwhile.
    if (this.state === 'running') this.frame.host.heartbeat(this.frame.runId)
    if (this.isAborted) throw this.abortReason
    if (this.state !== 'running' || this.timeout === null) return
    this.timeout.cancel()
    this.limit(this.timeout.ms, this.timeout.onTimeout)
  }
}

/**
 * The name of the functions that await those of steps and transactions: code that has it among its awaiters is inside of one.
 */
export const stepMark = 'stepOfHoldfast'

/** A function of the user's that the engine calls, and no replay calls again. */
export interface CallingFunction {
  readonly kind: 'step' | 'undo' | 'acquire' | 'release'
  /** The step that it belongs to; of a resource, a name in its place. */
  readonly step: string
}

/** The function of a step of that run from inside which code runs now, as far as that is known; null if it is none. */
export function stepAround(frame: Pick<AttemptFrame, 'host'>): CallingFunction | null {
  const scope = frame.host.ports.scopes?.current()
  return scope instanceof Attempt ? scope.functionOf(frame) : null
}

interface Timeout {
  readonly ms: number
  readonly since: number
  readonly onTimeout: (error: HoldfastError) => void
  readonly cancel: Cancel
}

function timeoutError(step: string, attempt: number, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    'STEP_TIMEOUT',
    `Attempt ${attempt} of step ${quotedText(step)} took longer than ${formatMs(timeoutMs)} and was aborted. ` +
      'Pass its abortSignal on to the calls it makes, or give the step a longer timeout.',
    { details: { step, attempt, timeoutMs } },
  )
}
