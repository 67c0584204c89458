// One run of a function, as it lives in a process: the body runs against its journal.
//
// The frame moves in turns: a turn settles one call of the body and lets every microtask that follows run out before the next.
// Recorded outcomes come first, in journal order; live ones follow in the order of their entries. The first execution settles by
// the same rule, so a replay shows the body exactly the order that it saw before. phase.ts tells where a frame is in its life.
//
// Nothing is ever thrown through the body to suspend it: a parked or abandoned body waits for a promise that never settles.

import type { Claim, Definition, Departure, DepartureListener, Frame, Host } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { isHoldfastError } from '../../core/errors/error.ts'
import type { RetryPolicy } from '../../core/definition/retry.ts'
import { isSameControlRequest, cancelReasonOf, type Run, type ControlRequest } from '../../core/model/run.ts'
import { Alarm } from '../../core/runtime/alarm.ts'
import type { CallSites } from '../replay/call-site.ts'
import { FrameExit, type FrameExitDeps } from './frame-exit.ts'
import { BodyExecution, type FunctionBody } from './body-execution.ts'
import { OutlastedChildren } from '../waits/outlasted-children.ts'
import { Drain, type ExitPlan } from './drain.ts'
import { History, type RecordedEntry, type RecordedPlace } from '../replay/history.ts'
import { FrameCalls } from './frame-calls.ts'
import { Mailbox } from '../waits/mailbox.ts'
import { ReplayProgress } from '../replay/replay-progress.ts'
import { Resources } from '../steps/resources.ts'
import { IdleCalls } from '../waits/idle-calls.ts'
import { isAtCheckpoint, isParkable, rest } from '../waits/park.ts'
import { retrace } from '../replay/retrace.ts'
import { Settler } from '../replay/settler.ts'
import type { Phase } from './phase.ts'
import { StepRunner } from '../steps/step-runner.ts'
import { BodyStop } from './body-stop.ts'
import { Unwinding } from '../steps/unwinding.ts'
import type { UndoRunnerDeps } from '../steps/undo-runner.ts'
import { mustLook, wakeDue } from '../waits/wake.ts'
import { JournalWriter } from '../../core/runtime/journal-writer.ts'
import { silentListener } from '../../core/runtime/silent-host.ts'

export class FunctionFrame extends FrameCalls implements Frame, FrameExitDeps, UndoRunnerDeps {
  readonly host: Host
  readonly policy: RetryPolicy
  readonly history: History
  readonly writer: JournalWriter
  readonly mailbox: Mailbox
  readonly outlastedChildren: OutlastedChildren
  readonly idleCalls = new IdleCalls()
  readonly resources: Resources
  readonly settler: Settler
  readonly steps: StepRunner
  readonly frameExit: FrameExit
  readonly sites: CallSites | null
  readonly startedAt: number
  readonly parallel: number
  phase: Phase = 'new'
  run: Run
  /** The pending control request. */
  controlRequest: ControlRequest | null
  /** The answer of the claim, until the body has seen all of it. */
  claim: Claim | null
  private alarm: Alarm | null = null
  protected readonly body: FunctionBody
  readonly execution: BodyExecution
  readonly replay: ReplayProgress
  private unwinding: Unwinding | null = null
  /** The time for the run was over while it was being parked. */
  private failure: { readonly error: unknown } | null = null
  private readonly bodyStop: BodyStop
  private drain: Drain | null = null
  private isGivingBack = false
  /** Silent before the frame has begun, and after it has left. */
  private listener = silentListener

  constructor(body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null = null) {
    super()
    this.body = body
    this.host = host
    this.claim = claim
    this.run = claim.run
    this.controlRequest = sites === null ? claim.run.controlRequest : null
    this.sites = sites
    this.policy = body.policy
    this.parallel = body.parallel
    this.history = new History(claim.entries)
    this.writer = new JournalWriter(host, claim, this)
    this.mailbox = new Mailbox(this, claim.run.inbox, claim.messages)
    this.outlastedChildren = new OutlastedChildren(this)
    this.steps = new StepRunner(this)
    this.settler = new Settler(this)
    this.bodyStop = new BodyStop(this.settler)
    this.resources = new Resources(this)
    this.replay = new ReplayProgress(this)
    this.frameExit = new FrameExit(this, body.definition)
    this.execution = new BodyExecution(this, body.body)
    this.startedAt = host.ports.clock.monotonic()
  }

  get seq(): number | null {
    return this.phase === 'parked' ? this.writer.seq : null
  }

  get isLeaving(): boolean {
    return this.phase === 'parking' || this.phase === 'leaving'
  }

