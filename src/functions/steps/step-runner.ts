// Runs the steps of one frame: attempts, their results and errors, and the delays between them. An attempt begins only when
// every earlier entry of the run is durable (the barrier), and its result reaches the body as it will be read from the
// journal, so that the first execution and a replay see the same value. An attempt of a step with undo is among those entries
// itself: `begun` names it before it begins, so that the worker that ends the run knows of it. Steps that may not begin now
// are held back, in the order of the calls: while recorded outcomes are shown, while the run is to be paused or given back, and
// while as many are under way as the workflow allows at once; a transaction also until the waits of its turn have begun.

import type { Draft, Entry } from '../../core/model/entry.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { Place } from '../../core/payload/place.ts'
import { afterFailure, type AfterFailure } from '../../core/definition/retry.ts'
import { Attempt, type AttemptListener } from '../../core/runtime/attempt.ts'
import type { Delay, RecordedOutcome, StepCall } from '../frame/body-call.ts'
import type { Settler } from '../replay/settler.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Waits } from '../waits/waits.ts'
import { warnOfBrokenPredicate } from '../api/misuse.ts'
import { conflictDelay, isConflict, mostConflicts } from './conflict.ts'
import { nameStep, readBack, readFailureBack } from './outcome-payload.ts'
import { TransactionStep } from './transaction-step.ts'
import { Undoables } from './undoables.ts'
import { quotedText } from '../../core/text/printable.ts'

type AttemptFailed = Extract<Entry, { kind: 'attempt-failed' }>

/** Stands for an empty list until its first member: most runs hold nothing back. */
const noCalls: StepCall[] = []

export class StepRunner implements AttemptListener<StepCall> {
  /** Delays so short that they are waited in memory; while there is one, the run does not park. */
  inlineDelays = 0
  private readonly state: FrameState
  private readonly settler: Settler
  private readonly waits: Waits
  /** Attempts that are running, or about to. */
  private attempts = 0
  /** Steps without an outcome that could not begin when the body asked for them. */
  private heldBack = noCalls
  /** The index of the first held-back step: those before it have begun. */
  private front = 0
  /** Steps with a `begun` entry of this frame that have not begun yet. */
  private named: Set<StepCall> | null = null
  private transactionStep: TransactionStep | null = null
  private undoList: Undoables | null = null

  constructor(state: FrameState, settler: Settler, waits: Waits) {
    this.state = state
    this.settler = settler
    this.waits = waits
  }

  /**
   * Takes a step of the body. Steps that were held back go first, and a transaction begins when the turn is over: waits that
   * the body makes beside it could not be committed before the transaction is.
   */
  enter(call: StepCall): void {
    const { state } = this
    const { history } = state
    // Code that goes on beside a body that has ended begins nothing.
    if (state.hasBodyEnded) return state.warnOfLateCall()
    this.settler.enter(call)
    if (call.undo !== undefined && history.mayUndo) this.undoables.recall(call)
    if (history.has('step', call.name)) return
    const mayBegin = state.isWriting && history.isOver && !state.isHalting
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
    return this.attempts >= this.state.body.parallel
  }

  /** Runs a step now, or after the delay that its last attempt announced. */
  private admit(call: StepCall): void {
    const failed: AttemptFailed | undefined = this.state.history.failedAttempt(call.name)
    if (failed === undefined || call.failures > 0) return this.begin(call)
    restore(call, failed)
    call.delay = { ms: failed.meta.delayMs, since: failed.at }
    if (this.isInline(call.delay.ms)) this.inlineDelays += 1
    this.waits.addIdle(call)
  }

  private hold(call: StepCall): void {
    if (this.heldBack.length === 0) this.heldBack = [call]
    else this.heldBack.push(call)
  }

  begin(call: StepCall): void {
    const { state } = this
    if (this.isFull) return this.hold(call)
    if (call.delay !== null && this.isInline(call.delay.ms)) this.inlineDelays -= 1
    call.delay = null
    this.attempts += 1
    if (call.undo === undefined || call.isTransaction || state.history.begun.has(call.name)) this.beginWhenDurable(call)
    else this.beginWhenNamed(call)
  }

  /**
   * Appends the `begun` entry of an attempt. It is sent when the turn is over, so that steps which begin together share a
   * commit, with the outcomes that the body has seen before it called them.
   */
  private beginWhenNamed(call: StepCall): void {
    const { writer } = this.state
    this.named ??= new Set()
    this.named.add(call)
    writer.append({ kind: 'begun', name: call.name, meta: null, data: null })
    writer.whenDurable(() => this.beginWhenDurable(call))
  }

  private takeBack(call: StepCall): void {
    if (this.named?.delete(call) !== true) return
    const { name, failures } = call
    this.state.writer.append({ kind: 'abandoned', name, meta: { attempt: failures + 1, ms: 0 }, data: null })
  }

