// The undo work of a run that fails or is cancelled: steps that may have happened are undone in reverse order, one after the
// other, each durably. It begins when no attempt of the body runs any more (functions/frame/drain.ts).
//
// An undo begins only when every entry before it is durable, and ends for ever with `undone` or `undo-failed`: a step that
// could not be undone is named at the end of the run and does not prevent other undos. Between two attempts the run waits in
// memory, or is released if the delay is long.

import { warnOfBrokenPredicate } from '../api/misuse.ts'
import { runName } from '../../core/rows/engine-notes.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { afterFailure, type AfterFailure } from '../../core/definition/retry.ts'
import { Attempt, type StepTools, type AttemptListener } from '../../core/runtime/attempt.ts'
import { fetchPatiently } from '../../core/runtime/fetch.ts'
import type { FrameExit } from '../frame/frame-exit.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { decodeAt, encodeFailure } from '../replay/journal-text.ts'
import type { Undoable, Undoables } from './undoables.ts'
import { quotedText } from '../../core/text/printable.ts'

export class UndoRunner implements AttemptListener<Undoable> {
  private readonly state: FrameState
  private readonly exit: FrameExit
  private readonly undoables: Undoables
  private readonly notUndone: string[]
  private current: Undoable | undefined
  private attempt: Attempt | null = null
  /** An attempt is running, or its result is on its way from where large values are kept. */
  private isBusy = false
  private alarm: Cancel | null = null

  constructor(state: FrameState, exit: FrameExit, undoables: Undoables) {
    this.state = state
    this.exit = exit
    this.undoables = undoables
    this.notUndone = [...state.history.notUndone]
  }

  /** Goes as far as it can now. */
  proceed(): void {
    const { state, exit } = this
    const { writer } = state
    if (this.isBusy) return writer.flush()
    this.current ??= this.undoables.takeLast()
    const { current } = this
    if (current === undefined) return exit.unwound([...this.notUndone, ...this.undoables.missing])
    if (exit.pauses() || exit.drain.givesBack()) return
    // Asked anew each time: in between, more may have been appended.
    if (!writer.isDurable) return writer.barrier(() => state.scheduleTurn())
    const ms = current.dueAt === null ? 0 : current.dueAt - state.host.now()
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
    this.alarm = this.state.host.ports.clock.after(ms, () => this.state.scheduleTurn())
  }

  private begin(current: Undoable): void {
    const { host } = this.state
    this.isBusy = true
    const { data } = current
    const text = data !== null && current.isKept ? host.payloads.fetch(data) : data
    if (text === null || typeof text === 'string') return this.perform(current, text)
    void fetchPatiently(host, text, data ?? '', () => this.state.phase === 'unwinding').then(
      (fetched) => this.perform(current, fetched),
      (error: unknown) => this.state.frame.unreadable(error, null),
    )
  }

  private perform(current: Undoable, text: string | null): void {
    const { state } = this
    if (state.phase !== 'unwinding') return
    const { call, place } = current
    let result: unknown
    try {
      if (text !== null) result = decodeAt(state, text, place)
    } catch (error) {
      // The result of the step is not readable here, and may be elsewhere, or once the key is back: no undo is given up for
      // that.
      return state.frame.unreadable(error, place)
    }
    const attempt = new Attempt(state, call.name, current.failures + 1, ':undo', call.calledAs)
    this.attempt = attempt
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(current, attempt, error))
    const perform = (tools: StepTools): unknown => call.undo?.(result as never, tools)
    state.inside(call.name, () => attempt.run(perform, current, this), 'undo')
  }

  succeeded({ call: { name } }: Undoable, attempt: Attempt): void {
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    this.state.writer.append({ kind: 'undone', name, meta, data: null })
    this.over()
  }

  failed(current: Undoable, attempt: Attempt, error: unknown): void {
    const { state, exit } = this
    const { name, policy } = current.call
    const decide = (): AfterFailure => afterFailure(policy, attempt.attempt, error, state.host.ports.random)
    const next = state.inside(name, decide, 'undo')
    if (next.broken !== undefined)
      warnOfBrokenPredicate(state.host, state.run, `the undo of step ${quotedText(name)}`, next.broken.error)
    if (!next.retry) return this.recordFailure(current, error, attempt)
    const { delayMs } = next
    const meta = { attempt: attempt.attempt, ms: attempt.ms, delayMs }
    state.writer.append({
      kind: 'undo-attempt-failed',
      name,
      meta,
      data: encodeFailure(state, error, 'undo-attempt-failed', name),
    })
    state.host.attemptFailed?.({ run: state.run, step: name, kind: 'undo', attempt: attempt.attempt, delayMs, error })
    current.failures = attempt.attempt
    state.writer.whenDurable((at) => {
      current.dueAt = at + delayMs
      state.scheduleTurn()
    })
    this.isBusy = false
    this.attempt = null
    if (delayMs > state.host.inlineRetryMs && !exit.pauses()) exit.releaseFor(delayMs)
    else state.scheduleTurn()
  }

  private recordFailure(current: Undoable, error: unknown, attempt: Attempt): void {
    const { state } = this
    const { name } = current.call
    if (state.phase !== 'unwinding') return
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    state.writer.append({ kind: 'undo-failed', name, meta, data: encodeFailure(state, error, 'undo-failed', name) })
    state.host.ports.logger.error(
      `Step ${quotedText(name)} of ${runName(state.run)} could not be undone: an operator must look at it.`,
      {
        run: state.runId,
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
    this.state.scheduleTurn()
  }
}
