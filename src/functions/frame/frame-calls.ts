// The calls of the body as they reach its frame: each is entered, takes part in the order in which calls settle, and is opened
// if it is a wait. It also keeps what calls leave behind: how their steps are undone, which changes took effect, which waits
// were made.

import { stepAround, stepMark } from '../../core/runtime/attempt.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import type { CallPlaces, CallSites } from '../replay/call-site.ts'
import type { Call, CallOutcome, StepCall, WaitCall } from './body-call.ts'
import { foundCalls } from '../replay/drift.ts'
import type { BodyExecution, FunctionBody } from './body-execution.ts'
import type { History } from '../replay/history.ts'
import { JournalText } from '../replay/journal-text.ts'
import { MadeWaits } from '../waits/made-waits.ts'
import { warnOfForgotten, warnOfStrayCode, warnOfSwallowed, warnOfUnbegun } from '../api/misuse.ts'
import { Patches } from '../api/patches.ts'
import type { UnhandledFailure } from '../api/call-promise.ts'
import type { ReplayProgress } from '../replay/replay-progress.ts'
import type { IdleCalls } from '../waits/idle-calls.ts'
import { isEndName } from '../api/call-identity.ts'
import type { Settler } from '../replay/settler.ts'
import type { StepRunner } from '../steps/step-runner.ts'
import { Undoables } from '../steps/undoables.ts'
import type { Wait } from '../waits/wait.ts'

const none: readonly never[] = []

/** Of so many steps a refusal tells, if it cannot be known which of them asked. */
const mostSuspects = 3

export abstract class FrameCalls extends JournalText {
  abstract readonly history: History
  abstract readonly settler: Settler
  abstract readonly steps: StepRunner
  abstract readonly idleCalls: IdleCalls
  abstract readonly sites: CallSites | null
  abstract readonly isWriting: boolean
  abstract readonly isHalting: boolean
  abstract readonly isLive: boolean
  abstract readonly isCancelled: boolean
  protected abstract readonly body: FunctionBody
  abstract readonly execution: BodyExecution
  abstract readonly replay: ReplayProgress
  hasProgressed = false
  performing: string | null = null
  preparing = 0
  /** A turn is about to come. */
  protected hasTurn = false
  protected madeWaits: MadeWaits | null = null
  /** The code that is running was found to be outside of steps. */
  private isOutside = false
  /** Code of the body went on when it could not any more, and that was logged. */
  protected warned = false
  /** Called when the steps have ended that a body which has returned did not await. */
  protected afterSteps: (() => void) | null = null
  /** Calls that were prepared while nothing could be written. */
  private ready: (() => void)[] | null = null
  /** Called when no child is being prepared any more. */
  private afterPreparing: (() => void) | null = null
  /** Waits that the body has made and not awaited, of those that begin when they are. */
  private offers: Map<string, FoundCall> | null = null
  /** Calls that failed before the body asked for their outcome. */
  private failed: UnhandledFailure[] | null = null
  /** Steps that succeeded before the body asked for their results. Kept only in a test that watches bodies: it would grow. */
  private unread: StepCall[] | null = null
  private undoList: Undoables | null = null
  private patchList: Patches | null = null

  abstract scheduleTurn(): void
  /** The body went on beside its wait. */
  abstract spoil(): void

  /** Settles the next call whose turn has come. False if there is none. */
  protected abstract settleNext(): boolean

  admits(): boolean {
    if (this.isLive) return true
    if (this.isCancelled) return false
    this.spoil()
    if (!this.warned) warnOfStrayCode(this.host, this.run)
    this.warned = true
    return false
  }

  get hasBodyEnded(): boolean {
    return this.execution.hasEnded
  }

  get places(): CallPlaces {
    return this.body.places
  }

  get inside(): string | null {
    return this.performing ?? stepAround(this) ?? (this.steps.isBusy ? this.insideUnfollowed() : null)
  }

  /** The same for steps without an async scope. A stack trace is expensive: synchronous code of the body is examined once. */
  private insideUnfollowed(): string | null {
    const { scopes } = this.host.ports
    if (this.isOutside || scopes?.isAwaitedBy === undefined) return null
    if (scopes.isAwaitedBy(stepMark)) {
      const open = Array.from(this.settler.steps()).filter(({ attempt }) => attempt?.isOpen === true)
      return open
        .map(({ name }) => name)
        .slice(0, mostSuspects)
        .join('" or "')
    }
    this.isOutside = true
    void Promise.resolve().then(() => (this.isOutside = false))
    return null
  }

  get undoables(): Undoables {
    this.undoList ??= new Undoables(this.history)
    return this.undoList
  }

  get mustUndo(): boolean {
    const { toUndo, begun } = this.history
    return toUndo.size > 0 || begun.size > 0 || (this.undoList !== null && !this.undoList.isEmpty)
  }

  patched(id: string): boolean {
    this.patchList ??= new Patches(this)
    return this.patchList.has(id)
  }

