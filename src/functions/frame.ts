// One run of a function, as it lives in a process: the body runs against its journal.
//
// The frame's heartbeat is the turn: it settles one call of the body, lets every microtask that follows from that run
// out, and only then settles the next. Recorded outcomes come first and in journal order; live ones follow in the order
// in which their entries were appended. Since the first execution settles by the same rule, a replay shows the body
// exactly the order that it saw before.
//
// Where it is in its life, and what moves it on, is told in phase.ts.
//
// Nothing is ever thrown through the body to suspend it: a parked or abandoned body just waits for a promise that does
// not settle, and is collected with its frame.

import type { Claim, Definition, Departure, Frame, Host } from '../core/definition.ts'
import type { FoundCall } from '../core/entry.ts'
import { isHoldfastError } from '../core/error.ts'
import type { RetryPolicy } from '../core/retry.ts'
import { isSameWish, reasonOf, type Run, type Wish } from '../core/run.ts'
import { Alarm } from '../core/alarm.ts'
import type { CallSites } from './call-site.ts'
import { Conclusion, type ConclusionOwner } from './conclusion.ts'
import { Execution, type FunctionBody } from './execution.ts'
import { Dependants } from './dependants.ts'
import { Drain, type WayOut } from './drain.ts'
import { Gathering } from './gathering.ts'
import { History, type RecordedEntry, type RecordedPlace } from './history.ts'
import { FrameCalls } from './frame-calls.ts'
import { Mailbox } from './mailbox.ts'
import { Replay } from './replay.ts'
import { Resources } from './resources.ts'
import { Resting } from './resting.ts'
import { isAtCheckpoint, isResting, rest } from './rest.ts'
import { retrace } from './retracing.ts'
import { Settler } from './settler.ts'
import type { Phase } from './phase.ts'
import { StepRunner } from './step-runner.ts'
import { Stopping } from './stopping.ts'
import { Unwinding, type UnwindingOwner } from './unwinding.ts'
import { mustLook, wakeDue } from './waking.ts'
import { Writer } from '../core/writer.ts'

/** Who hears of the departure of a frame that has not begun. */
const nobodyWaits = (_departure: Departure): void => undefined

export class FunctionFrame extends FrameCalls implements Frame, ConclusionOwner, UnwindingOwner {
  readonly host: Host
  readonly policy: RetryPolicy
  readonly history: History
  readonly writer: Writer
  readonly mailbox: Mailbox
  readonly dependants: Dependants
  readonly resting = new Resting()
  readonly resources: Resources
  readonly settler: Settler
  readonly steps: StepRunner
  readonly conclusion: Conclusion
  readonly sites: CallSites | null
  readonly startedAt: number
  readonly parallel: number
  phase: Phase = 'new'
  busy = 0
  run: Run
  /** What somebody wants of the run. */
  wish: Wish | null
  /** What the run was claimed with, until all of it was shown to the body. */
  claim: Claim | null
  private alarm: Alarm | null = null
  protected readonly body: FunctionBody
  protected readonly execution: Execution
  protected readonly replay: Replay
  private unwinding: Unwinding | null = null
  /** The time for the run was over while it was being parked. */
  private failure: { readonly error: unknown } | null = null
  private readonly stopping: Stopping
  private drain: Drain | null = null
  private gathering: Gathering | null = null
  private isGivingBack = false
  private depart = nobodyWaits

  constructor(body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null = null) {
    super()
    this.body = body
    this.host = host
    this.claim = claim
    this.run = claim.run
    this.wish = sites === null ? claim.run.wish : null
    this.sites = sites
    this.policy = body.policy
    this.parallel = body.parallel
    this.history = new History(claim.entries)
    this.writer = new Writer(host, claim, this)
    this.mailbox = new Mailbox(this, claim.run.inbox, claim.messages)
    this.dependants = new Dependants(this)
    this.steps = new StepRunner(this)
    this.settler = new Settler(this)
    this.stopping = new Stopping(this.settler)
    this.resources = new Resources(this)
    this.replay = new Replay(this)
    this.conclusion = new Conclusion(this, body.definition)
    this.execution = new Execution(this, body.body)
    this.startedAt = host.ports.clock.monotonic()
  }

  get seq(): number | null {
    return this.phase === 'parked' ? this.writer.seq : null
  }

  get isLeaving(): boolean {
    return this.phase === 'parking' || this.phase === 'leaving'
  }

  get runId(): string {
    return this.run.id
  }