  get isVacant(): boolean {
    return this.isLeaving && !this.resources.areHeld
  }

  get runId(): string {
    return this.run.id
  }

  start(listener: DepartureListener): void {
    this.listener = listener
    this.phase = 'live'
    this.applyClaim()
    const { failing } = this.history
    if (failing === null || this.frameExit.ending !== null) return this.execution.begin()
    this.undoWork.gather()
    this.execution.beginFailing(failing)
  }

  resume(claim: Claim, listener: DepartureListener): void {
    this.listener = listener
    this.phase = 'live'
    this.run = claim.run
    this.controlRequest = claim.run.controlRequest
    this.writer.renew(claim)
    this.mailbox.resume(claim.run.inbox, this.wakeNames, claim.messages)
    this.applyClaim()
    this.scheduleTurn()
  }

  private applyClaim(): void {
    if (this.run.status !== 'cancelling' && this.controlRequest?.kind !== 'cancel') return
    this.frameExit.cancel(cancelReasonOf(this.controlRequest) ?? this.history.cancelling?.meta.reason ?? null)
  }

  applyControl(next: ControlRequest | null): void {
    const before = this.controlRequest
    // A cancellation cannot be withdrawn, and a repeated request changes nothing.
    if (before?.kind === 'cancel' || isSameControlRequest(next, before)) return
    this.controlRequest = next
    if (next?.kind !== 'cancel') this.scheduleTurn()
    else if (this.isLive || this.phase === 'draining' || this.phase === 'unwinding') this.frameExit.cancel(next.reason)
  }

  fail(error: unknown): void {
    // One that is about to end otherwise is out of time, too; one that undoes has all the time that it needs.
    const isOpen = this.phase === 'live' || (this.phase === 'draining' && this.frameExit.ending === null)
    if (isOpen) return this.frameExit.fail(error)
    // A parked run has no holder.
    if (this.phase === 'parking') this.failure = { error }
  }

  giveBack(): void {
    this.isGivingBack = true
    this.scheduleTurn()
  }

  abandon(): void {
    if (this.phase === 'live' || this.phase === 'draining') this.steps.abandon()
  }

  get arrived(): number | null {
    return this.idleCalls.wantsMessages ? this.writer.arrived : null
  }

  get wakeNames(): readonly string[] | null {
    return this.mailbox.namesToRead(this.idleCalls.names)
  }

  messageArrived(inbox: number | null): void {
    if (inbox === null) this.mailbox.markStale()
    else this.writer.heard(inbox)
    if (this.isLive && this.idleCalls.wantsMessages) this.scheduleTurn()
  }

  abort(reason: unknown): void {
    if (this.phase === 'new' || this.phase === 'parked') this.phase = 'gone'
    else this.writer.lose(reason)
  }

  get isLive(): boolean {
    return this.phase === 'live' || this.phase === 'gathering'
  }

  get isWriting(): boolean {
    return this.phase === 'live'
  }

  get isHalting(): boolean {
    return this.isGivingBack || this.controlRequest?.kind === 'pause' || this.sites !== null
  }

  get isEnding(): boolean {
    return this.frameExit.ending !== null
  }

  get isCancelled(): boolean {
    // A body that is replayed for its undo work did not know of it then.
    return this.frameExit.ending?.status === 'cancelled' && this.phase !== 'gathering'
  }

  get abortSignal(): AbortSignal {
    return this.bodyStop.abortSignal
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    return this.frameExit.continueAs(target, input)
  }

  /** The body went on beside its wait: this frame has missed that, so the run can only go on by a replay. */
  spoil(): void {
    if (this.phase === 'parked') this.phase = 'gone'
    else if (this.phase === 'parking') this.writer.lose(new Error('The body went on while its run was being parked.'))
  }

  scheduleTurn(): void {
    this.replay.goesOn()
    if (this.phase === 'gathering') this.unwinding?.bodyGoesOn()
    if (this.hasTurn) return
    this.hasTurn = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.hasTurn = false
    if (this.isLive) this.beginMade()
    if (this.phase === 'draining') return this.drain?.proceed()
    if (this.phase === 'unwinding') return this.unwinding?.proceed()
    if (!this.isLive) return
    if (this.resources.proceed()) return this.flush()
    // Outcomes that come by the hundreds are sent while the body still sees them one by one.
    if (this.settleNext()) return this.writer.isCrowded ? this.flush() : undefined
    if (this.phase === 'gathering' && !this.undoWork.mayCollect) return this.unwind()
    if (!this.replay.isOver) return this.givesBack() ? undefined : this.replay.wait()
    if (this.afterSteps !== null && this.settler.openSteps === 0) return this.stepsEnded(this.afterSteps)
    if (this.isHalting) return this.haltHere()
    this.steps.beginHeldBack()
    if (this.idleCalls.size > 0) {
      if (mustLook(this)) return this.flush()
      wakeDue(this)
      // The payload of a message has to be fetched first, or cannot be read.
      if (!this.isLive || this.mailbox.isReading) return this.flush()
      // A step that begins may end at once and move the body on: then the next turn has it all.
      if (this.hasTurn || this.settleNext()) return
      if (isParkable(this)) return rest(this)
      this.alarm ??= new Alarm(this)
      this.alarm.set(this.idleCalls.nextDue())
    }
    this.flush()
  }

