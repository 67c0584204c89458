// How the stay of a run in this process comes to its end: what is written last, the commit that goes with it, and what is
// made of the answer. Each way out goes through the drain (drain.ts) and ends in `leave`; a run that has something to undo
// does that in between.
//
// The store may answer otherwise than was asked. A run that is being cancelled cannot end in another way: its last batch
// is refused, taken back without its last entry, and the run is cancelled. One whose time is over cannot succeed: it fails. One
// that was to be paused, and is not any more, goes on. One that somebody wants paused or cancelled is not released for later:
// it goes on here, and that is obeyed.

import type { Acknowledged, Definition, Departure } from '../core/definition.ts'
import { pausedLine } from '../core/engine-notes.ts'
import type { FailedMeta, FoundCall, RetryMeta, Unreadable } from '../core/entry.ts'
import { bug, HoldfastError, isHoldfastError } from '../core/error.ts'
import { afterFailure, type RetryPolicy } from '../core/retry.ts'
import { isTerminal, reasonOf, type Run, type Wish } from '../core/run.ts'
import { pausedEntry } from '../core/steering.ts'
import type { Due } from '../core/due.ts'
import { Continuing } from './continuing.ts'
import type { Dependants } from './dependants.ts'
import type { WayOut } from './drain.ts'
import { describeDrift, foundCalls } from './drift.ts'
import type { RecordedEntry, RecordedPlace } from './history.ts'
import type { Mailbox } from './mailbox.ts'
import type { Phase } from './phase.ts'
import type { Settler } from './settler.ts'
import type { Stage } from './stage.ts'
import type { StepRunner } from './step-runner.ts'
import { describeUnreadable, lookAgainMs, undoIsAway } from './unreadable.ts'
import type { Exit } from '../core/exit.ts'

/** How a run ends that has something to undo before, or attempts to wait for. */
export type Ending =
  | { readonly status: 'cancelled'; readonly reason: string | null }
  | { readonly status: 'failed'; readonly error: unknown; readonly cause: number | null }

export interface ConclusionOwner extends Stage {
  readonly mailbox: Mailbox
  readonly dependants: Dependants
  readonly run: Run
  readonly wish: Wish | null
  readonly settler: Settler
  readonly steps: StepRunner
  /** When this stay began, on the process's own clock. */
  readonly startedAt: number
  readonly phase: Phase
  /** Begins to leave: nothing new is begun, and what is under way is awaited and recorded. */
  leaveBy(way: WayOut): void
  /** The body has returned, or thrown: waits that it made and did not await begin now. */
  bodyEnded(): void
  /** Says which calls of a body that has returned nobody awaits. */
  warnOfForgotten(): void
  /** Says which calls of it have failed without anybody hearing of it. */
  warnOfSwallowed(): void
  /** Calls back when no child is being prepared any more, and all that the body has made has begun: at once if that is so. */
  whenBegun(next: () => void): void
  /** Calls back when each step has ended that the body has called: at once if there is none. */
  whenStepsEnd(next: () => void): void
  /** There is something to undo. */
  readonly mustUndo: boolean
  /** Something that the body asked for was recorded in this stay. */
  readonly hasProgressed: boolean
  /** Nothing of the body goes on: the last commit is about to be sent. If it may yet be called back, nothing is told to stop. */
  leaving(isCertain?: boolean): void
  /** Nobody wants anything of the run any more. */
  obey(wish: null): void
  /** It was leaving and stays after all: it goes on as it was. */
  lookAgain(phase: Phase): void
  /** The body goes no further; what there is to undo is undone, then the run ends. */
  unwind(): void
  /** The run is not this frame's any more. */
  gone(departure: Departure): void
  /** Where in the code these calls stand. */
  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]>
}

export class Conclusion {
  /** How the run is to end; null while that is open. */
  ending: Ending | null = null
  private continuing: Continuing | null = null
  /** What of the journal cannot be read here; null if nothing is known of that kind. */
  private unread: { readonly error: HoldfastError; readonly meta: Unreadable } | null = null
  readonly owner: ConclusionOwner
  readonly definition: Definition
  /** What happens instead of the pause that is on its way, should nobody want it any more. */
  private insteadOfPause: (() => void) | null = null