  private enter(call: Call): void {
    this.settler.enter(call)
    this.sites?.entered(call)
    this.scheduleTurn()
  }

  enterStep(call: StepCall): void {
    // Code that goes on beside a body that has ended begins nothing.
    if (this.execution.hasEnded) return
    this.enter(call)
    if (call.undo !== undefined && this.history.mayUndo) this.undoables.recall(call)
    if (this.history.has('step', call.name)) return
    this.steps.enter(call, this.isWriting && this.replay.isOver && !this.isHalting)
  }

  enterWait(call: WaitCall): void {
    call.isEntered = true
    this.enter(call)
    if (call.conditions.length > 0 && !this.history.has('wait', call.name)) this.openWait(call)
  }

  registered(call: WaitCall): void {
    this.scheduleTurn()
    this.writer.whenDurable((at) => {
      call.registeredAt = at
      this.idleCalls.registered()
      this.scheduleTurn()
    })
  }

  openWait(call: WaitCall): void {
    this.idleCalls.add(call)
    this.scheduleTurn()
  }

  made(wait: Wait<unknown>): void {
    this.madeWaits ??= new MadeWaits()
    this.madeWaits.add(wait)
    this.scheduleTurn()
  }

  get isMaking(): boolean {
    return this.preparing > 0 || this.madeWaits?.hasNew === true
  }

  prepared(begin: () => void): void {
    // A pause that is on its way may be taken back.
    if (!this.isWriting) return void (this.ready ??= []).push(begin)
    this.preparing -= 1
    begin()
    this.scheduleTurn()
    const next = this.afterPreparing
    if (this.preparing > 0 || next === null) return
    this.afterPreparing = null
    next()
  }

  /** The turn is over: the waits that the body has made in it begin, and the calls that were prepared before. */
  protected beginMade(): void {
    this.madeWaits?.begin()
    const { ready } = this
    if (ready === null || !this.isWriting) return
    this.ready = null
    for (const begin of ready) this.prepared(begin)
  }

  whenBegun(next: () => void): void {
    if (this.preparing === 0) return next()
    this.afterPreparing = next
  }

  offered(call: FoundCall): void {
    this.offers ??= new Map()
    this.offers.set(call.name, call)
  }

  taken(name: string): void {
    this.offers?.delete(name)
    // A frame may rest for a long time.
    if (this.offers?.size === 0) this.offers = null
  }

  markReady(call: Call, outcome: CallOutcome): void {
    if (!outcome.failed) this.hasProgressed = true
    this.settler.markReady(call, outcome)
    if (!this.hasTurn && !this.settleNext()) this.scheduleTurn()
  }

  bodyEnded(): void {
    this.madeWaits?.begin()
  }

  /** The body has returned: warns of its calls that were never awaited. */
  warnOfForgotten(): void {
    const offers = this.offers?.size ?? 0
    if (this.settler.size === 0 && this.madeWaits === null && offers === 0 && this.unread === null) return
    // The losers of a Promise.race were awaited, too. A branch awaits its own calls, and may itself be forgotten.
    const isForgotten = ({ promise, name }: Call): boolean => !promise.isHeard || name.includes('/')
    const unheard = Array.from(this.settler.all()).filter(isForgotten)
    for (const call of this.unread ?? none) if (!call.promise.isHeard) unheard.push(call)
    const calls = foundCalls([...unheard, ...(this.madeWaits?.unawaited ?? none)])
    const forgotten = [...calls, ...(this.offers?.values() ?? none)].filter(({ name }) => !isEndName(name))
    for (const { failure } of this.madeWaits?.unawaited ?? none) {
      if (failure !== null) warnOfUnbegun(this.host, this.run, failure.error)
    }
    if (forgotten.length > 0) warnOfForgotten(this.host, this.run, this.body.places.fill(forgotten))
  }

  unheard(failure: UnhandledFailure): void {
    this.failed ??= []
    this.failed.push(failure)
  }

  succeededUnheard(call: Call): void {
    if (call.kind === 'step' && this.host.ports.bodies !== undefined) (this.unread ??= []).push(call)
  }

  failedUnheard(call: Call, error: unknown): void {
    if (isEndName(call.name)) return
    const { promise, kind, name, place } = call
    this.unheard({ promise, what: `${kind} "${name}"`, place: place ?? this.body.places.placeOf(call), error })
  }

  /** The body has returned, and its steps have ended: warns of calls that failed without being awaited. */
  warnOfSwallowed(): void {
    const swallowed = this.failed?.filter(({ promise }) => !promise.isHeard) ?? none
    this.failed = null
    if (swallowed.length > 0) warnOfSwallowed(this.host, this.run, swallowed)
  }

  whenStepsEnd(next: () => void): void {
    if (this.settler.openSteps === 0) return next()
    this.afterSteps = next
    this.scheduleTurn()
  }

  protected stepsEnded(next: () => void): void {
    this.afterSteps = null
    next()
  }
}
