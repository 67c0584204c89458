// Runs the steps of one frame: attempts, their results and errors, and the delays between them.
// An attempt begins only when every earlier entry of the run is durable (the barrier), and what it gives back reaches the
// body as it will be read from the journal, so that the first execution and a replay see the same.
// What nobody may begin now is held back: while recorded outcomes are being shown, and while the run is to be paused.

import type { Place } from '../core/codec.ts'
import type { Draft, Entry } from '../core/entry.ts'
import { HoldfastError, isHoldfastError } from '../core/error.ts'
import { afterFailure } from '../core/retry.ts'
import { Attempt, type Undertaking } from '../core/attempt.ts'
import type { Delay, RecordedOutcome, StepCall } from './call.ts'
import type { Settler } from './settler.ts'
import type { Stage } from './stage.ts'
import { Transacting } from './transacting.ts'

type AttemptFailed = Extract<Entry, { kind: 'attempt-failed' }>

/** What an empty list is before its first member: most runs hold nothing back. */
const nobody: StepCall[] = []

interface Owner extends Stage {
  readonly settler: Settler
}

export class StepRunner implements Undertaking<StepCall> {
  /** Delays so short that they are waited in memory; while there is one, the run does not park. */
  inlineDelays = 0
  private readonly stage: Owner
  /** Steps without an outcome that could not begin when the body asked for them. */
  private heldBack = nobody
  /** Errors that the body got from failed steps, and their entries: thrown on, they would come back on every replay. */
  private failures: Map<unknown, number> | null = null
  private transacting: Transacting | null = null

  constructor(stage: Owner) {
    this.stage = stage
  }

  /** Takes a step that has no outcome yet. What was held back goes first. */
  enter(call: StepCall, mayBegin: boolean): void {
    if (mayBegin && this.heldBack.length === 0) this.admit(call)
    else this.hold(call)
  }

  /** Begins what was held back. */
  beginHeldBack(): void {
    if (this.heldBack.length === 0) return
    const calls = this.heldBack
    this.heldBack = nobody
    for (const call of calls) this.admit(call)
  }

  /** Runs a step now, or after the delay that its last attempt announced. */
  private admit(call: StepCall): void {
    const failed: AttemptFailed | undefined = this.stage.history.failedAttempt(call.name)
    if (failed === undefined || call.failures > 0) return this.begin(call)
    call.failures = failed.meta.attempt
    call.delay = { ms: failed.meta.delayMs, since: failed.at }
    if (this.isInline(call.delay.ms)) this.inlineDelays += 1
    this.stage.resting.add(call)
  }

  private hold(call: StepCall): void {
    if (this.heldBack.length === 0) this.heldBack = [call]
    else this.heldBack.push(call)
  }

  begin(call: StepCall): void {
    const { stage } = this
    if (call.delay !== null && this.isInline(call.delay.ms)) this.inlineDelays -= 1
    call.delay = null
    stage.busy += 1
    this.beginWhenDurable(call)
  }

  private beginWhenDurable(call: StepCall): void {
    const { writer, isWriting, isPausing } = this.stage
    if (!isWriting) return
    // Asked anew each time: more may have been appended, and seen by the function of this step, since the last time.
    if (!writer.isDurable) return writer.barrier(() => this.beginWhenDurable(call))
    // A run has one transaction at a time; when that is over, the frame stirs.
    const mustWait = call.isTransaction && writer.isHeld
    if (!isPausing && !mustWait) return this.attempt(call)
    this.stage.busy -= 1
    this.hold(call)
    if (!mustWait) this.stage.stir()
  }

  remember(error: unknown, seq: number): void {
    this.failures ??= new Map()
    this.failures.set(error, seq)
  }

  /** The entry of the step whose error this is; null if no step failed with it. */
  causeOf(error: unknown): number | null {
    return this.failures?.get(error) ?? null
  }