  constructor(owner: ConclusionOwner, definition: Definition) {
    this.owner = owner
    this.definition = definition
  }

  returned(value: unknown): void {
    const { owner } = this
    if (this.continuing?.precedes(() => this.returned(value)) === true) return
    owner.bodyEnded()
    owner.warnOfForgotten()
    // Most bodies leave nothing behind.
    const hasNothing = owner.settler.size === 0 && owner.preparing === 0 && owner.dependants.areOver
    if (hasNothing && owner.history.next() === undefined && owner.history.begun.size === 0) {
      owner.warnOfSwallowed()
      return this.succeed(value)
    }
    const end = (): void => {
      const unasked = owner.settler.leftBehind()
      if (unasked !== undefined) this.drifted(unasked)
      else {
        owner.warnOfSwallowed()
        owner.leaveBy({ leave: () => this.succeed(value), stop: null })
      }
    }
    // What the body has called takes place, whether it awaits that or not.
    owner.whenBegun(() => owner.whenStepsEnd(() => this.outlast(end)))
  }

  get isContinuing(): boolean {
    return this.continuing?.isChecking === true
  }

  private succeed(value: unknown): void {
    const { owner } = this
    let data: string
    try {
      data = owner.encode(value, 'succeeded', null)
    } catch (error) {
      return this.fail(error)
    }
    owner.writer.append({ kind: 'succeeded', name: null, meta: null, data })
    this.leave('succeeded')
  }

  threw(error: unknown): void {
    const { owner } = this
    const { history, host } = owner
    owner.bodyEnded()
    const attempt = (owner.hasProgressed ? 0 : history.bodyFailures) + 1
    const next =
      owner.steps.causeOf(error) === null
        ? afterFailure(this.bodyPolicy(), attempt, error, host.ports.random)
        : { retry: false as const }
    if (!next.retry) return this.fail(error)
    const ms = Math.round(host.ports.clock.monotonic() - owner.startedAt)
    const meta = { attempt, ms, delayMs: next.delayMs }
    owner.leaveBy({ leave: () => this.tryAgain(error, meta), stop: null })
  }

  private tryAgain(error: unknown, meta: RetryMeta): void {
    const { owner } = this
    const data = owner.encodeFailure(error, 'attempt-failed', null)
    owner.writer.append({ kind: 'attempt-failed', name: null, meta, data })
    const later = (): void => this.leave('pending', { at: null, afterMs: meta.delayMs })
    if (!this.pauses(later)) later()
  }

  /** Goes on once the children have ended that the run must outlast. */
  outlast(next: () => void): void {
    if (!this.owner.dependants.outlast(() => this.outlast(next))) next()
  }

  private bodyPolicy(): RetryPolicy {
    const { policy, history } = this.owner
    const { input } = history
    if (input.kind !== 'started' || input.meta === null) return policy
    return { ...policy, maxAttempts: input.meta.maxAttempts }
  }

  /** The run fails: when nothing is under way any more, everything is undone, and no child is left that it must outlast. */
  fail(error: unknown): void {
    const { owner } = this
    const ending = { status: 'failed', error, cause: owner.steps.causeOf(error) } as const
    this.ending = ending
    owner.leaveBy({ leave: () => this.failNow(ending), stop: () => error })
  }

  private failNow({ error, cause }: Extract<Ending, { status: 'failed' }>): void {
    const { owner } = this
    if (!owner.mustUndo && owner.dependants.areOver) {
      this.appendFailed(error, cause, [])
      return this.leave('failed')
    }
    const data = owner.encodeFailure(error, 'failing', null)
    owner.writer.append({ kind: 'failing', name: null, meta: failedMeta(cause, []), data })
    owner.unwind()
  }

  /** The journal says that the run fails, but not yet that everything is undone. */
  goOnFailing(error: unknown, cause: number | null): void {
    this.ending ??= { status: 'failed', error, cause }
    this.owner.unwind()
  }

  /** The run will be cancelled, when no attempt runs any more and everything is undone. */
  cancel(reason: string | null): void {
    if (this.ending?.status === 'cancelled' && this.ending.reason !== null) return
    this.ending = { status: 'cancelled', reason }
    this.owner.unwind()
  }

