// How the stay of a run in this process ends: the last entries, the commit that carries them, and the reaction to its answer.
// Each way out goes through the drain (drain.ts) and ends in `leave`; a run that has something to undo does that in between.
//
// The store may refuse. A run that is being cancelled cannot end in another way: its last batch is refused and taken back
// without its last entry, and the run is cancelled. A run whose time is over cannot succeed: it fails. A run whose pause was
// withdrawn goes on. A run with a request to pause or cancel is not released for later: it stays here and obeys the request.

import type { Acknowledged, Definition, Departure } from '../../core/definition/definition.ts'
import { failedLine, pausedLine } from '../../core/rows/engine-notes.ts'
import type { FailedMeta, FoundCall, RetryMeta, Unreadable } from '../../core/model/entry.ts'
import { bug, HoldfastError, isHoldfastError } from '../../core/errors/error.ts'
import { afterFailure, type RetryPolicy } from '../../core/definition/retry.ts'
import { isTerminal, cancelReasonOf, type Run, type ControlRequest } from '../../core/model/run.ts'
import { pausedEntry } from '../../core/rules/control.ts'
import type { Due } from '../../core/model/due.ts'
import { ContinueAsNew } from './continue-as-new.ts'
import type { OutlastedChildren } from '../waits/outlasted-children.ts'
import type { ExitPlan } from './drain.ts'
import { describeDrift, foundCalls } from '../replay/drift.ts'
import type { RecordedEntry, RecordedPlace } from '../replay/history.ts'
import type { Mailbox } from '../waits/mailbox.ts'
import type { Phase } from './phase.ts'
import type { Settler } from '../replay/settler.ts'
import type { FrameApi } from './frame-api.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import { describeUnreadable, lookAgainMs, undoIsAway } from '../replay/unreadable.ts'
import type { Exit } from '../../core/runtime/exit.ts'

/** How a run ends that has something to undo before, or attempts to wait for. */
export type FrameEnd =
  | { readonly status: 'cancelled'; readonly reason: string | null }
  | { readonly status: 'failed'; readonly error: unknown; readonly cause: number | null }

export interface FrameExitDeps extends FrameApi {
  readonly mailbox: Mailbox
  readonly outlastedChildren: OutlastedChildren
  readonly run: Run
  readonly controlRequest: ControlRequest | null
  readonly settler: Settler
  readonly steps: StepRunner
  /** When this stay began, on the process's own clock. */
  readonly startedAt: number
  readonly phase: Phase
  /** Begins to leave: no new work begins, and attempts under way are awaited and recorded. */
  leaveBy(way: ExitPlan): void
  /** The body has returned, or thrown: waits that it made and did not await begin now. */
  bodyEnded(): void
  /** Warns of calls that were never awaited, of a body that has returned. */
  warnOfForgotten(): void
  /** Warns of calls that failed without being awaited. */
  warnOfSwallowed(): void
  /** Calls back when no child is being prepared any more, and all that the body has made has begun: at once if that is so. */
  whenBegun(next: () => void): void
  /** Calls back when each step has ended that the body has called: at once if there is none. */
  whenStepsEnd(next: () => void): void
  /** There is something to undo. */
  readonly mustUndo: boolean
  /** A call of the body was recorded in this stay. */
  readonly hasProgressed: boolean
  /** The body goes no further: the last commit is about to be sent. If it may yet be called back, nothing is aborted. */
  leaving(isCertain?: boolean): void
  /** The control request was withdrawn. */
  applyControl(controlRequest: null): void
  /** It was leaving and stays after all: it goes on as it was. */
  lookAgain(phase: Phase): void
  /** The body goes no further; its steps are undone, then the run ends. */
  unwind(): void
  /** The run is not this frame's any more. */
  gone(departure: Departure): void
  /** Where in the code these calls stand. */
  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]>
}

export class FrameExit {
  /** How the run is to end; null while that is open. */
  ending: FrameEnd | null = null
  private continueAsNewStep: ContinueAsNew | null = null
  /** The payload of the journal that cannot be read here; null if there is none. */
  private unread: { readonly error: HoldfastError; readonly meta: Unreadable } | null = null
  readonly deps: FrameExitDeps
  readonly definition: Definition
  /** Called instead of the pause that is on its way, if its request is withdrawn. */
  private insteadOfPause: (() => void) | null = null

  constructor(deps: FrameExitDeps, definition: Definition) {
    this.deps = deps
    this.definition = definition
  }

