// The undo work of a run that fails or is cancelled: steps that may have happened are undone in reverse order, one after the
// other, each durably. It begins when no attempt of the body runs any more (functions/frame/drain.ts).
//
// An undo begins only when every entry before it is durable, and ends for ever with `undone` or `undo-failed`: a step that
// could not be undone is named at the end of the run and does not prevent other undos. Between two attempts the run waits in
// memory, or is released if the delay is long.

import type { Cancel } from '../../core/runtime/ports.ts'
import { afterFailure } from '../../core/definition/retry.ts'
import { Attempt, type StepTools, type AttemptListener } from '../../core/runtime/attempt.ts'
import { fetchPatiently } from '../../core/payload/fetch.ts'
import type { Phase } from '../frame/phase.ts'
import type { FrameApi } from '../frame/frame-api.ts'
import type { Undoable, Undoables } from './undoables.ts'

export interface UndoRunnerDeps extends FrameApi {
  /** The undo work is still to be done here while this is `unwinding`. */
  readonly phase: Phase
  /** A point between two attempts: true if the run is given back here. */
  givesBack(): boolean
  readonly frameExit: {
    /** A point between two attempts: true if the run is paused here. */
    pauses(): boolean
    /** Releases the run for so long. Everything appended goes with that. */
    releaseFor(ms: number): void
    /** Everything is undone, but for these. */
    unwound(notUndone: readonly string[]): void
  }
}

export class UndoRunner implements AttemptListener<Undoable> {
  private readonly deps: UndoRunnerDeps
  private readonly undoables: Undoables
  private readonly notUndone: string[]
  private current: Undoable | undefined
  private attempt: Attempt | null = null
  /** An attempt is running, or its result is on its way from where large values are kept. */
  private isBusy = false
  private alarm: Cancel | null = null

  constructor(deps: UndoRunnerDeps) {
    this.deps = deps
    this.undoables = deps.undoables
    this.notUndone = [...deps.history.notUndone]
  }

  /** Goes as far as it can now. */
  proceed(): void {
    const { deps } = this
    const { writer } = deps
    if (this.isBusy) return writer.flush()
    this.current ??= this.undoables.takeLast()
    const { current } = this
    if (current === undefined) return deps.frameExit.unwound([...this.notUndone, ...this.undoables.missing])
    if (deps.frameExit.pauses() || deps.givesBack()) return
    // Asked anew each time: in between, more may have been appended.
    if (!writer.isDurable) return writer.barrier(() => deps.scheduleTurn())
    const ms = current.dueAt === null ? 0 : current.dueAt - deps.host.now()
    if (ms > 0) return this.wait(ms)
    this.begin(current)
  }

  /** Stops at once. */
  stop(reason: () => unknown): void {
    this.alarm?.()
    this.attempt?.abort(reason())
  }

  private wait(ms: number): void {
    this.alarm?.()
    this.alarm = this.deps.host.ports.clock.after(ms, () => this.deps.scheduleTurn())
  }

  private begin(current: Undoable): void {
    const { host } = this.deps
    this.isBusy = true
    const { data } = current
    const text = data !== null && current.isKept ? host.payloads.fetch(data) : data
    if (text === null || typeof text === 'string') return this.perform(current, text)
    void fetchPatiently(host, text, data ?? '', () => this.deps.phase === 'unwinding').then(
      (fetched) => this.perform(current, fetched),
      (error: unknown) => this.deps.unreadable(error, null),
    )
  }

  private perform(current: Undoable, text: string | null): void {
    const { deps } = this
    if (deps.phase !== 'unwinding') return
    const { call, place } = current
    let result: unknown
    try {
      if (text !== null) result = deps.decode(text, place)
    } catch (error) {
      // The result of the step is not readable here, and may be elsewhere, or once the key is back: no undo is given up for
      // that.
      return deps.unreadable(error, place)
    }
    const attempt = new Attempt(deps, call.name, current.failures + 1, ':undo', call.calledAs)
    this.attempt = attempt
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(current, attempt, error))
    deps.performing = call.name
    try {
      attempt.run((tools: StepTools) => call.undo?.(result as never, tools), current, this)
    } finally {
      deps.performing = null
    }
  }

  succeeded({ call: { name } }: Undoable, attempt: Attempt): void {
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    this.deps.writer.append({ kind: 'undone', name, meta, data: null })
    this.over()
  }

  failed(current: Undoable, attempt: Attempt, error: unknown): void {
    const { deps } = this
    const { name, policy } = current.call
    const next = afterFailure(policy, attempt.attempt, error, deps.host.ports.random)
    if (!next.retry) return this.recordFailure(current, error, attempt)
    const { delayMs } = next
    const meta = { attempt: attempt.attempt, ms: attempt.ms, delayMs }
    deps.writer.append({
      kind: 'undo-attempt-failed',
      name,
      meta,
      data: deps.encodeFailure(error, 'undo-attempt-failed', name),
    })
    current.failures = attempt.attempt
    deps.writer.whenDurable((at) => {
      current.dueAt = at + delayMs
      deps.scheduleTurn()
    })
    this.isBusy = false
    this.attempt = null
    if (delayMs > deps.host.inlineRetryMs && !deps.frameExit.pauses()) deps.frameExit.releaseFor(delayMs)
    else deps.scheduleTurn()
  }

  private recordFailure(current: Undoable, error: unknown, attempt: Attempt): void {
    const { deps } = this
    const { name } = current.call
    if (deps.phase !== 'unwinding') return
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    deps.writer.append({ kind: 'undo-failed', name, meta, data: deps.encodeFailure(error, 'undo-failed', name) })
    deps.host.ports.logger.error(
      `Step "${name}" of run ${deps.runId} could not be undone: an operator must look at it.`,
      {
        run: deps.runId,
        step: name,
        error,
      },
    )
    this.notUndone.push(name)
    this.over()
  }

  private over(): void {
    this.current = undefined
    this.isBusy = false
    this.attempt = null
    this.deps.scheduleTurn()
  }
}
