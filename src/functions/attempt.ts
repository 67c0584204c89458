// One attempt of one step: what the step's function is given, its abort signal and its timeout. An attempt is closed
// once, by its result, its timeout or the loss of its run; whatever its function does afterwards is ignored.

import type { Host } from '../core/definition.ts'
import { formatMs } from '../core/duration.ts'
import { HoldfastError } from '../core/error.ts'
import type { Cancel } from '../core/ports.ts'
import type { History } from './history.ts'

/** What a step's function is given. */
export interface StepTools {
  /** The same on every attempt of this step, and safe in an HTTP header: give it to whatever you call. */
  readonly idempotencyKey: string
  /** 1 for the first. */
  readonly attempt: number
  readonly isRetry: boolean
  /** Aborts on timeout, cancellation and loss of the lease. */
  readonly abortSignal: AbortSignal
  /** Says that the attempt is alive: its timeout and the run's lease count anew. Throws if the attempt was aborted. */
  heartbeat(): void
}

interface Owner {
  readonly host: Host
  readonly runId: string
  readonly history: History
}

export class Attempt implements StepTools {
  readonly attempt: number
  private readonly owner: Owner
  private readonly step: string
  private readonly startedAt: number
  private state: 'running' | 'closed' | 'aborted' = 'running'
  /** Most functions never look at the signal, so it is made when one does. */
  private controller: AbortController | null = null
  private abortReason: unknown
  private timeout: Timeout | null = null

  constructor(owner: Owner, step: string, number: number) {
    this.owner = owner
    this.step = step
    this.attempt = number
    this.startedAt = owner.host.ports.clock.monotonic()
  }

  get idempotencyKey(): string {
    const { runId, history } = this.owner
    return `${runId}:${history.input.seq}:${encodeURIComponent(this.step)}`
  }

  get isRetry(): boolean {
    return this.attempt > 1
  }

  get abortSignal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.state === 'aborted') this.controller.abort(this.abortReason)
    return this.controller.signal
  }

  get heartbeat(): () => void {
    return () => this.beat()
  }

  /** How long the attempt has taken so far. */
  get ms(): number {
    return Math.round(this.owner.host.ports.clock.monotonic() - this.startedAt)
  }

  /** The attempt has its outcome. False if it had one before. */
  close(): boolean {
    if (this.state !== 'running') return false
    this.state = 'closed'
    this.timeout?.cancel()
    return true
  }

  /** Closes the attempt and tells its function to stop. */
  abort(reason: unknown): void {
    if (!this.close()) return
    this.state = 'aborted'
    this.abortReason = reason
    this.controller?.abort(reason)
  }

  /** Aborts the attempt when it takes longer than this without a heartbeat. */
  limit(ms: number, onTimeout: (error: HoldfastError) => void): void {
    const cancel = this.owner.host.ports.clock.after(ms, () => {
      if (this.state !== 'running') return
      const error = timeoutError(this.step, this.attempt, ms)
      this.abort(error)
      onTimeout(error)
    })
    this.timeout = { ms, onTimeout, cancel }
  }

  private beat(): void {
    if (this.state === 'aborted') throw this.abortReason
    if (this.state === 'closed') return
    this.owner.host.heartbeat(this.owner.runId)
    if (this.timeout === null) return
    this.timeout.cancel()
    this.limit(this.timeout.ms, this.timeout.onTimeout)
  }
}

interface Timeout {
  readonly ms: number
  readonly onTimeout: (error: HoldfastError) => void
  readonly cancel: Cancel
}

function timeoutError(step: string, attempt: number, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    'STEP_TIMEOUT',
    `Attempt ${attempt} of step "${step}" took longer than ${formatMs(timeoutMs)} and was aborted. ` +
      'Pass its abortSignal on to what it calls, or give the step a longer timeout.',
    { details: { step, attempt, timeoutMs } },
  )
}
