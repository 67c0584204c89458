// One run of a function, as it lives in a process: the body runs against its journal.
//
// The frame's heartbeat is the turn: it settles one call of the body, lets every microtask that follows from that run
// out, and only then settles the next. Recorded outcomes come first and in journal order; live ones follow in the order
// in which their entries were appended. Since the first execution settles by the same rule, a replay shows the body
// exactly the order that it saw before.
//
//   new       → live       `start`: the body is called with the input
//   new       → gathering  `start` of a run that is being cancelled or fails: its body is replayed, and begins nothing, so
//                          that it tells how its steps are undone
//   live      → parking    nothing but time or a message can move it on: a commit to `waiting` is on its way
//   parking   → parked     that commit was answered; the lease is gone
//   parking   → live       a message or a wish had arrived: look again
//   parked    → live       `resume`, under a new lease, with nothing having happened to the journal in between
//   live      → gathering  a cancellation, or an end of the time for it, before everything recorded was shown
//   live      → unwinding  a cancellation, or a failure with something to undo: no call settles any more
//   gathering → unwinding  the body has told all, or can tell no more
//   unwinding → leaving    no attempt runs, and everything is undone
//   live      → leaving    the body returned or threw, code and journal disagree, somebody wants a pause, or the run begins
//                          anew: the last commit is on its way
//   leaving   → gone       that commit was answered
//   leaving   → unwinding  it was refused, because the run is being cancelled
//   any       → gone       the lease or the journal went elsewhere, or `abort`, or the body spoiled its parked frame
//
// Nothing is ever thrown through the body to suspend it: a parked or abandoned body just waits for a promise that does
// not settle, and is collected with its frame.

import type { Claim, Definition, Departure, Frame, Host } from '../core/definition.ts'
import type { FoundCall } from '../core/entry.ts'
import type { RetryPolicy } from '../core/retry.ts'
import type { Run, Wish } from '../core/run.ts'
import { Alarm } from '../core/alarm.ts'
import type { CallSites } from './call-site.ts'
import type { Call, CallOutcome, StepCall, WaitCall } from './call.ts'
import { Conclusion, reasonOf, type ConclusionOwner } from './conclusion.ts'
import { Execution, type FunctionBody } from './execution.ts'
import { Dependants } from './dependants.ts'
import { History, type RecordedEntry } from './history.ts'
import { JournalText } from './journal-text.ts'
import { Mailbox } from './mailbox.ts'
import { warnOfStrayCode } from './misuse.ts'
import { Patches } from './patches.ts'
import { Replay } from './replay.ts'
import { Resources } from './resources.ts'
import { Resting } from './resting.ts'
import { isAtCheckpoint, isResting, rest } from './rest.ts'
import { retrace } from './retracing.ts'
import { Settler } from './settler.ts'
import type { Phase } from './phase.ts'
import { StepRunner } from './step-runner.ts'
import { Stopping } from './stopping.ts'
import { Undoables } from './undoables.ts'
import { Unwinding, type UnwindingOwner } from './unwinding.ts'
import { mustLook, wakeDue } from './waking.ts'
import { Writer } from '../core/writer.ts'

export class FunctionFrame extends JournalText implements Frame, ConclusionOwner, UnwindingOwner {
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
  phase: Phase = 'new'
  busy = 0
  performing: string | null = null
  run: Run
  /** What somebody wants of the run. */
  wish: Wish | null
  private readonly body: FunctionBody
  private readonly claim: Claim
  private readonly alarm: Alarm
  private readonly execution: Execution
  private readonly replay: Replay
  private stirred = false
  private warned = false
  private undoList: Undoables | null = null
  private patchList: Patches | null = null
  private unwinding: Unwinding | null = null
  /** The time for the run was over while it was being parked. */
  private failure: { readonly error: unknown } | null = null
  private readonly stopping: Stopping
  private depart: (departure: Departure) => void = () => undefined

  constructor(body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null = null) {
    super()
    this.body = body
    this.host = host
    this.claim = claim
    this.run = claim.run
    this.wish = sites === null ? claim.run.wish : null
    this.sites = sites
    this.policy = body.policy
    this.history = new History(claim.entries)
    this.writer = new Writer(host, claim, this)
    this.mailbox = new Mailbox(this, claim.run.inbox, claim.messages)
    this.dependants = new Dependants(this)
    this.steps = new StepRunner(this)
    this.settler = new Settler(this)
    this.stopping = new Stopping(this.settler)
    this.resources = new Resources(this)
    this.alarm = new Alarm(this)
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
      this.phase = 'gathering'
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
    // From a cancellation no way leads back.
    if (wish === before || before?.kind === 'cancel') return
    this.wish = wish
    if (wish?.kind !== 'cancel') this.stir()
    else if (this.isLive || this.phase === 'unwinding') this.conclusion.cancel(wish.reason)
  }

