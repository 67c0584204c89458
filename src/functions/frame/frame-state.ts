// Where a frame is in its life, what is wanted of its run, and when its next turn comes. Every part of the frame reads this, and
// nothing of it changes but by the methods below: each names the change and its cause.
//
//   new       → live       `begin`: the body is called with the input
//   new       → gathering  `gather` of a run that is being cancelled or fails: its body is replayed, and begins nothing, so
//                          that it says how its steps are undone
//   live      → parking    `park`: nothing but time or a message can move it on, and a commit to `waiting` is on its way
//   parking   → parked     `rest`: that commit was answered; the lease is gone
//   parking   → live       `stay`: a message or a control request had arrived: look again
//   parked    → live       `resume`, under a new lease, with nothing having happened to the journal in between
//   live      → gathering  `gather`: a cancellation, or an end of the time for it, before everything recorded was shown
//   live      → draining   `drain`: the body returned or threw, a cancellation, an end of the time for it, code and journal
//                          disagree, a payload cannot be read, or the run begins anew: attempts under way are awaited and
//                          recorded (drain.ts)
//   gathering → draining   all undo functions are collected, or the body can go no further
//   draining  → unwinding  `unwind`: nothing is under way, and the run fails or is cancelled
//   draining  → leaving    `leave`: nothing is under way, and the run leaves in another way
//   unwinding → leaving    everything is undone, or the result of a step cannot be read
//   gathering → leaving    a payload that the body has to see again cannot be read, or cannot be fetched for now
//   live      → leaving    there is a request to pause, and the run has come to a checkpoint
//   leaving   → gone       `end`: that commit was answered
//   leaving   → unwinding  it was refused: the run is being cancelled, or its time is over; → live (`stay`) if a pause was taken
//                          back
//   live, gathering, unwinding → gone   the run is given back, and has come to a checkpoint: the lease still stands
//   any       → gone       `end`: the lease or the journal went elsewhere; `spoil`: the body went on beside its parked frame
//
// A pause and a shutdown stop at the next checkpoint: nothing new is begun, but the body goes on seeing outcomes until it
// waits for a call that was not begun. A resumed run just begins it then.

import type { Attempt, AttemptListener, CallingFunction } from '../../core/runtime/attempt.ts'
import type { Claim, Host } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { isSameControlRequest, type ControlRequest, type Run } from '../../core/model/run.ts'
import { Alarm } from '../../core/runtime/alarm.ts'
import { JournalWriter, type WriterListener } from '../../core/runtime/journal-writer.ts'
import { warnOfLateCode } from '../api/misuse.ts'
import type { CallSites } from '../replay/call-site.ts'
import { History, type RecordedEntry, type RecordedPlace } from '../replay/history.ts'
import type { StepCall } from './body-call.ts'
import type { FunctionBody } from './function-body.ts'

export type Phase = 'new' | 'live' | 'gathering' | 'draining' | 'unwinding' | 'parking' | 'parked' | 'leaving' | 'gone'

/** How a run ends that has something to undo before, or attempts to wait for. */
export type FrameEnd =
  | { readonly status: 'cancelled'; readonly reason: string | null }
  | { readonly status: 'failed'; readonly error: unknown; readonly cause: number | null }

/** What the parts ask of the frame that drives them. They know no more of it, so that none of them depends on all others. */
export interface FrameDriver extends WriterListener {
  /** Every microtask that follows from the last event has run. */
  turn(): void
  /** The body goes on, or may: it is waited for anew. */
  bodyGoesOn(): void
  /** The body goes no further; its steps are undone, then the run ends. */
  unwind(): void
  /** The frame leaves for certain: nothing is waited for, or undone, any more. */
  stop(reason: () => unknown): void
  /** The journal has this, and the code does not ask for it. */
  stuckAt(recorded: RecordedEntry): void
  /** Pauses in the middle of a replay, if there is a request to: the body may await a promise of its own for ever. */
  pausesReplay(): boolean
  /**
   * The payload of that entry cannot be read: with PAYLOAD_CORRUPT the run is paused. With any other error, or if `at` is
   * null, it could not be fetched here: the run is given up by this process. Going on without the payload could repeat work,
   * and undo work that succeeded.
   */
  unreadable(error: unknown, at: RecordedPlace | null): void
  /** Where in the code these calls stand. */
  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]>
}

export class FrameState {
  readonly host: Host
  readonly body: FunctionBody
  readonly frame: FrameDriver
  readonly history: History
  readonly writer: JournalWriter
  /** Where calls are made from; null unless the places of calls are wanted. */
  readonly sites: CallSites | null
  private at: Phase = 'new'
  private row: Run
  private claimed: Claim | null
  private pending: ControlRequest | null
  private endsAs: FrameEnd | null = null
  private isReturning = false
  private execution: 'new' | 'begun' | 'ended' = 'new'
  private calledLate = false
  private isLateCallLogged = false
  private performed: string | null = null
  private performedKind: CallingFunction['kind'] = 'step'
  private isDue = false
  private alarm: Alarm | null = null

  constructor(frame: FrameDriver, body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null) {
    this.frame = frame
    this.body = body
    this.host = host
    this.sites = sites
    this.row = claim.run
    this.claimed = claim
    this.pending = sites === null ? claim.run.controlRequest : null
    this.history = new History(claim.entries)
    this.writer = new JournalWriter(host, claim, frame)
  }

  get run(): Run {
    return this.row
  }

  get runId(): string {
    return this.row.id
  }

  /** The answer of the claim, until the body has seen all of it. */
  get claim(): Claim | null {
    return this.claimed
  }

  get phase(): Phase {
    return this.at
  }