  returned(value: unknown): void {
    const { deps } = this
    if (this.continueAsNewStep?.precedes(() => this.returned(value)) === true) return
    deps.bodyEnded()
    deps.warnOfForgotten()
    // Most bodies leave nothing behind.
    const hasNothing = deps.settler.size === 0 && deps.preparing === 0 && deps.outlastedChildren.areOver
    if (hasNothing && deps.history.next() === undefined && deps.history.begun.size === 0) {
      deps.warnOfSwallowed()
      return this.succeed(value)
    }
    const end = (): void => {
      const unrequested = deps.settler.leftBehind()
      if (unrequested !== undefined) this.drifted(unrequested)
      else {
        deps.warnOfSwallowed()
        deps.leaveBy({ leave: () => this.succeed(value), stop: null })
      }
    }
    // Every step that the body has called takes place, also one that it does not await.
    deps.whenBegun(() => deps.whenStepsEnd(() => this.outlast(end)))
  }

  get isContinuing(): boolean {
    return this.continueAsNewStep?.isChecking === true
  }

  private succeed(value: unknown): void {
    const { deps } = this
    let data: string
    try {
      data = deps.encode(value, 'succeeded', null)
    } catch (error) {
      return this.fail(error)
    }
    deps.writer.append({ kind: 'succeeded', name: null, meta: null, data })
    this.leave('succeeded')
  }

  threw(error: unknown): void {
    const { deps } = this
    const { history, host } = deps
    deps.bodyEnded()
    const attempt = (deps.hasProgressed ? 0 : history.bodyFailures) + 1
    const next =
      deps.steps.causeOf(error) === null
        ? afterFailure(this.bodyPolicy(), attempt, error, host.ports.random)
        : { retry: false as const }
    if (!next.retry) return this.fail(error)
    const ms = Math.round(host.ports.clock.monotonic() - deps.startedAt)
    const meta = { attempt, ms, delayMs: next.delayMs }
    deps.leaveBy({ leave: () => this.tryAgain(error, meta), stop: null })
  }

  private tryAgain(error: unknown, meta: RetryMeta): void {
    const { deps } = this
    const data = deps.encodeFailure(error, 'attempt-failed', null)
    deps.writer.append({ kind: 'attempt-failed', name: null, meta, data })
    const later = (): void => this.leave('pending', { at: null, afterMs: meta.delayMs })
    if (!this.pauses(later)) later()
  }

  /** Goes on once the children have ended that the run must outlast. */
  outlast(next: () => void): void {
    if (!this.deps.outlastedChildren.outlast(() => this.outlast(next))) next()
  }

  private bodyPolicy(): RetryPolicy {
    const { policy, history } = this.deps
    const { input } = history
    if (input.kind !== 'started' || input.meta === null) return policy
    return { ...policy, maxAttempts: input.meta.maxAttempts }
  }

  /** The run fails: when nothing is under way any more, everything is undone, and no child is left that it must outlast. */
  fail(error: unknown): void {
    const { deps } = this
    const ending = { status: 'failed', error, cause: deps.steps.causeOf(error) } as const
    this.ending = ending
    deps.leaveBy({ leave: () => this.failNow(ending), stop: () => error })
  }

  private failNow({ error, cause }: Extract<FrameEnd, { status: 'failed' }>): void {
    const { deps } = this
    if (!deps.mustUndo && deps.outlastedChildren.areOver) {
      this.appendFailed(error, cause, [])
      return this.leave('failed')
    }
    const data = deps.encodeFailure(error, 'failing', null)
    deps.writer.append({ kind: 'failing', name: null, meta: failedMeta(cause, []), data })
    deps.unwind()
  }

  /** The journal says that the run fails, but not yet that everything is undone. */
  goOnFailing(error: unknown, cause: number | null): void {
    this.ending ??= { status: 'failed', error, cause }
    this.deps.unwind()
  }

  /** The run will be cancelled, when no attempt runs any more and everything is undone. */
  cancel(reason: string | null): void {
    if (this.ending?.status === 'cancelled' && this.ending.reason !== null) return
    this.ending = { status: 'cancelled', reason }
    this.deps.unwind()
  }