  start(): Promise<Departure> {
    return new Promise((resolve) => {
      this.depart = resolve
      this.phase = 'live'
      this.obeyClaim()
      const { failing } = this.history
      if (failing === null || this.conclusion.ending !== null) return this.execution.begin()
      this.gather()
      this.execution.beginFailing(failing)
    })
  }

  resume(claim: Claim): Promise<Departure> {
    this.phase = 'live'
    this.run = claim.run
    this.wish = claim.run.wish
    this.writer.renew(claim)
    this.mailbox.resume(claim.run.inbox, this.wants, claim.messages)
    return new Promise((resolve) => {
      this.depart = resolve
      this.obeyClaim()
      this.stir()
    })
  }

  private obeyClaim(): void {
    if (this.run.status !== 'cancelling' && this.wish?.kind !== 'cancel') return
    this.conclusion.cancel(reasonOf(this.wish) ?? this.history.cancelling?.meta.reason ?? null)
  }

  obey(wish: Wish | null): void {
    const before = this.wish
    // From a cancellation no way leads back, and what was said before is no news.
    if (before?.kind === 'cancel' || isSameWish(wish, before)) return
    this.wish = wish
    if (wish?.kind !== 'cancel') this.stir()
    else if (this.isLive || this.phase === 'draining' || this.phase === 'unwinding') this.conclusion.cancel(wish.reason)
  }

  fail(error: unknown): void {
    // One that is about to end otherwise is out of time, too; one that undoes has all the time that it needs.
    const isOpen = this.phase === 'live' || (this.phase === 'draining' && this.conclusion.ending === null)
    if (isOpen) return this.conclusion.fail(error)
    // A run that is parked is nobody's.
    if (this.phase === 'parking') this.failure = { error }
  }

  giveBack(): void {
    this.isGivingBack = true
    this.stir()
  }

  abandon(): void {
    if (this.phase === 'live' || this.phase === 'draining') this.steps.abandon()
  }

  get arrived(): number | null {
    return this.resting.wantsMail ? this.writer.arrived : null
  }

  get wants(): readonly string[] | null {
    return this.mailbox.asked(this.resting.names)
  }

  mail(inbox: number | null): void {
    if (inbox === null) this.mailbox.doubt()
    else this.writer.heard(inbox)
    if (this.isLive && this.resting.wantsMail) this.stir()
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
    return this.isGivingBack || this.wish?.kind === 'pause' || this.sites !== null
  }

  get isEnding(): boolean {
    return this.conclusion.ending !== null
  }

  get isCancelled(): boolean {
    // A body that is replayed for its undo work did not know of it then.
    return this.conclusion.ending?.status === 'cancelled' && this.phase !== 'gathering'
  }

  get abortSignal(): AbortSignal {
    return this.stopping.abortSignal
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    return this.conclusion.continueAs(target, input)
  }

  /** The body went on beside its wait: this frame has missed that, so the run can only go on by a replay. */
  spoil(): void {
    if (this.phase === 'parked') this.phase = 'gone'
    else if (this.phase === 'parking') this.writer.lose(new Error('The body went on while its run was being parked.'))
  }

  stir(): void {
    this.replay.goesOn()
    if (this.phase === 'gathering') this.gathering?.goesOn()
    if (this.stirred) return
    this.stirred = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.stirred = false
    if (this.isLive) this.beginMade()
    if (this.phase === 'draining') return this.drain?.proceed()
    if (this.phase === 'unwinding') return this.unwinding?.proceed()
    if (!this.isLive) return
    if (this.resources.proceed()) return this.flush()
    // Outcomes that come by the hundreds are sent while the body still sees them one by one.
    if (this.settleNext()) return this.writer.isCrowded ? this.flush() : undefined
    if (this.phase === 'gathering' && !this.mayTell) return this.unwind()
    if (!this.replay.isOver) return this.givesBack() ? undefined : this.replay.wait()
    if (this.afterSteps !== null && this.settler.openSteps === 0) return this.stepsEnded(this.afterSteps)
    if (this.isHalting) return this.haltHere()
    this.steps.beginHeldBack()
    if (this.resting.size > 0) {
      if (mustLook(this)) return this.flush()
      wakeDue(this)
      // What a message brought has to be fetched first, or cannot be read.
      if (!this.isLive || this.mailbox.isReading) return this.flush()
      // A step that begins may end at once and move the body on: then the next turn has it all.
      if (this.stirred || this.settleNext()) return
      if (isResting(this)) return rest(this)
      this.alarm ??= new Alarm(this)
      this.alarm.set(this.resting.nextDue())
    }
    this.flush()
  }

