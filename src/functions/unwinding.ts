// The undo work of a run that fails or is cancelled: steps that may have happened are undone in reverse order, one after the
// other, each durably. It begins when no attempt of the body runs any more (drain.ts).
//
// An undo begins only when everything before it is durable, and ends for ever with `undone` or `undo-failed`: what could
// not be undone is told at the end of the run and keeps no other from being undone. Between two attempts the run waits in
// memory, or is released if the delay is long.

import type { Cancel } from '../core/ports.ts'
import { afterFailure } from '../core/retry.ts'
import { Attempt, type StepTools, type Undertaking } from '../core/attempt.ts'
import { fetchPatiently } from '../core/fetching.ts'
import type { Phase } from './phase.ts'
import type { Stage } from './stage.ts'
import type { Undoable, Undoables } from './undoables.ts'

export interface UnwindingOwner extends Stage {
  /** The undo work is still to be done here while this is `unwinding`. */
  readonly phase: Phase
  /** A point between two attempts: true if the run is given back here. */
  givesBack(): boolean
  readonly conclusion: {
    /** A point between two attempts: true if the run is paused here. */
    pauses(): boolean
    /** Releases the run for so long. Everything appended goes with that. */
    releaseFor(ms: number): void
    /** Everything is undone, but for these. */
    unwound(notUndone: readonly string[]): void
  }
}

export class Unwinding implements Undertaking<Undoable> {
  private readonly owner: UnwindingOwner
  private readonly undoables: Undoables
  private readonly notUndone: string[]
  private current: Undoable | undefined
  private attempt: Attempt | null = null
  /** An attempt is running, or its result is on its way from where large values are kept. */
  private isBusy = false
  private alarm: Cancel | null = null

  constructor(owner: UnwindingOwner) {
    this.owner = owner
    this.undoables = owner.undoables
    this.notUndone = [...owner.history.notUndone]
  }

  /** Goes as far as it can now. */
  proceed(): void {
    const { owner } = this
    const { writer } = owner
    if (this.isBusy) return writer.flush()
    this.current ??= this.undoables.takeLast()
    const { current } = this
    if (current === undefined) return owner.conclusion.unwound([...this.notUndone, ...this.undoables.missing])
    if (owner.conclusion.pauses() || owner.givesBack()) return
    // Asked anew each time: in between, more may have been appended.
    if (!writer.isDurable) return writer.barrier(() => owner.stir())
    const ms = current.dueAt === null ? 0 : current.dueAt - owner.host.now()
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
    this.alarm = this.owner.host.ports.clock.after(ms, () => this.owner.stir())
  }

  private begin(current: Undoable): void {
    const { host } = this.owner
    this.isBusy = true
    const { data } = current
    const text = data !== null && current.isKept ? host.payloads.fetch(data) : data
    if (text === null || typeof text === 'string') return this.perform(current, text)
    void fetchPatiently(host, text, data ?? '', () => this.owner.phase === 'unwinding').then(
      (fetched) => this.perform(current, fetched),
      (error: unknown) => this.owner.unreadable(error, null),
    )
  }

  private perform(current: Undoable, text: string | null): void {
    const { owner } = this
    if (owner.phase !== 'unwinding') return
    const { call, place } = current
    let result: unknown
    try {
      if (text !== null) result = owner.decode(text, place)
    } catch (error) {
      // What it did is not known here, and may be elsewhere, or once the key is back: nothing is given up for that.
      return owner.unreadable(error, place)
    }
    const attempt = new Attempt(owner, call.name, current.failures + 1, ':undo', call.calledAs)
    this.attempt = attempt
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(current, attempt, error))
    owner.performing = call.name
    try {
      attempt.run((tools: StepTools) => call.undo?.(result as never, tools), current, this)
    } finally {
      owner.performing = null
    }
  }

  succeeded({ call: { name } }: Undoable, attempt: Attempt): void {
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    this.owner.writer.append({ kind: 'undone', name, meta, data: null })
    this.over()
  }

  failed(current: Undoable, attempt: Attempt, error: unknown): void {
    const { owner } = this
    const { name, policy } = current.call
    const next = afterFailure(policy, attempt.attempt, error, owner.host.ports.random)
    if (!next.retry) return this.giveUp(current, error, attempt)
    const { delayMs } = next
    const meta = { attempt: attempt.attempt, ms: attempt.ms, delayMs }
    owner.writer.append({
      kind: 'undo-attempt-failed',
      name,
      meta,
      data: owner.encodeFailure(error, 'undo-attempt-failed', name),
    })
    current.failures = attempt.attempt
    owner.writer.whenDurable((at) => {
      current.dueAt = at + delayMs
      owner.stir()
    })
    this.isBusy = false
    this.attempt = null
    if (delayMs > owner.host.inlineRetryMs && !owner.conclusion.pauses()) owner.conclusion.releaseFor(delayMs)
    else owner.stir()
  }

  private giveUp(current: Undoable, error: unknown, attempt: Attempt): void {
    const { owner } = this
    const { name } = current.call
    if (owner.phase !== 'unwinding') return
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    owner.writer.append({ kind: 'undo-failed', name, meta, data: owner.encodeFailure(error, 'undo-failed', name) })
    owner.host.ports.logger.error(
      `Step "${name}" of run ${owner.runId} could not be undone: an operator must look at it.`,
      {
        run: owner.runId,
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
    this.owner.stir()
  }
}