  /** What the body, and attempts that are running, are told of a cancellation. */
  whyCancelled(): HoldfastError {
    const { runId } = this.owner
    const reason = this.ending?.status === 'cancelled' ? this.ending.reason : null
    const told = reason === null ? '' : `: ${reason}`
    return new HoldfastError('RUN_CANCELLED', `Run ${runId} is being cancelled${told}`, { details: { runId, reason } })
  }

  /** Everything is undone, but for these. */
  unwound(notUndone: readonly string[]): void {
    const { ending, owner } = this
    if (ending === null || this.waitsForDependants()) return
    if (ending.status === 'failed') this.appendFailed(ending.error, ending.cause, notUndone)
    else {
      const meta = { reason: ending.reason, notUndone }
      owner.writer.append({ kind: 'cancelled', name: null, meta, data: null })
    }
    this.leave(ending.status)
  }

  /** Children may have to end first: then the run is released until it looks again. */
  private waitsForDependants(): boolean {
    const { dependants, wish, history } = this.owner
    const ms = dependants.lookAgainIn(wish?.at ?? history.cancelling?.at ?? history.failing?.at ?? null)
    if (typeof ms === 'number') {
      dependants.note()
      this.releaseFor(ms)
    }
    return ms !== null
  }

  /**
   * Pauses the run here, if somebody wants that. If they have taken it back meanwhile, the run goes on where it was, or by what
   * is given.
   */
  pauses(otherwise: (() => void) | null = null): boolean {
    const { wish, writer, phase } = this.owner
    if (wish?.kind !== 'pause' || this.ending?.status === 'cancelled') return false
    const { host, runId } = this.owner
    const note = host.payloads.obeyedNote(runId, writer.seq + 1, wish)
    writer.append(pausedEntry({ reason: wish.reason, ...note }), null, true)
    this.insteadOfPause = otherwise ?? (() => this.owner.lookAgain(phase))
    this.send({ status: 'paused', due: null, continues: null, obeys: 'pause' })
    return true
  }

  /** Releases a run whose undo work goes on later. */
  releaseFor(ms: number): void {
    this.leave(this.ending?.status === 'cancelled' ? 'cancelling' : 'pending', { at: null, afterMs: ms })
  }

  drifted(unasked: RecordedEntry): void {
    this.owner.leaveBy({ leave: () => this.pauseForDrift(unasked), stop: null })
  }

  private pauseForDrift(unasked: RecordedEntry): void {
    const { owner } = this
    const found = foundCalls(owner.settler.all())
    owner.leaving()
    // What the changed code said while it was replayed is not what the run should go on with. What its steps did counts.
    if (owner.history.next() !== undefined) owner.writer.discard()
    void owner.placesOf(found).then((places) => {
      if (owner.phase !== 'leaving') return
      const meta = describeDrift(unasked, places)
      const { id, type } = owner.run
      const error = new HoldfastError('DRIFT', meta.message, { details: { ...meta } })
      owner.host.ports.logger.error(pausedLine(owner.run, 'drift', meta.message), { run: id, type, error })
      owner.writer.append({ kind: 'paused', name: null, meta, data: null })
      this.leave('paused')
    })
  }

  /** A payload cannot be read: nothing is begun, repeated or undone until somebody who can read it goes on. */
  unreadable(error: HoldfastError, at: RecordedPlace): void {
    this.unread ??= { error, meta: describeUnreadable(error, at) }
    this.owner.leaveBy({ leave: () => this.pauseUnread(), stop: null })
  }

  get isUnread(): boolean {
    return this.unread !== null
  }

  /** From a cancellation no way leads to a pause: such a run is looked at again, later each time. */
  pauseUnread(): void {
    const { owner, unread, ending } = this
    if (unread === null) throw bug('A run is paused as unreadable, and nothing is', { runId: owner.runId })
    const { error, meta } = unread
    const { id, type } = owner.run
    const isPaused = ending?.status !== 'cancelled'
    const told = isPaused ? pausedLine(owner.run, 'unreadable', meta.note) : `Run ${id} of "${type}": ${meta.note}`
    owner.host.ports.logger.error(told, { run: id, type, error })
    owner.leaving()
    // What the body said while it was replayed it says again then. That the run fails is said once.
    if (ending === null && owner.history.next() !== undefined) owner.writer.discard()
    if (ending?.status === 'cancelled') return this.lookLater(error)
    owner.writer.append({ kind: 'paused', name: null, meta, data: null })
    this.leave('paused')
  }