  private beginWhenDurable(call: StepCall): void {
    const { writer, isWriting, isHalting } = this.state
    if (!isWriting) return
    // Asked anew each time: more may have been appended, and seen by the function of this step, since the last time.
    if (!writer.isDurable && !isHalting) return this.beginAfterBarrier(call)
    // A run has one transaction at a time; when that is over, the frame takes a turn. It also takes one when the waits that
    // the body has made have begun.
    const mustWait = call.isTransaction && (writer.isHeld || this.waits.isMaking)
    if (!isHalting && !mustWait) return this.attempt(call)
    this.attempts -= 1
    if (isHalting) this.takeBack(call)
    this.hold(call)
    if (!mustWait) this.state.scheduleTurn()
  }

  /** Separate from `beginWhenDurable`, which would make a scope for the closure each time it is asked, and most find no barrier. */
  private beginAfterBarrier(call: StepCall): void {
    this.state.writer.barrier(() => this.beginWhenDurable(call))
  }

  private attempt(call: StepCall): void {
    const { state } = this
    const attempt = new Attempt(state, call.name, call.failures + 1, '', call.calledAs)
    // A transaction may have to wait for a connection first.
    if (!call.isTransaction) this.limit(call, attempt)
    call.attempt = attempt
    this.named?.delete(call)
    if (call.isTransaction) {
      this.transactionStep ??= new TransactionStep(state, this)
      return this.transactionStep.begin(call, attempt)
    }
    state.runInside(call.name, attempt, call, this)
  }

  limit(call: StepCall, attempt: Attempt): void {
    if (call.timeoutMs !== undefined) attempt.limit(call.timeoutMs, (error) => this.failed(call, attempt, error))
  }

  succeeded(call: StepCall, attempt: Attempt, value: unknown): void {
    const { state } = this
    const { name } = call
    let data: string
    let decoded: unknown
    try {
      const where = this.placeOfResult(name)
      data = state.host.payloads.encode(value, where)
      decoded = readBack(state.host.payloads, data, where)
    } catch (error) {
      return this.failed(call, attempt, error)
    }
    this.over(call)
    const seq = this.record(call, attempt, data)
    this.settler.markReady(call, { failed: false, value: decoded, seq })
  }

  /** The steps that may have happened, and say how they are undone. */
  get undoables(): Undoables {
    this.undoList ??= new Undoables(this.state.history)
    return this.undoList
  }

  /** There is something to undo. */
  get mustUndo(): boolean {
    return this.state.history.mayUndo || (this.undoList !== null && !this.undoList.isEmpty)
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
    for (const { attempt } of this.settler.steps()) if (attempt?.isOpen === true) this.attempts += 1
  }

  /** Attempts a step once more that was under way when its process died, to learn its outcome. */
  attemptAgain(call: StepCall): void {
    const failed: AttemptFailed | undefined = this.state.history.failedAttempt(call.name)
    if (failed !== undefined && call.failures === 0) restore(call, failed)
    this.attempts += 1
    this.attempt(call)
  }

  /** Nothing is taken from the attempts under way any more. */
  abort(reason: () => unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.abort(reason())
  }

  /** The attempts under way should stop. Their results are still recorded. */
  signalAbort(reason: unknown): void {
    for (const { attempt } of this.settler.steps()) attempt?.signalAbort(reason)
  }

  /** Stops waiting for attempts under way: each is aborted, and its result means nothing. */
  abandon(): void {
    for (const call of this.settler.steps()) {
      const { attempt } = call
      if (attempt === null || !attempt.isOpen) continue
      attempt.abort(new Error(`Step ${quotedText(call.name)} of run ${this.state.runId} is not waited for any longer.`))
      // An attempt whose result is being committed with the user's own writes runs to its end.
      if (attempt.isOpen) continue
      this.over(call)
      this.recordAbandoned(call, attempt)
    }
    this.state.scheduleTurn()
  }

  /** The outcome of the step is unknown. */
  private recordAbandoned(call: StepCall, attempt: Attempt): void {
    const { state } = this
    const { name } = call
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    const isUndoable = call.undo !== undefined && !call.isTransaction
    state.writer.append({ kind: 'abandoned', name, meta: isUndoable ? { ...meta, undo: true } : meta, data: null })
    state.history.resolve(name)
    if (isUndoable) this.undoables.add(call, state.writer.seq, null)
  }

  /** Appends the result of a step. */
  private record(call: StepCall, attempt: Attempt, data: string): number {
    const { state } = this
    const { name } = call
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    const isUndoable = call.undo !== undefined
    state.history.resolve(name)
    state.writer.append({ kind: 'step-succeeded', name, meta: isUndoable ? { ...meta, undo: true } : meta, data })
    const { seq } = state.writer
    if (isUndoable) this.undoables.add(call, seq, data)
    return seq
  }

  /** Appends the result of a transaction, which is not certain before it is committed. */
  place(call: StepCall, attempt: Attempt, value: unknown): RecordedOutcome {
    const where = this.placeOfResult(call.name)
    const { payloads } = this.state.host
    const data = payloads.encode(value, where)
    const decoded = readBack(payloads, data, where)
    const seq = this.record(call, attempt, data)
    this.settler.expect(call)
    return { failed: false, value: decoded, seq }
  }

