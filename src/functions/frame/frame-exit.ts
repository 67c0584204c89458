// How the stay of a run in this process ends: the last entries, the commit that carries them, and the reaction to its answer.
// Each way out goes through the drain (drain.ts) and ends in `leave`; a run that has something to undo does that in between.
//
// The store may refuse. A run that is being cancelled cannot end in another way: its last batch is refused and taken back
// without its last entry, and the run is cancelled. A run whose time is over cannot succeed: it fails. A run whose pause was
// withdrawn goes on. A run with a request to pause or cancel is not released for later: it stays here and obeys the request.

import type { Acknowledged, Definition } from '../../core/definition/definition.ts'
import { failedLine, pausedLine } from '../../core/rows/engine-notes.ts'
import type { FailedMeta, RetryMeta, Unreadable } from '../../core/model/entry.ts'
import { bug, HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { afterFailure, type RetryPolicy } from '../../core/definition/retry.ts'
import { isTerminal, cancelReasonOf, type ControlRequest } from '../../core/model/run.ts'
import { pausedEntry } from '../../core/rules/control.ts'
import type { Due } from '../../core/model/due.ts'
import { completeBody } from './complete-body.ts'
import { isMistake, warnOfBrokenPredicate } from '../api/misuse.ts'
import { ContinueAsNew } from './continue-as-new.ts'
import type { Drain } from './drain.ts'
import type { FrameEnd, FrameState, Phase } from './frame-state.ts'
import { OutlastedChildren } from '../waits/outlasted-children.ts'
import { describeDrift, foundCalls, leavesToNewerCode } from '../replay/drift.ts'
import type { RecordedEntry, RecordedPlace } from '../replay/history.ts'
import { encodeFailure, encodeNext } from '../replay/journal-text.ts'
import type { Settler } from '../replay/settler.ts'
import type { Waits } from '../waits/waits.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import { describeUnreadable, lookAgainMs, undoIsAway } from '../replay/unreadable.ts'
import type { Exit } from '../../core/runtime/exit.ts'
import { quotedText } from '../../core/text/printable.ts'

export class FrameExit {
  readonly state: FrameState
  readonly settler: Settler
  readonly waits: Waits
  readonly drain: Drain
  private readonly steps: StepRunner
  /** When this stay began, on the process's own clock. */
  private readonly startedAt: number
  private continueAsNewStep: ContinueAsNew | null = null
  /** The payload of the journal that cannot be read here; null if there is none. */
  private unread: { readonly error: HoldfastError; readonly meta: Unreadable } | null = null
  /** Called instead of the pause that is on its way, if its request is withdrawn. */
  private insteadOfPause: (() => void) | null = null
  /** The time for the run was over while it was being parked. */
  private overdue: { readonly error: unknown } | null = null
  private outlastedChildren: OutlastedChildren | null = null

  constructor(state: FrameState, settler: Settler, waits: Waits, steps: StepRunner, drain: Drain) {
    this.state = state
    this.settler = settler
    this.waits = waits
    this.steps = steps
    this.drain = drain
    this.startedAt = state.host.ports.clock.monotonic()
  }

  returned(value: unknown): void {
    if (this.continueAsNewStep?.precedes(() => this.returned(value)) === true) return
    completeBody(this, 'returned', () => this.succeed(value))
  }

  get isContinuing(): boolean {
    return this.continueAsNewStep?.isChecking === true
  }

  private succeed(value: unknown): void {
    const { state } = this
    let data: string
    try {
      data = encodeNext(state, value, 'succeeded', null)
    } catch (error) {
      return this.fail(error)
    }
    state.writer.append({ kind: 'succeeded', name: null, meta: null, data })
    this.leave('succeeded')
  }

  threw(error: unknown): void {
    const { settler } = this
    const { history, host } = this.state
    this.waits.beginMade()
    const attempt = (settler.hasProgressed ? 0 : history.bodyFailures) + 1
    const next =
      settler.causeOf(error) === null && !isMistake(error)
        ? afterFailure(this.bodyPolicy(), attempt, error, host.ports.random)
        : { retry: false as const }
    if ('broken' in next && next.broken !== undefined)
      warnOfBrokenPredicate(host, this.state.run, 'its body', next.broken.error)
    if (!next.retry) return this.fail(error)
    const ms = Math.round(host.ports.clock.monotonic() - this.startedAt)
    const meta = { attempt, ms, delayMs: next.delayMs }
    this.drain.begin({ leave: () => this.tryAgain(error, meta), stop: null })
  }

  private tryAgain(error: unknown, meta: RetryMeta): void {
    const { state } = this
    const { attempt, delayMs } = meta
    const data = encodeFailure(state, error, 'attempt-failed', null)
    state.writer.append({ kind: 'attempt-failed', name: null, meta, data })
    state.host.attemptFailed?.({ run: state.run, step: null, kind: 'do', attempt, delayMs, error })
    const later = (): void => this.leave('pending', { at: null, afterMs: meta.delayMs })
    if (!this.pauses(later)) later()
  }

  /** Goes on once the children have ended that the run must outlast. */
  outlast(next: () => void): void {
    if (this.waits.outlasted.size === 0 && this.outlastedChildren === null) return next()
    this.outlastedChildren ??= new OutlastedChildren(this.waits)
    if (!this.outlastedChildren.outlast(() => this.outlast(next))) next()
  }

  private bodyPolicy(): RetryPolicy {
    const { body, history } = this.state
    const { policy } = body
    const { input } = history
    if (input.kind !== 'started' || input.meta === null) return policy
    return { ...policy, maxAttempts: input.meta.maxAttempts }
  }

  /** The time for the run is over. One that is about to end otherwise is out of time, too; one that undoes has all it needs. */
  timedOut(error: unknown): void {
    const { phase, ending } = this.state
    if (phase === 'live' || (phase === 'draining' && ending === null)) this.fail(error)
    // A parked run has no holder.
    else if (phase === 'parking') this.overdue = { error }
  }

  /** It was leaving, or being parked, and stays after all: it goes on as it was. */
  lookAgain(phase: Phase = 'live'): void {
    const { state } = this
    if (state.hasCalledLate) return state.writer.lose(new Error('The body went on while its run was leaving.'))
    state.stay(phase)
    if (state.controlRequest?.kind === 'cancel') return this.cancel(state.controlRequest.reason)
    if (this.overdue !== null) return this.fail(this.overdue.error)
    state.scheduleTurn()
  }

  /** The run fails: when nothing is under way any more, everything is undone, and no child is left that it must outlast. */
  fail(error: unknown): void {
    const ending = { status: 'failed', error, cause: this.settler.causeOf(error) } as const
    this.state.endAs(ending)
    this.drain.begin({ leave: () => this.failNow(ending), stop: () => error })
  }

  private failNow({ error, cause }: Extract<FrameEnd, { status: 'failed' }>): void {
    const { state } = this
    if (!this.steps.mustUndo && this.waits.outlasted.size === 0) {
      this.appendFailed(error, cause, [])
      return this.leave('failed')
    }
    const data = encodeFailure(state, error, 'failing', null)
    state.writer.append({ kind: 'failing', name: null, meta: failedMeta(cause, []), data })
    state.frame.unwind()
  }

  /** The journal says that the run fails, but not yet that everything is undone. */
  goOnFailing(error: unknown, cause: number | null): void {
    const { state } = this
    if (state.ending === null) state.endAs({ status: 'failed', error, cause })
    state.frame.unwind()
  }

  /** The run will be cancelled, when no attempt runs any more and everything is undone. */
  cancel(reason: string | null): void {
    const { state } = this
    const { ending } = state
    if (ending?.status === 'cancelled' && ending.reason !== null) return
    state.endAs({ status: 'cancelled', reason })
    state.frame.unwind()
  }

  /** The reason with which a cancellation aborts the body and its attempts under way. */
  whyCancelled(): HoldfastError {
    const { runId, ending } = this.state
    const reason = ending?.status === 'cancelled' ? ending.reason : null
    const said = reason === null ? '' : `: ${reason}`
    return new HoldfastError('RUN_CANCELLED', `Run ${runId} is being cancelled${said}`, { details: { runId, reason } })
  }

  /** Everything is undone, but for these. */
  unwound(notUndone: readonly string[]): void {
    const { ending, writer } = this.state
    if (ending === null || this.waitsForDependants()) return
    if (ending.status === 'failed') this.appendFailed(ending.error, ending.cause, notUndone)
    else {
      const meta = { reason: ending.reason, notUndone }
      writer.append({ kind: 'cancelled', name: null, meta, data: null })
    }
    this.leave(ending.status)
  }

  /** Children may have to end first: then the run is released until it looks again. */
  private waitsForDependants(): boolean {
    if (this.waits.outlasted.size === 0) return false
    const { controlRequest, history } = this.state
    this.outlastedChildren ??= new OutlastedChildren(this.waits)
    const ms = this.outlastedChildren.lookAgainIn(
      controlRequest?.at ?? history.cancelling?.at ?? history.failing?.at ?? null,
    )
    if (typeof ms === 'number') {
      this.outlastedChildren.note()
      this.releaseFor(ms)
    }
    return ms !== null
  }

  /**
   * Pauses the run here, if there is a request to. If the request is withdrawn meanwhile, the run goes on where it was, or
   * calls `otherwise`.
   */
  pauses(otherwise: (() => void) | null = null): boolean {
    const { controlRequest, ending, host, phase, runId, writer } = this.state
    if (controlRequest?.kind !== 'pause' || ending?.status === 'cancelled') return false
    const note = host.payloads.appliedNote(runId, writer.seq + 1, controlRequest)
    writer.append(pausedEntry({ reason: controlRequest.reason, ...note }), null, true)
    this.insteadOfPause = otherwise ?? (() => this.lookAgain(phase))
    this.send({ status: 'paused', due: null, continues: null, applies: 'pause' })
    return true
  }

  /** Releases a run whose undo work goes on later. */
  releaseFor(ms: number): void {
    this.leave(this.state.ending?.status === 'cancelled' ? 'cancelling' : 'pending', { at: null, afterMs: ms })
  }

  drifted(unrequested: RecordedEntry): void {
    if (leavesToNewerCode(this.state, unrequested)) return
    this.drain.begin({ leave: () => this.pauseForDrift(unrequested), stop: null })
  }

  private pauseForDrift(unrequested: RecordedEntry): void {
    const { state } = this
    const found = foundCalls(this.settler.all())
    this.drain.leaving()
    // The run must not go on with entries that the changed code wrote during its replay. Outcomes of its steps count.
    if (!state.history.isOver) state.writer.discard()
    void state.frame.placesOf(found).then((places) => {
      if (state.phase !== 'leaving') return
      const meta = describeDrift(unrequested, places, state.history.unknownPatch(unrequested.seq)?.name)
      const { id, type } = state.run
      const error = new HoldfastError('DRIFT', meta.message, { details: { ...meta } })
      state.host.ports.logger.error(pausedLine(state.run, 'drift', meta.message), { run: id, type, error })
      state.writer.append({ kind: 'paused', name: null, meta, data: null })
      this.leave('paused')
    })
  }

  /** A payload cannot be read: nothing is begun, repeated or undone until a worker that can read it goes on. */
  unreadable(error: unknown, at: RecordedPlace | null): void {
    const { state } = this
    if (!state.isLive && state.phase !== 'unwinding') return
    // Another worker may be able to fetch it, or this one later.
    if (at === null || !isHoldfastError(error, 'PAYLOAD_CORRUPT')) return state.writer.lose(error)
    state.endBody()
    this.unread ??= { error, meta: describeUnreadable(error, at) }
    this.drain.begin({ leave: () => this.pauseUnread(), stop: null })
  }

  get isUnread(): boolean {
    return this.unread !== null
  }

  /** From a cancellation no way leads to a pause: such a run is looked at again, later each time. */
  pauseUnread(): void {
    const { state, unread } = this
    const { ending } = state
    if (unread === null) throw bug('A run is paused as unreadable, and nothing is', { runId: state.runId })
    const { error, meta } = unread
    const { id, type } = state.run
    const isPaused = ending?.status !== 'cancelled'
    const said = isPaused
      ? pausedLine(state.run, 'unreadable', meta.note)
      : `Run ${id} of ${quotedText(type)}: ${meta.note}`
    state.host.ports.logger.error(said, { run: id, type, error })
    this.drain.leaving()
    // The body repeats the entries of its replay then. That the run fails is recorded once.
    if (ending === null && !state.history.isOver) state.writer.discard()
    if (ending?.status === 'cancelled') return this.lookLater(error)
    state.writer.append({ kind: 'paused', name: null, meta, data: null })
    this.leave('paused')
  }

  /**
   * A payload or resource that is needed to learn how steps are undone is unavailable: the run is tried again, later each
   * time.
   */
  undoLater(): void {
    const { state } = this
    const error = undoIsAway(state.runId, this.steps.undoables.missing, this.settler.resources.hasFailed)
    state.host.ports.logger.error(error.message, { run: state.runId, type: state.run.type })
    this.drain.leaving()
    this.lookLater(error)
  }

  private lookLater(error: HoldfastError): void {
    const { state } = this
    const attempt = state.history.bodyFailures + 1
    const ms = Math.round(state.host.ports.clock.monotonic() - this.startedAt)
    const retry = { attempt, ms, delayMs: lookAgainMs(attempt) }
    const data = encodeFailure(state, error, 'attempt-failed', null)
    state.writer.append({ kind: 'attempt-failed', name: null, meta: retry, data })
    this.releaseFor(retry.delayMs)
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    if (this.state.hasBodyEnded) {
      this.state.warnOfLateCall()
      return new Promise(() => undefined)
    }
    this.continueAsNewStep ??= new ContinueAsNew(this)
    return this.continueAsNewStep.begin(target, input)
  }

  private appendFailed(error: unknown, cause: number | null, notUndone: readonly string[]): void {
    const { state } = this
    const data = encodeFailure(state, error, 'failed', null)
    state.writer.append({ kind: 'failed', name: null, meta: failedMeta(cause, notUndone), data })
  }

  private leave(status: NonNullable<Exit['status']>, due: Due | null = null): void {
    // If the mailbox of a run that ends is known to be empty, the store need not look for unread messages.
    const emptyAt = isTerminal(status) ? this.waits.mailbox.emptyAt : undefined
    this.send({ status, due, continues: null, emptyAt })
  }

  send(exit: Exit): void {
    const { state } = this
    this.drain.leaving((exit.applies ?? null) === null)
    state.writer.leave(exit).then(
      (answer) => this.answered(exit, answer),
      (error: unknown) => this.refused(exit, error),
    )
  }

  private answered({ status, continues, applies }: Exit, { released, at }: Acknowledged): void {
    const { state, drain } = this
    const { writer, ending } = state
    // The run was lost here meanwhile: the answer concerns its next holder.
    if (state.phase !== 'leaving') return
    const last = writer.lastSent
    if (continues !== null) {
      const input = { ...last, seq: writer.seq, at, transition: null }
      return drain.gone({ kind: 'continued', as: continues, input, inbox: writer.arrived })
    }
    if (status !== null && isTerminal(status)) {
      if (status === 'failed' && ending?.status === 'failed') {
        const { id, type } = state.run
        state.host.ports.logger.warn(failedLine(state.run, ending.error), { run: id, type, error: ending.error })
      }
      const reason = ending?.status === 'cancelled' ? ending.reason : null
      return drain.gone({ kind: 'ended', status, seq: writer.seq, data: last.data, reason })
    }
    if (released) {
      if ((applies ?? null) !== null) drain.leaving()
      return drain.gone({ kind: 'released' })
    }
    // There is a request to cancel or to pause: the run stays until that is done.
    if (state.controlRequest?.kind === 'cancel') return this.cancel(state.controlRequest.reason)
    const giveBack = (): void =>
      writer.lose(new Error('The run was not released, and nothing is wanted of it any more.'))
    if (!this.pauses(giveBack)) giveBack()
  }

  private refused({ continues }: Exit, error: unknown): void {
    const { state } = this
    if (state.phase !== 'leaving') return
    if (isHoldfastError(error, 'RUN_CANCELLING')) {
      state.writer.takeBack()
      return this.cancel(
        cancelReasonOf(state.controlRequest) ??
          cancelReasonOf(error.details['controlRequest'] as ControlRequest | null | undefined),
      )
    }
    if (isHoldfastError(error, 'RUN_RESUMED')) {
      state.writer.takeBack()
      state.frame.applyControl(null)
      return this.insteadOfPause?.()
    }
    const isFailed =
      isHoldfastError(error, 'RUN_TIMEOUT') || (continues !== null && isHoldfastError(error, 'RUN_EXISTS'))
    if (!isFailed) return state.writer.lose(error)
    state.writer.takeBack()
    this.fail(error)
  }
}

function failedMeta(cause: number | null, notUndone: readonly string[]): FailedMeta | null {
  return cause === null && notUndone.length === 0 ? null : { cause, notUndone }
}