  /** The body, as it is replayed, may yet tell how a step is undone: it has not come to where its journal ends. */
  private get mayTell(): boolean {
    const { hasBegun, hasEnded } = this.execution
    return this.isLive && !hasEnded && !(hasBegun && this.replay.isOver) && !this.undoables.isComplete
  }

  private flush(): void {
    if (this.replay.isOver) this.writer.flush()
  }

  protected settleNext(): boolean {
    return this.isLive && !this.resources.isBusy && this.settler.settleNext()
  }

  private haltHere(): void {
    if (!isAtCheckpoint(this) || !(this.conclusion.pauses() || this.givesBack())) this.flush()
  }

  givesBack(): boolean {
    if (!this.isGivingBack) return false
    const leave = (): void => {
      if (this.isLive || this.phase === 'unwinding') this.gone({ kind: 'given-back' })
    }
    // What was not shown yet will be shown elsewhere, and until then nothing new counts.
    if (this.replay.isOver) this.writer.barrier(leave)
    else leave()
    return true
  }

  parked(): void {
    this.alarm?.set(null)
    this.claim = null
    this.history.forgetSeen()
    this.depart({ kind: 'parked' })
  }

  lookAgain(phase: Phase = 'live'): void {
    if (this.warned) return this.writer.lose(new Error('The body went on while its run was leaving.'))
    this.phase = phase
    if (this.wish?.kind === 'cancel') return this.conclusion.cancel(this.wish.reason)
    if (this.failure !== null) return this.conclusion.fail(this.failure.error)
    this.stir()
  }

  stuckAt(unasked: RecordedEntry): void {
    if (this.phase === 'live') this.conclusion.drifted(unasked)
    else this.hasToldAll()
  }

  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]> {
    const { claim } = this
    if (this.sites !== null) return new Promise(() => undefined)
    if (claim === null) return Promise.resolve(calls)
    return retrace(this.host, calls, (host, sites) => new FunctionFrame(this.body, host, claim, sites))
  }

  unreadable(error: unknown, at: RecordedPlace | null): void {
    if (!this.isLive && this.phase !== 'unwinding') return
    // Where it lies it can be fetched by others, or later.
    if (at === null || !isHoldfastError(error, 'PAYLOAD_CORRUPT')) return this.writer.lose(error)
    this.execution.hasEnded = true
    this.conclusion.unreadable(error, at)
  }

  leaveBy(way: WayOut): void {
    this.alarm?.set(null)
    this.drain ??= new Drain(this)
    this.drain.begin(way)
  }

  tell(reason: unknown): void {
    this.stopping.tell(reason)
  }

  unwind(): void {
    this.alarm?.set(null)
    if (this.mayTell) return this.gather()
    const stop = this.isCancelled ? () => this.conclusion.whyCancelled() : null
    // A body that could not be shown its journal has not told how all of its steps are undone.
    const { conclusion } = this
    const isKept = this.gathering?.isKept === true
    const go = isKept ? () => conclusion.undoLater() : () => this.beginUnwinding()
    this.leaveBy({ leave: conclusion.isUnread ? () => conclusion.pauseUnread() : go, stop })
  }

  private gather(): void {
    this.phase = 'gathering'
    this.gathering ??= new Gathering(this)
    this.stir()
  }

  hasToldAll(): void {
    this.execution.hasEnded = true
    this.unwind()
  }

  /** Nothing is under way here. What was when an earlier process died is attempted once more, so that its result is known. */
  private beginUnwinding(): void {
    if (!this.undoables.hasUnresolved) {
      this.phase = 'unwinding'
      this.unwinding ??= new Unwinding(this)
      return this.stir()
    }
    if (this.conclusion.pauses(() => this.beginUnwinding())) return
    this.phase = 'draining'
    this.writer.barrier(() => {
      if (this.phase !== 'draining') return
      for (const call of this.undoables.takeUnresolved()) this.steps.attemptAgain(call)
      this.leaveBy({ leave: () => this.beginUnwinding(), stop: null, isBounded: true })
    })
  }

  leaving(isCertain = true): void {
    this.phase = 'leaving'
    if (!isCertain) return
    this.stop(() => new Error(`The body of run ${this.run.id} has ended: nothing waits for this step any more.`))
  }

  gone(departure: Departure): void {
    this.phase = 'gone'
    if (this.resources.areHeld) void this.resources.releaseAll().then(() => this.depart(departure))
    else this.depart(departure)
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
    this.gathering?.stop()
    this.replay.goesOn()
    this.unwinding?.stop(reason)
    this.stopping.stop(reason)
  }
}