  fail(error: unknown): void {
    if (this.phase === 'live') {
      this.stop(() => error)
      return this.conclusion.fail(error)
    }
    // A run that is parked is nobody's, and one that undoes has all the time that it needs.
    if (this.phase === 'parking') this.failure = { error }
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

  get isPausing(): boolean {
    return this.wish?.kind === 'pause' || this.sites !== null
  }

  get isCancelled(): boolean {
    // A body that is replayed for its undo work did not know of it then.
    return this.conclusion.ending?.status === 'cancelled' && this.phase !== 'gathering'
  }

  get undoables(): Undoables {
    this.undoList ??= new Undoables(this.history)
    return this.undoList
  }

  get mustUndo(): boolean {
    return this.history.toUndo.size > 0 || (this.undoList !== null && !this.undoList.isEmpty)
  }

  get abortSignal(): AbortSignal {
    return this.stopping.abortSignal
  }

  patched(id: string): boolean {
    this.patchList ??= new Patches(this)
    return this.patchList.has(id)
  }

  continueAs(target: Definition | null, input: unknown): Promise<never> {
    return this.conclusion.continueAs(target, input)
  }

  admits(): boolean {
    if (this.isLive) return true
    if (this.isCancelled) return false
    this.spoil()
    if (!this.warned) warnOfStrayCode(this.host, this.run)
    this.warned = true
    return false
  }

  /** The body went on beside its wait: this frame has missed that, so the run can only go on by a replay. */
  spoil(): void {
    if (this.phase === 'parked') this.phase = 'gone'
    else if (this.phase === 'parking') this.writer.lose(new Error('The body went on while its run was being parked.'))
  }

  private enter(call: Call): void {
    this.settler.enter(call)
    this.sites?.entered(call)
    this.stir()
  }

  enterStep(call: StepCall): void {
    this.enter(call)
    if (!this.history.has('step', call.name))
      this.steps.enter(call, this.isWriting && this.replay.isOver && !this.isPausing)
    else if (call.undo !== undefined) this.undoables.recall(call)
  }

  enterWait(call: WaitCall): void {
    this.enter(call)
    if (call.conditions.length > 0 && !this.history.has('wait', call.name)) this.openWait(call)
  }

  openWait(call: WaitCall): void {
    this.resting.add(call)
    this.stir()
    if (call.registeredAt !== null) return
    this.writer.whenDurable((at) => {
      call.registeredAt = at
      this.resting.registered()
      this.stir()
    })
  }

  ripen(call: Call, outcome: CallOutcome): void {
    this.settler.ripen(call, outcome)
    if (!this.stirred && !this.settleNext()) this.stir()
  }

  stir(): void {
    this.replay.goesOn()
    if (this.stirred) return
    this.stirred = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.stirred = false
    if (this.phase === 'unwinding') return this.unwinding?.proceed()
    if (!this.isLive) return
    if (this.resources.proceed()) return this.flush()
    if (this.settleNext()) return
    if (this.phase === 'gathering' && !this.mayTell) return this.unwind()
    if (!this.replay.isOver) return this.replay.wait()
    if (this.isPausing) return this.pauseHere()
    this.steps.beginHeldBack()
    if (this.resting.size > 0) {
      if (mustLook(this)) return this.flush()
      wakeDue(this)
      // A step that begins may end at once and move the body on: then the next turn has it all.
      if (this.stirred || this.settleNext()) return
      if (isResting(this)) return rest(this)
      this.alarm.set(this.resting.nextDue())
    }
    this.flush()
  }

  /** The body, as it is replayed, may yet tell how a step is undone. */
  private get mayTell(): boolean {
    return this.isLive && !this.execution.hasEnded && !this.replay.isOver && !this.undoables.isComplete
  }

  private flush(): void {
    if (this.replay.isOver) this.writer.flush()
  }

  private settleNext(): boolean {
    return this.isLive && !this.resources.isBusy && this.settler.settleNext()
  }

  private pauseHere(): void {
    if (!isAtCheckpoint(this) || !this.conclusion.pauses()) this.flush()
  }

  parked(): void {
    this.alarm.set(null)
    this.depart({ kind: 'parked' })
  }

  lookAgain(): void {
    this.phase = 'live'
    if (this.wish?.kind === 'cancel') return this.conclusion.cancel(this.wish.reason)
    if (this.failure !== null) return this.conclusion.fail(this.failure.error)
    this.stir()
  }

  stuckAt(unasked: RecordedEntry): void {
    if (this.phase === 'live') return this.conclusion.drifted(unasked)
    this.execution.hasEnded = true
    this.unwind()
  }

  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]> {
    if (this.sites !== null) return new Promise(() => undefined)
    return retrace(this.host, calls, (host, sites) => new FunctionFrame(this.body, host, this.claim, sites))
  }

  unreadable(error: unknown): void {
    // Running a step again whose result cannot be read any more could do its work twice.
    this.execution.hasEnded = true
    if (this.phase === 'live') this.conclusion.fail(error)
    else if (this.phase === 'gathering') this.conclusion.goOnFailing(error, null)
  }

  unwind(): void {
    this.alarm.set(null)
    if (this.mayTell) this.phase = 'gathering'
    else this.beginUnwinding()
    this.stir()
  }

  private beginUnwinding(): void {
    if (this.phase !== 'unwinding') {
      this.phase = 'unwinding'
      this.unwinding ??= new Unwinding(this)
      // Attempts that waited for a commit before they begin will not begin.
      this.busy = 0
      for (const { attempt } of this.settler.steps()) if (attempt?.isOpen === true) this.busy += 1
    }
    if (this.isCancelled) this.stopping.tell(this.conclusion.whyCancelled())
  }

  leaving(): void {
    this.phase = 'leaving'
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

  stop(reason: () => unknown): void {
    this.alarm.set(null)
    this.replay.goesOn()
    this.unwinding?.stop(reason)
    this.stopping.stop(reason)
  }
}