  private flush(): void {
    if (this.replay.isOver) this.writer.flush()
  }

  protected settleNext(): boolean {
    return this.isLive && !this.resources.isBusy && this.settler.settleNext()
  }

  private haltHere(): void {
    if (!isAtCheckpoint(this) || !(this.frameExit.pauses() || this.givesBack())) this.flush()
  }

  givesBack(): boolean {
    if (!this.isGivingBack) return false
    const leave = (): void => {
      if (this.isLive || this.phase === 'unwinding') this.gone({ kind: 'given-back' })
    }
    // Outcomes that the body has not seen yet are shown by the next holder, and until then nothing new counts.
    if (this.replay.isOver) this.writer.barrier(leave)
    else leave()
    return true
  }

  enterPhase(phase: Phase): void {
    this.phase = phase
  }

  parked(): void {
    const { resources } = this
    // A resource lives no longer than a stay in memory, so the body that holds one must be replayed to get a fresh one.
    this.phase = resources.areHeld ? 'gone' : 'parked'
    this.alarm?.set(null)
    this.claim = null
    this.history.forgetSeen()
    this.departAs({ kind: 'parked' })
  }

  lookAgain(phase: Phase = 'live'): void {
    if (this.warned) return this.writer.lose(new Error('The body went on while its run was leaving.'))
    this.phase = phase
    if (this.controlRequest?.kind === 'cancel') return this.frameExit.cancel(this.controlRequest.reason)
    if (this.failure !== null) return this.frameExit.fail(this.failure.error)
    this.scheduleTurn()
  }

  stuckAt(unrequested: RecordedEntry): void {
    if (this.phase === 'live') this.frameExit.drifted(unrequested)
    else this.undoWork.hasCollectedAll()
  }

  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]> {
    const { claim } = this
    if (this.sites !== null) return new Promise(() => undefined)
    if (claim === null) return Promise.resolve(calls)
    return retrace(this.host, calls, (host, sites) => new FunctionFrame(this.body, host, claim, sites))
  }

  unreadable(error: unknown, at: RecordedPlace | null): void {
    if (!this.isLive && this.phase !== 'unwinding') return
    // Another worker may be able to fetch it, or this one later.
    if (at === null || !isHoldfastError(error, 'PAYLOAD_CORRUPT')) return this.writer.lose(error)
    this.execution.hasEnded = true
    this.frameExit.unreadable(error, at)
  }

  leaveBy(way: ExitPlan): void {
    this.alarm?.set(null)
    this.drain ??= new Drain(this)
    this.drain.begin(way)
  }

  abortBody(reason: unknown): void {
    this.bodyStop.abortBody(reason)
  }

  unwind(): void {
    this.alarm?.set(null)
    this.undoWork.begin()
  }

  private get undoWork(): Unwinding {
    return (this.unwinding ??= new Unwinding(this))
  }

  leaving(isCertain = true): void {
    this.phase = 'leaving'
    if (!isCertain) return
    this.stop(() => new Error(`The body of run ${this.run.id} has ended: nothing waits for this step any more.`))
  }

  gone(departure: Departure): void {
    this.phase = 'gone'
    this.departAs(departure)
  }

  private departAs(departure: Departure): void {
    if (this.resources.areHeld) void this.resources.releaseAll().then(() => this.depart(departure))
    else this.depart(departure)
  }

  private depart(departure: Departure): void {
    const { listener } = this
    this.listener = silentListener
    // Not at once: the frame is still in the middle of its own work.
    void Promise.resolve(departure).then((how) => listener.departed(how))
  }

  lost(reason: unknown): void {
    if (this.phase === 'gone') return
    this.phase = 'gone'
    this.stop(() => reason)
    void this.resources.releaseAll().then(() => this.depart({ kind: 'lost', reason }))
  }

  private stop(reason: () => unknown): void {
    this.alarm?.set(null)
    this.drain?.stop()
    this.replay.goesOn()
    this.unwinding?.stop(reason)
    this.bodyStop.stop(reason)
  }
}
