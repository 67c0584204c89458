// Runs the steps of one frame: attempts, their results and errors, and the delays between them. An attempt begins only when
// every earlier entry of the run is durable (the barrier), and its result reaches the body as it will be read from the
// journal, so that the first execution and a replay see the same value. An attempt of a step with undo is among those entries
// itself: `begun` names it before it begins, so that the worker that ends the run knows of it. Steps that may not begin now
// are held back, in the order of the calls: while recorded outcomes are being shown, while the run is to be paused or given
// back, and while as many are under way as the workflow allows at once; a transaction also until the waits of its turn have
// begun.

import type { Draft, Entry } from '../../core/model/entry.ts'
import { HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import type { Place } from '../../core/payload/place.ts'
import { afterFailure, type AfterFailure } from '../../core/definition/retry.ts'
import { Attempt, type AttemptListener } from '../../core/runtime/attempt.ts'
import type { Delay, RecordedOutcome, StepCall } from '../frame/body-call.ts'
import type { Settler } from '../replay/settler.ts'
import type { FrameApi } from '../frame/frame-api.ts'
import { conflictDelay, isConflict, mostConflicts } from './conflict.ts'
import { TransactionStep } from './transaction-step.ts'

type AttemptFailed = Extract<Entry, { kind: 'attempt-failed' }>

/** Stands for an empty list until its first member: most runs hold nothing back. */
const noCalls: StepCall[] = []

interface StepRunnerDeps extends FrameApi {
  readonly settler: Settler
  /** How many steps of the run may be under way at once. */
  readonly parallel: number
}

export class StepRunner implements AttemptListener<StepCall> {
  /** Delays so short that they are waited in memory; while there is one, the run does not park. */
  inlineDelays = 0
  private readonly frame: StepRunnerDeps
  /** Attempts that are running, or about to. */
  private attempts = 0
  /** Steps without an outcome that could not begin when the body asked for them. */
  private heldBack = noCalls
  /** The index of the first held-back step: those before it have begun. */
  private front = 0
  /** Steps with a `begun` entry of this frame that have not begun yet. */
  private named: Set<StepCall> | null = null
  /** Errors that the body got from failed steps, and their entries: thrown on, they would come back on every replay. */
  private failures: Map<unknown, number> | null = null
  private transactionStep: TransactionStep | null = null

  constructor(frame: StepRunnerDeps) {
    this.frame = frame
  }

  /**
   * Takes a step that has no outcome yet. Steps that were held back go first, and a transaction begins when the turn is over:
   * waits that the body makes beside it could not be committed before the transaction is.
   */
  enter(call: StepCall, mayBegin: boolean): void {
    if (mayBegin && !call.isTransaction && this.heldBack.length === 0) this.admit(call)
    else this.hold(call)
  }

  /** Begins steps that were held back, as far as there is room. */
  beginHeldBack(): void {
    const calls = this.heldBack
    if (calls.length === 0) return
    const end = calls.length
    while (this.front < end && !this.isFull) this.admit(calls[this.front++] as StepCall)
    if (2 * this.front < calls.length) return
    this.heldBack = this.front === calls.length ? noCalls : calls.slice(this.front)
    this.front = 0
  }

  private get isFull(): boolean {
    return this.attempts >= this.frame.parallel
  }

  /** Runs a step now, or after the delay that its last attempt announced. */
  private admit(call: StepCall): void {
    const failed: AttemptFailed | undefined = this.frame.history.failedAttempt(call.name)
    if (failed === undefined || call.failures > 0) return this.begin(call)
    restore(call, failed)
    call.delay = { ms: failed.meta.delayMs, since: failed.at }
    if (this.isInline(call.delay.ms)) this.inlineDelays += 1
    this.frame.idleCalls.add(call)
  }

  private hold(call: StepCall): void {
    if (this.heldBack.length === 0) this.heldBack = [call]
    else this.heldBack.push(call)
  }

  begin(call: StepCall): void {
    const { frame } = this
    if (this.isFull) return this.hold(call)
    if (call.delay !== null && this.isInline(call.delay.ms)) this.inlineDelays -= 1
    call.delay = null
    this.attempts += 1
    if (call.undo === undefined || call.isTransaction || frame.history.begun.has(call.name)) this.beginWhenDurable(call)
    else this.beginWhenNamed(call)
  }

  /**
   * Appends the `begun` entry of an attempt. It is sent when the turn is over, so that steps which begin together share a
   * commit, with the outcomes that the body has seen before it called them.
   */
  private beginWhenNamed(call: StepCall): void {
    const { writer } = this.frame
    this.named ??= new Set()
    this.named.add(call)
    writer.append({ kind: 'begun', name: call.name, meta: null, data: null })
    writer.whenDurable(() => this.beginWhenDurable(call))
  }

  private takeBack(call: StepCall): void {
    if (this.named?.delete(call) !== true) return
    const { name, failures } = call
    this.frame.writer.append({ kind: 'abandoned', name, meta: { attempt: failures + 1, ms: 0 }, data: null })
  }

  private beginWhenDurable(call: StepCall): void {
    const { writer, isWriting, isHalting } = this.frame
    if (!isWriting) return
    // Asked anew each time: more may have been appended, and seen by the function of this step, since the last time.
    if (!writer.isDurable && !isHalting) return writer.barrier(() => this.beginWhenDurable(call))
    // A run has one transaction at a time; when that is over, the frame takes a turn. It also takes one when the waits that
    // the body has made have begun.
    const mustWait = call.isTransaction && (writer.isHeld || this.frame.isMaking)
    if (!isHalting && !mustWait) return this.attempt(call)
    this.attempts -= 1
    if (isHalting) this.takeBack(call)
    this.hold(call)
    if (!mustWait) this.frame.scheduleTurn()
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
    const { frame } = this
    const attempt = new Attempt(frame, call.name, call.failures + 1, '', call.calledAs)
    // A transaction may have to wait for a connection first.
    if (!call.isTransaction) this.limit(call, attempt)
    call.attempt = attempt
    this.named?.delete(call)
    if (call.isTransaction) {
      this.transactionStep ??= new TransactionStep(frame, this)
      return this.transactionStep.begin(call, attempt)
    }
    frame.performing = call.name
    try {
      attempt.run(call.perform, call, this)
    } finally {
      frame.performing = null
    }
  }

  limit(call: StepCall, attempt: Attempt): void {
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(call, attempt, error))
  }

  succeeded(call: StepCall, attempt: Attempt, value: unknown): void {
    const { frame } = this
    const { name } = call
    let data: string
    let decoded: unknown
    try {
      const where = this.placeOfResult(name)
      data = frame.host.payloads.encode(value, where)
      decoded = this.readBack(data, where)
    } catch (error) {
      return this.failed(call, attempt, error)
    }
    this.over(call)
    const seq = this.record(call, attempt, data)
    frame.markReady(call, { failed: false, value: decoded, seq })
  }

  /** An attempt is running, or about to. */
  get isBusy(): boolean {
    return this.attempts > 0
  }

  /**
   * Nothing begins any more: attempts that were named are taken back, so that no worker repeats them for the sake of their
   * undo.
   */
  stopBeginning(): void {
    if (this.named !== null) for (const call of this.named) this.takeBack(call)
    this.attempts = 0
    for (const { attempt } of this.frame.settler.steps()) if (attempt?.isOpen === true) this.attempts += 1
  }

  /** Attempts a step once more that was under way when its process died, to learn its outcome. */
  attemptAgain(call: StepCall): void {
    const failed: AttemptFailed | undefined = this.frame.history.failedAttempt(call.name)
    if (failed !== undefined && call.failures === 0) restore(call, failed)
    this.attempts += 1
    this.attempt(call)
  }

  /** Stops waiting for attempts under way: each is aborted, and its result means nothing. */
  abandon(): void {
    for (const call of this.frame.settler.steps()) {
      const { attempt } = call
      if (attempt === null || !attempt.isOpen) continue
      attempt.abort(new Error(`Step "${call.name}" of run ${this.frame.runId} is not waited for any longer.`))
      // An attempt whose result is being committed with the user's own writes runs to its end.
      if (attempt.isOpen) continue
      this.over(call)
      this.recordAbandoned(call, attempt)
    }
    this.frame.scheduleTurn()
  }

  /** The outcome of the step is unknown. */
  private recordAbandoned(call: StepCall, attempt: Attempt): void {
    const { frame } = this
    const { name } = call
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    const isUndoable = call.undo !== undefined && !call.isTransaction
    frame.writer.append({ kind: 'abandoned', name, meta: isUndoable ? { ...meta, undo: true } : meta, data: null })
    frame.history.resolve(name)
    if (isUndoable) frame.undoables.add(call, frame.writer.seq, null)
  }

  /** Appends the result of a step. */
  private record(call: StepCall, attempt: Attempt, data: string): number {
    const { frame } = this
    const { name } = call
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    const isUndoable = call.undo !== undefined
    frame.history.resolve(name)
    frame.writer.append({ kind: 'step-succeeded', name, meta: isUndoable ? { ...meta, undo: true } : meta, data })
    const { seq } = frame.writer
    if (isUndoable) frame.undoables.add(call, seq, data)
    return seq
  }

  /** Appends the result of a transaction, which is not certain before it is committed. */
  place(call: StepCall, attempt: Attempt, value: unknown): RecordedOutcome {
    const where = this.placeOfResult(call.name)
    const data = this.frame.host.payloads.encode(value, where)
    const decoded = this.readBack(data, where)
    const seq = this.record(call, attempt, data)
    this.frame.settler.expect(call)
    return { failed: false, value: decoded, seq }
  }

  /** The placed entry is committed. */
  landed(call: StepCall, outcome: RecordedOutcome): void {
    this.over(call)
    this.frame.markReady(call, outcome)
  }

  /** `place` is where the result stands if it was appended before: the failure takes its place. */
  failed(call: StepCall, attempt: Attempt, error: unknown, place: number | null = null): void {
    const { frame } = this
    this.over(call)
    const isOfNoUse = frame.isEnding && (attempt.isAborted || frame.history.begun.has(call.name))
    if (place === null && isOfNoUse) return this.failedAtTheEnd(call, attempt)
    const { name } = call
    const next = this.afterFailure(call, attempt, error)
    const mayHaveHappened = this.mayHaveHappened(call, attempt, error)
    if (next.retry && mayHaveHappened && !frame.undoables.isUnsure(call)) this.recordAbandoned(call, attempt)
    const at = place ?? frame.writer.seq + 1
    const { payloads } = frame.host
    const where = payloads.place(frame.runId, at, next.retry ? 'attempt-failed' : 'step-failed', name)
    const data = payloads.encodeFailure(nameStep(error, name), where)
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    frame.history.resolve(name)
    if (next.retry) {
      call.failures = attempt.attempt
      const { delayMs } = next
      const { conflicts } = call
      const retry = { ...meta, delayMs, ...(conflicts === 0 ? {} : { conflicts }) }
      this.write({ kind: 'attempt-failed', name, meta: retry, data }, attempt, place)
      if (place !== null) frame.settler.dismiss(call)
      return this.delay(call, delayMs)
    }
    const decoded = this.readFailureBack(data, where, error)
    this.write(
      { kind: 'step-failed', name, meta: mayHaveHappened ? { ...meta, undo: true } : meta, data },
      attempt,
      place,
    )
    if (mayHaveHappened) frame.undoables.add(call, at, null)
    frame.markReady(call, { failed: true, value: decoded, seq: at })
  }

  /**
   * It is to be undone though it failed: an attempt that ran out of time, was abandoned or died with its process may have
   * done its work all the same, and one whose result cannot be stored has.
   */
  private mayHaveHappened(call: StepCall, { hasTimedOut }: Attempt, error: unknown): boolean {
    if (call.undo === undefined || call.isTransaction) return false
    const { history, undoables } = this.frame
    if (hasTimedOut || isHoldfastError(error, 'NOT_STORABLE')) return true
    return history.begun.has(call.name) || undoables.isUnsure(call)
  }

  private afterFailure(call: StepCall, { attempt }: Attempt, error: unknown): AfterFailure {
    // A result that cannot be stored would be no better the next time, and the work has been done.
    if (isHoldfastError(error, 'NOT_STORABLE')) return { retry: false, because: 'fatal' }
    const { random } = this.frame.host.ports
    const isInTheWay = call.isTransaction && isConflict(error, call.isolation !== undefined)
    if (isInTheWay && call.conflicts < mostConflicts) {
      call.conflicts += 1
      return { retry: true, delayMs: conflictDelay(call.conflicts, random) }
    }
    return afterFailure(call.policy, attempt - call.conflicts, error, random)
  }

  /** It was aborted and nothing comes after it, so its error is not reported; but it may have happened all the same. */
  private failedAtTheEnd(call: StepCall, attempt: Attempt): void {
    const isUndoable = call.undo !== undefined && !call.isTransaction
    if (attempt.hasTimedOut || isUndoable) this.recordAbandoned(call, attempt)
    this.frame.scheduleTurn()
  }

  private write(draft: Draft, attempt: Attempt, place: number | null): void {
    const { writer } = this.frame
    if (place === null) writer.append(draft)
    else writer.bounced(attempt, place, draft)
  }

  private delay(call: StepCall, ms: number): void {
    const { frame } = this
    const delay: Delay = { ms, since: null }
    call.delay = delay
    if (this.isInline(ms)) this.inlineDelays += 1
    frame.idleCalls.add(call)
    frame.writer.whenDurable((at) => {
      delay.since = at
      frame.idleCalls.registered()
      frame.scheduleTurn()
    })
    frame.scheduleTurn()
  }

  private placeOfResult(name: string): Place {
    const { host, runId, writer } = this.frame
    return host.payloads.place(runId, writer.seq + 1, 'step-succeeded', name)
  }

  /** The value as a replay will read it. A codec that cannot read it is as bad as one that could not write it. */
  private readBack(data: string, where: Place): unknown {
    try {
      return this.frame.host.payloads.decode(data, where)
    } catch (cause) {
      throw new HoldfastError('NOT_STORABLE', 'The codec cannot read what it wrote.', { cause })
    }
  }

  private readFailureBack(data: string, where: Place, error: unknown): unknown {
    try {
      return this.frame.host.payloads.decode(data, where)
    } catch {
      return error
    }
  }

  private over(call: StepCall): void {
    call.attempt = null
    this.attempts -= 1
    if (this.heldBack.length > 0) this.frame.scheduleTurn()
  }

  private isInline(ms: number): boolean {
    return ms <= this.frame.host.inlineRetryMs
  }
}

/** Restores the counts of attempts from the journal. */
function restore(call: StepCall, { meta: { attempt, conflicts = 0 } }: AttemptFailed): void {
  call.failures = attempt
  call.conflicts = conflicts
}

/** A refused result says which step returned it. */
function nameStep(error: unknown, step: string): unknown {
  if (!isHoldfastError(error, 'NOT_STORABLE')) return error
  return new HoldfastError('NOT_STORABLE', `The result of step "${step}" cannot be stored. ${error.message}`, {
    details: { ...error.details, step },
  })
}