  /** The reason with which a cancellation aborts the body and its attempts under way. */
  whyCancelled(): HoldfastError {
    const { runId } = this.deps
    const reason = this.ending?.status === 'cancelled' ? this.ending.reason : null
    const said = reason === null ? '' : `: ${reason}`
    return new HoldfastError('RUN_CANCELLED', `Run ${runId} is being cancelled${said}`, { details: { runId, reason } })
  }

  /** Everything is undone, but for these. */
  unwound(notUndone: readonly string[]): void {
    const { ending, deps } = this
    if (ending === null || this.waitsForDependants()) return
    if (ending.status === 'failed') this.appendFailed(ending.error, ending.cause, notUndone)
    else {
      const meta = { reason: ending.reason, notUndone }
      deps.writer.append({ kind: 'cancelled', name: null, meta, data: null })
    }
    this.leave(ending.status)
  }

  /** Children may have to end first: then the run is released until it looks again. */
  private waitsForDependants(): boolean {
    const { outlastedChildren, controlRequest, history } = this.deps
    const ms = outlastedChildren.lookAgainIn(
      controlRequest?.at ?? history.cancelling?.at ?? history.failing?.at ?? null,
    )
    if (typeof ms === 'number') {
      outlastedChildren.note()
      this.releaseFor(ms)
    }
    return ms !== null
  }

  /**
   * Pauses the run here, if there is a request to. If the request is withdrawn meanwhile, the run goes on where it was, or
   * calls `otherwise`.
   */
  pauses(otherwise: (() => void) | null = null): boolean {
    const { controlRequest, writer, phase } = this.deps
    if (controlRequest?.kind !== 'pause' || this.ending?.status === 'cancelled') return false
    const { host, runId } = this.deps
    const note = host.payloads.appliedNote(runId, writer.seq + 1, controlRequest)
    writer.append(pausedEntry({ reason: controlRequest.reason, ...note }), null, true)
    this.insteadOfPause = otherwise ?? (() => this.deps.lookAgain(phase))
    this.send({ status: 'paused', due: null, continues: null, applies: 'pause' })
    return true
  }

  /** Releases a run whose undo work goes on later. */
  releaseFor(ms: number): void {
    this.leave(this.ending?.status === 'cancelled' ? 'cancelling' : 'pending', { at: null, afterMs: ms })
  }

  drifted(unrequested: RecordedEntry): void {
    this.deps.leaveBy({ leave: () => this.pauseForDrift(unrequested), stop: null })
  }

  private pauseForDrift(unrequested: RecordedEntry): void {
    const { deps } = this
    const found = foundCalls(deps.settler.all())
    deps.leaving()
    // The run must not go on with entries that the changed code wrote during its replay. Outcomes of its steps count.
    if (deps.history.next() !== undefined) deps.writer.discard()
    void deps.placesOf(found).then((places) => {
      if (deps.phase !== 'leaving') return
      const meta = describeDrift(unrequested, places)
      const { id, type } = deps.run
      const error = new HoldfastError('DRIFT', meta.message, { details: { ...meta } })
      deps.host.ports.logger.error(pausedLine(deps.run, 'drift', meta.message), { run: id, type, error })
      deps.writer.append({ kind: 'paused', name: null, meta, data: null })
      this.leave('paused')
    })
  }

  /** A payload cannot be read: nothing is begun, repeated or undone until a worker that can read it goes on. */
  unreadable(error: HoldfastError, at: RecordedPlace): void {
    this.unread ??= { error, meta: describeUnreadable(error, at) }
    this.deps.leaveBy({ leave: () => this.pauseUnread(), stop: null })
  }

  get isUnread(): boolean {
    return this.unread !== null
  }

  /** From a cancellation no way leads to a pause: such a run is looked at again, later each time. */
  pauseUnread(): void {
    const { deps, unread, ending } = this
    if (unread === null) throw bug('A run is paused as unreadable, and nothing is', { runId: deps.runId })
    const { error, meta } = unread
    const { id, type } = deps.run
    const isPaused = ending?.status !== 'cancelled'
    const said = isPaused ? pausedLine(deps.run, 'unreadable', meta.note) : `Run ${id} of "${type}": ${meta.note}`
    deps.host.ports.logger.error(said, { run: id, type, error })
    deps.leaving()
    // The body repeats the entries of its replay then. That the run fails is recorded once.
    if (ending === null && deps.history.next() !== undefined) deps.writer.discard()
    if (ending?.status === 'cancelled') return this.lookLater(error)
    deps.writer.append({ kind: 'paused', name: null, meta, data: null })
    this.leave('paused')
  }