  /** The run is held here and its body goes on, if only to say how its steps are undone. */
  get isLive(): boolean {
    return this.at === 'live' || this.at === 'gathering'
  }

  /** Calls of the body are written to the journal. */
  get isWriting(): boolean {
    return this.at === 'live'
  }

  get isLeaving(): boolean {
    return this.at === 'parking' || this.at === 'leaving'
  }

  begin(): void {
    this.at = 'live'
  }

  resume(claim: Claim): void {
    this.at = 'live'
    this.row = claim.run
    this.pending = claim.run.controlRequest
    this.writer.renew(claim)
  }

  gather(): void {
    this.at = 'gathering'
  }

  drain(): void {
    this.at = 'draining'
  }

  unwind(): void {
    this.at = 'unwinding'
  }

  park(): void {
    this.at = 'parking'
  }

  /** The run is parked. A frame that cannot be resumed is of no more use. */
  rest(isResumable: boolean): void {
    this.at = isResumable ? 'parked' : 'gone'
    this.wakeAt(null)
    this.claimed = null
    this.history.forgetSeen()
  }

  leave(): void {
    this.at = 'leaving'
  }

  /** It was leaving, or being parked, and goes on as it was. */
  stay(phase: Phase): void {
    this.at = phase
  }

  /** The run is not this frame's any more. */
  end(): void {
    this.at = 'gone'
  }

  /** The body went on beside its wait: this frame has missed that, so the run can only go on by a replay. */
  spoil(): void {
    if (this.at === 'parked') this.at = 'gone'
    else if (this.at === 'parking') this.writer.lose(new Error('The body went on while its run was being parked.'))
  }

  /** Whether the body may make calls. Logs once when its calls no longer mean anything. */
  admits(): boolean {
    if (this.isLive) return true
    if (this.isCancelled) return false
    this.spoil()
    this.warnOfLateCall()
    this.calledLate = true
    return false
  }

  /** Code goes on beside a body that has ended: its calls begin nothing, and that is logged once. */
  warnOfLateCall(): void {
    if (this.isLateCallLogged || this.isCancelled || this.at === 'gathering') return
    this.isLateCallLogged = true
    warnOfLateCode(this.host, this.row)
  }

  /** Code of the body went on when it could not any more, and that was logged. */
  get hasCalledLate(): boolean {
    return this.calledLate
  }

  /** The pending control request. */
  get controlRequest(): ControlRequest | null {
    return this.pending
  }

  /** Takes another control request. False if it changes nothing: it is a repetition, or a cancellation stands already. */
  control(next: ControlRequest | null): boolean {
    const before = this.pending
    if (before?.kind === 'cancel' || isSameControlRequest(next, before)) return false
    this.pending = next
    return true
  }

  /** The run is to be given back at the next checkpoint. */
  giveBack(): void {
    this.isReturning = true
  }

  get isGivingBack(): boolean {
    return this.isReturning
  }

  /** The run is to be paused or given back: nothing new is begun. */
  get isHalting(): boolean {
    return this.isReturning || this.pending?.kind === 'pause' || this.sites !== null
  }

  /** How the run is to end; null while that is open. */
  get ending(): FrameEnd | null {
    return this.endsAs
  }

  endAs(ending: FrameEnd): void {
    this.endsAs = ending
  }

  /** The run is being cancelled. A body that is replayed for its undo work did not know of it then. */
  get isCancelled(): boolean {
    return this.endsAs?.status === 'cancelled' && this.at !== 'gathering'
  }

  /** The body is called. */
  beginBody(): void {
    if (this.execution === 'new') this.execution = 'begun'
  }

  /** The body has returned or thrown, or is not waited for any more. */
  endBody(): void {
    this.execution = 'ended'
  }

  get hasBodyEnded(): boolean {
    return this.execution === 'ended'
  }

  /** The body may make calls that the journal has. */
  get isReplaying(): boolean {
    if (!this.isLive || this.execution === 'ended') return false
    return this.execution === 'new' || !this.history.isOver
  }

  /**
   * Calls a function of that kind on behalf of that step. A replay does not call it again, so meanwhile calls of the context are refused
   * (docs/decisions/0019).
   */
  inside<Result>(step: string, call: () => Result, kind: CallingFunction['kind'] = 'step'): Result {
    const before = this.performed
    const kindBefore = this.performedKind
    this.performed = step
    this.performedKind = kind
    try {
      return call()
    } finally {
      this.performed = before
      this.performedKind = kindBefore
    }
  }

  /** The same for an attempt of a step, without a closure, which each of the many attempts would make. */
  runInside(step: string, attempt: Attempt, call: StepCall, by: AttemptListener<StepCall>): void {
    const before = this.performed
    const kindBefore = this.performedKind
    this.performed = step
    this.performedKind = 'step'
    try {
      attempt.run(call.perform, call, by)
    } finally {
      this.performed = before
      this.performedKind = kindBefore
    }
  }

  /** The function that is being called right now. */
  get performing(): CallingFunction | null {
    return this.performed === null ? null : { kind: this.performedKind, step: this.performed }
  }

  /** A turn is about to come. */
  get hasTurn(): boolean {
    return this.isDue
  }

  /** An event happened: takes a turn once the microtasks that follow from it have run. */
  scheduleTurn(): void {
    this.frame.bodyGoesOn()
    if (this.isDue) return
    this.isDue = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.isDue = false
    this.frame.turn()
  }

  /** Takes a turn at that time of the store, too; null for no such turn. */
  wakeAt(at: number | null): void {
    if (at === null && this.alarm === null) return
    this.alarm ??= new Alarm(this)
    this.alarm.set(at)
  }
}