  /** What it takes to learn how steps are undone is away: the run is looked at again, later each time. */
  undoLater(): void {
    const { owner } = this
    const error = undoIsAway(owner.runId, owner.undoables.missing, owner.resources.hasFailed)
    owner.host.ports.logger.error(error.message, { run: owner.runId, type: owner.run.type })
    owner.leaving()
    this.lookLater(error)
  }

  private lookLater(error: HoldfastError): void {
    const { owner } = this
    const attempt = owner.history.bodyFailures + 1
    const ms = Math.round(owner.host.ports.clock.monotonic() - owner.startedAt)
    const retry = { attempt, ms, delayMs: lookAgainMs(attempt) }
    const data = owner.encodeFailure(error, 'attempt-failed', null)
    owner.writer.append({ kind: 'attempt-failed', name: null, meta: retry, data })
    this.releaseFor(retry.delayMs)
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    this.continuing ??= new Continuing(this)
    return this.continuing.begin(target, input)
  }

  private appendFailed(error: unknown, cause: number | null, notUndone: readonly string[]): void {
    const { owner } = this
    const data = owner.encodeFailure(error, 'failed', null)
    owner.writer.append({ kind: 'failed', name: null, meta: failedMeta(cause, notUndone), data })
  }

  private leave(status: NonNullable<Exit['status']>, due: Due | null = null): void {
    // Of a run that ends, the store need not look for what nobody has read if there is nothing.
    const emptyAt = isTerminal(status) ? this.owner.mailbox.emptyAt : undefined
    this.send({ status, due, continues: null, emptyAt })
  }

  send(exit: Exit): void {
    const { owner } = this
    owner.leaving((exit.obeys ?? null) === null)
    owner.writer.leave(exit).then(
      (answer) => this.answered(exit, answer),
      (error: unknown) => this.refused(exit, error),
    )
  }

  private answered({ status, continues, obeys }: Exit, { released, at }: Acknowledged): void {
    const { owner } = this
    const { writer } = owner
    // Meanwhile the run was lost here: whatever the answer asks for is somebody else's to do.
    if (owner.phase !== 'leaving') return
    const last = writer.lastSent
    if (continues !== null) {
      const input = { ...last, seq: writer.seq, at, transition: null }
      return owner.gone({ kind: 'continued', as: continues, input, inbox: writer.arrived })
    }
    if (status !== null && isTerminal(status)) {
      const reason = this.ending?.status === 'cancelled' ? this.ending.reason : null
      return owner.gone({ kind: 'ended', status, seq: writer.seq, data: last.data, reason })
    }
    if (released) {
      if ((obeys ?? null) !== null) owner.leaving()
      return owner.gone({ kind: 'released' })
    }
    // Somebody wants the run cancelled or paused: it stays until that is done.
    if (owner.wish?.kind === 'cancel') return this.cancel(owner.wish.reason)
    const giveBack = (): void =>
      writer.lose(new Error('The run was not released, and nothing is wanted of it any more.'))
    if (!this.pauses(giveBack)) giveBack()
  }

  private refused({ continues }: Exit, error: unknown): void {
    const { owner } = this
    if (owner.phase !== 'leaving') return
    if (isHoldfastError(error, 'RUN_CANCELLING')) {
      owner.writer.takeBack()
      return this.cancel(reasonOf(owner.wish) ?? reasonOf(error.details['wish'] as Wish | null | undefined))
    }
    if (isHoldfastError(error, 'RUN_RESUMED')) {
      owner.writer.takeBack()
      owner.obey(null)
      return this.insteadOfPause?.()
    }
    const isFailed =
      isHoldfastError(error, 'RUN_TIMEOUT') || (continues !== null && isHoldfastError(error, 'RUN_EXISTS'))
    if (!isFailed) return owner.writer.lose(error)
    owner.writer.takeBack()
    this.fail(error)
  }
}

function failedMeta(cause: number | null, notUndone: readonly string[]): FailedMeta | null {
  return cause === null && notUndone.length === 0 ? null : { cause, notUndone }
}