  /** The placed entry is committed. */
  landed(call: StepCall, outcome: RecordedOutcome): void {
    this.over(call)
    this.settler.markReady(call, outcome)
  }

  /** `place` is where the result stands if it was appended before: the failure takes its place. */
  failed(call: StepCall, attempt: Attempt, error: unknown, place: number | null = null): void {
    const { state } = this
    this.over(call)
    const isOfNoUse = state.ending !== null && (attempt.isAborted || state.history.begun.has(call.name))
    if (place === null && isOfNoUse) return this.failedAtTheEnd(call, attempt)
    const { name, conflicts: before } = call
    const next = this.afterFailure(call, attempt, error)
    if (next.broken !== undefined)
      warnOfBrokenPredicate(state.host, state.run, `step ${quotedText(call.name)}`, next.broken.error)
    const mayHaveHappened = this.mayHaveHappened(call, attempt, error)
    if (next.retry && mayHaveHappened && !this.undoables.isUnsure(call)) this.recordAbandoned(call, attempt)
    const at = place ?? state.writer.seq + 1
    const { payloads } = state.host
    const where = payloads.place(state.runId, at, next.retry ? 'attempt-failed' : 'step-failed', name)
    const data = payloads.encodeFailure(nameStep(error, name), where)
    const meta = { attempt: attempt.attempt, ms: attempt.ms }
    state.history.resolve(name)
    if (next.retry) {
      call.failures = attempt.attempt
      const { delayMs } = next
      const { conflicts } = call
      const retry = { ...meta, delayMs, ...(conflicts === 0 ? {} : { conflicts }) }
      this.write({ kind: 'attempt-failed', name, meta: retry, data }, attempt, place)
      // A conflict with another transaction is part of the isolation that was asked for.
      if (conflicts === before) state.host.attemptFailed?.({ ...retry, run: state.run, step: name, kind: 'do', error })
      if (place !== null) this.settler.dismiss(call)
      return this.delay(call, delayMs)
    }
    const decoded = readFailureBack(payloads, data, where, error)
    this.write(
      { kind: 'step-failed', name, meta: mayHaveHappened ? { ...meta, undo: true } : meta, data },
      attempt,
      place,
    )
    if (mayHaveHappened) this.undoables.add(call, at, null)
    this.settler.markReady(call, { failed: true, value: decoded, seq: at })
  }

  /**
   * It is to be undone though it failed: an attempt that ran out of time, was abandoned or died with its process may have
   * done its work all the same, and one whose result cannot be stored has.
   */
  private mayHaveHappened(call: StepCall, { hasTimedOut }: Attempt, error: unknown): boolean {
    if (call.undo === undefined || call.isTransaction) return false
    const { history } = this.state
    if (hasTimedOut || isHoldfastError(error, 'NOT_STORABLE')) return true
    return history.begun.has(call.name) || this.undoables.isUnsure(call)
  }

  private afterFailure(call: StepCall, { attempt }: Attempt, error: unknown): AfterFailure {
    // A result that cannot be stored would be no better the next time, and the work has been done.
    if (isHoldfastError(error, 'NOT_STORABLE')) return { retry: false, because: 'fatal' }
    const { random } = this.state.host.ports
    const isInTheWay = call.isTransaction && isConflict(error, call.isolation !== undefined)
    if (isInTheWay && call.conflicts < mostConflicts) {
      call.conflicts += 1
      return { retry: true, delayMs: conflictDelay(call.conflicts, random) }
    }
    return this.state.inside(call.name, () => afterFailure(call.policy, attempt - call.conflicts, error, random))
  }

  /** It was aborted and nothing comes after it, so its error is not reported; but it may have happened all the same. */
  private failedAtTheEnd(call: StepCall, attempt: Attempt): void {
    if (attempt.hasTimedOut || (call.undo !== undefined && !call.isTransaction)) this.recordAbandoned(call, attempt)
    this.state.scheduleTurn()
  }

  private write(draft: Draft, attempt: Attempt, place: number | null): void {
    if (place === null) this.state.writer.append(draft)
    else this.state.writer.bounced(attempt, place, draft)
  }

  private delay(call: StepCall, ms: number): void {
    const { state } = this
    const delay: Delay = { ms, since: null }
    call.delay = delay
    if (this.isInline(ms)) this.inlineDelays += 1
    this.waits.addIdle(call)
    state.writer.whenDurable((at) => {
      delay.since = at
      this.waits.idle.registered()
      state.scheduleTurn()
    })
    state.scheduleTurn()
  }

  private placeOfResult(name: string): Place {
    const { host, runId, writer } = this.state
    return host.payloads.place(runId, writer.seq + 1, 'step-succeeded', name)
  }

  private over(call: StepCall): void {
    call.attempt = null
    this.attempts -= 1
    if (this.heldBack.length > 0) this.state.scheduleTurn()
  }

  private isInline(ms: number): boolean {
    return ms <= this.state.host.inlineRetryMs
  }
}

/** Restores the counts of attempts from the journal. */
function restore(call: StepCall, { meta: { attempt, conflicts = 0 } }: AttemptFailed): void {
  call.failures = attempt
  call.conflicts = conflicts
}