  private attempt(call: StepCall): void {
    const { stage } = this
    const attempt = new Attempt(stage, call.name, call.failures + 1)
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(call, attempt, error))
    call.attempt = attempt
    if (call.isTransaction) {
      this.transacting ??= new Transacting(stage, this)
      return this.transacting.begin(call, attempt)
    }
    stage.performing = call.name
    try {
      attempt.run(call.perform, call, this)
    } finally {
      stage.performing = null
    }
  }

  succeeded(call: StepCall, attempt: Attempt, value: unknown): void {
    const { stage } = this
    const { name } = call
    let data: string
    let decoded: unknown
    try {
      data = stage.encode(value, name)
      decoded = this.readBack(data, name)
    } catch (error) {
      return this.failed(call, attempt, error)
    }
    this.over(call)
    const seq = this.record(call, attempt, data)
    stage.ripen(call, { failed: false, value: decoded, seq })
  }

  /** Appends what a step gave back. */
  private record(call: StepCall, attempt: Attempt, data: string): number {
    const { stage } = this
    const { name } = call
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    const isUndoable = call.undo !== undefined
    stage.writer.append({ kind: 'step-succeeded', name, meta: isUndoable ? { ...meta, undo: true } : meta, data })
    const { seq } = stage.writer
    if (isUndoable) stage.undoables.add(call, seq, data)
    return seq
  }

  /** Appends what a transaction gave back, which is not certain before it is committed. */
  place(call: StepCall, attempt: Attempt, value: unknown): RecordedOutcome {
    const data = this.stage.encode(value, call.name)
    const decoded = this.readBack(data, call.name)
    const seq = this.record(call, attempt, data)
    this.stage.settler.expect(call)
    return { failed: false, value: decoded, seq }
  }

  /** What was placed is committed. */
  landed(call: StepCall, outcome: RecordedOutcome): void {
    this.over(call)
    this.stage.ripen(call, outcome)
  }

  /** `place` is where the result stands if it was appended before: the failure takes its place. */
  failed(call: StepCall, attempt: Attempt, error: unknown, place: number | null = null): void {
    const { stage } = this
    const { name } = call
    this.over(call)
    // It was told to stop, and nothing comes after it: its error is no news.
    if (place === null && attempt.wasTold && stage.isCancelled) return stage.stir()
    const number = attempt.attempt
    // A result that cannot be stored would be no better the next time, and the work has been done.
    const next = isHoldfastError(error, 'NOT_STORABLE')
      ? { retry: false as const }
      : afterFailure(call.policy, number, error, stage.host.ports.random)
    const at = place ?? stage.writer.seq + 1
    const where = { runId: stage.runId, seq: at, name }
    const data = stage.host.payloads.encodeFailure(nameStep(error, name), where)
    const meta = { attempt: number, ms: attempt.ms }
    if (next.retry) {
      call.failures = number
      const { delayMs } = next
      this.write({ kind: 'attempt-failed', name, meta: { ...meta, delayMs }, data }, attempt, place)
      if (place !== null) stage.settler.dismiss(call)
      return this.delay(call, delayMs)
    }
    const decoded = this.readFailureBack(data, where, error)
    this.write({ kind: 'step-failed', name, meta, data }, attempt, place)
    stage.ripen(call, { failed: true, value: decoded, seq: at })
  }

  private write(draft: Draft, attempt: Attempt, place: number | null): void {
    const { writer } = this.stage
    if (place === null) writer.append(draft)
    else writer.bounced(attempt, place, draft)
  }

  private delay(call: StepCall, ms: number): void {
    const { stage } = this
    const delay: Delay = { ms, since: null }
    call.delay = delay
    if (this.isInline(ms)) this.inlineDelays += 1
    stage.resting.add(call)
    stage.writer.whenDurable((at) => {
      delay.since = at
      stage.resting.registered()
      stage.stir()
    })
    stage.stir()
  }

  /** The value as a replay will read it. A codec that cannot read it is as bad as one that could not write it. */
  private readBack(data: string, name: string): unknown {
    const { stage } = this
    try {
      return stage.decode(data, stage.writer.seq + 1, name)
    } catch (cause) {
      throw new HoldfastError('NOT_STORABLE', 'The codec cannot read what it wrote.', { cause })
    }
  }

  private readFailureBack(data: string, { seq, name }: Place, error: unknown): unknown {
    try {
      return this.stage.decode(data, seq, name)
    } catch {
      return error
    }
  }

  private over(call: StepCall): void {
    call.attempt = null
    this.stage.busy -= 1
  }

  private isInline(ms: number): boolean {
    return ms <= this.stage.host.inlineRetryMs
  }
}

/** A refused result says which step returned it. */
function nameStep(error: unknown, step: string): unknown {
  if (!isHoldfastError(error, 'NOT_STORABLE')) return error
  return new HoldfastError('NOT_STORABLE', `The result of step "${step}" cannot be stored. ${error.message}`, {
    details: { ...error.details, step },
  })
}