  /**
   * A payload or resource that is needed to learn how steps are undone is unavailable: the run is tried again, later each
   * time.
   */
  undoLater(): void {
    const { deps } = this
    const error = undoIsAway(deps.runId, deps.undoables.missing, deps.resources.hasFailed)
    deps.host.ports.logger.error(error.message, { run: deps.runId, type: deps.run.type })
    deps.leaving()
    this.lookLater(error)
  }

  private lookLater(error: HoldfastError): void {
    const { deps } = this
    const attempt = deps.history.bodyFailures + 1
    const ms = Math.round(deps.host.ports.clock.monotonic() - deps.startedAt)
    const retry = { attempt, ms, delayMs: lookAgainMs(attempt) }
    const data = deps.encodeFailure(error, 'attempt-failed', null)
    deps.writer.append({ kind: 'attempt-failed', name: null, meta: retry, data })
    this.releaseFor(retry.delayMs)
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    this.continueAsNewStep ??= new ContinueAsNew(this)
    return this.continueAsNewStep.begin(target, input)
  }

  private appendFailed(error: unknown, cause: number | null, notUndone: readonly string[]): void {
    const { deps } = this
    const data = deps.encodeFailure(error, 'failed', null)
    deps.writer.append({ kind: 'failed', name: null, meta: failedMeta(cause, notUndone), data })
  }

  private leave(status: NonNullable<Exit['status']>, due: Due | null = null): void {
    // If the mailbox of a run that ends is known to be empty, the store need not look for unread messages.
    const emptyAt = isTerminal(status) ? this.deps.mailbox.emptyAt : undefined
    this.send({ status, due, continues: null, emptyAt })
  }

  send(exit: Exit): void {
    const { deps } = this
    deps.leaving((exit.applies ?? null) === null)
    deps.writer.leave(exit).then(
      (answer) => this.answered(exit, answer),
      (error: unknown) => this.refused(exit, error),
    )
  }

  private answered({ status, continues, applies }: Exit, { released, at }: Acknowledged): void {
    const { deps } = this
    const { writer } = deps
    // The run was lost here meanwhile: the answer concerns its next holder.
    if (deps.phase !== 'leaving') return
    const last = writer.lastSent
    if (continues !== null) {
      const input = { ...last, seq: writer.seq, at, transition: null }
      return deps.gone({ kind: 'continued', as: continues, input, inbox: writer.arrived })
    }
    if (status !== null && isTerminal(status)) {
      const { ending } = this
      if (status === 'failed' && ending?.status === 'failed') {
        const { id, type } = deps.run
        deps.host.ports.logger.warn(failedLine(deps.run, ending.error), { run: id, type, error: ending.error })
      }
      const reason = ending?.status === 'cancelled' ? ending.reason : null
      return deps.gone({ kind: 'ended', status, seq: writer.seq, data: last.data, reason })
    }
    if (released) {
      if ((applies ?? null) !== null) deps.leaving()
      return deps.gone({ kind: 'released' })
    }
    // There is a request to cancel or to pause: the run stays until that is done.
    if (deps.controlRequest?.kind === 'cancel') return this.cancel(deps.controlRequest.reason)
    const giveBack = (): void =>
      writer.lose(new Error('The run was not released, and nothing is wanted of it any more.'))
    if (!this.pauses(giveBack)) giveBack()
  }

  private refused({ continues }: Exit, error: unknown): void {
    const { deps } = this
    if (deps.phase !== 'leaving') return
    if (isHoldfastError(error, 'RUN_CANCELLING')) {
      deps.writer.takeBack()
      return this.cancel(
        cancelReasonOf(deps.controlRequest) ??
          cancelReasonOf(error.details['controlRequest'] as ControlRequest | null | undefined),
      )
    }
    if (isHoldfastError(error, 'RUN_RESUMED')) {
      deps.writer.takeBack()
      deps.applyControl(null)
      return this.insteadOfPause?.()
    }
    const isFailed =
      isHoldfastError(error, 'RUN_TIMEOUT') || (continues !== null && isHoldfastError(error, 'RUN_EXISTS'))
    if (!isFailed) return deps.writer.lose(error)
    deps.writer.takeBack()
    this.fail(error)
  }
}

function failedMeta(cause: number | null, notUndone: readonly string[]): FailedMeta | null {
  return cause === null && notUndone.length === 0 ? null : { cause, notUndone }
}
