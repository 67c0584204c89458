// One run of a function, as it lives in a process: the body runs against its journal.
//
// The frame moves in turns: a turn settles one call of the body and lets every microtask that follows run out before the next.
// Recorded outcomes come first, in journal order; live ones follow in the order of their entries. The first execution settles by
// the same rule, so a replay shows the body exactly the order that it saw before.
//
// This class decides what a turn does, and takes the requests of the worker. frame-state.ts says where a frame is in its life,
// frame-parts.ts what its parts are and what each of them decides.
//
// Nothing is ever thrown through the body to suspend it: a parked or abandoned body waits for a promise that never settles.

import type { Claim, DepartureListener, Frame, Host } from '../../core/definition/definition.ts'
import type { FoundCall } from '../../core/model/entry.ts'
import { cancelReasonOf, type ControlRequest } from '../../core/model/run.ts'
import type { CallSites } from '../replay/call-site.ts'
import { leavesToNewerCode } from '../replay/drift.ts'
import type { RecordedEntry, RecordedPlace } from '../replay/history.ts'
import { ReplayProgress } from '../replay/replay-progress.ts'
import { retrace } from '../replay/retrace.ts'
import { Unwinding } from '../steps/unwind.ts'
import { isAtCheckpoint, isParkable, rest } from '../waits/park.ts'
import { mustLook, wakeDue } from '../waits/wake.ts'
import { beginBody, beginFailingBody } from './body-execution.ts'
import { FrameParts } from './frame-parts.ts'
import type { FrameDriver } from './frame-state.ts'
import type { FunctionBody } from './function-body.ts'

export class FunctionFrame implements Frame, FrameDriver {
  private readonly parts: FrameParts
  private replay: ReplayProgress | null = null
  private unwinding: Unwinding | null = null

  constructor(body: FunctionBody, host: Host, claim: Claim, sites: CallSites | null = null) {
    this.parts = new FrameParts(this, body, host, claim, sites)
  }

  get seq(): number | null {
    const { state } = this.parts
    return state.phase === 'parked' ? state.writer.seq : null
  }

  get isLeaving(): boolean {
    return this.parts.state.isLeaving
  }

  get isVacant(): boolean {
    return this.isLeaving && !this.parts.resources.areHeld
  }

  start(listener: DepartureListener): void {
    const { parts } = this
    const { state, drain } = parts
    drain.listen(listener)
    state.begin()
    this.applyClaim()
    const { failing } = state.history
    if (failing === null || state.ending !== null) return beginBody(parts)
    this.undoWork.gather()
    beginFailingBody(parts, failing)
  }

  resume(claim: Claim, listener: DepartureListener): void {
    const { state, drain, waits } = this.parts
    drain.listen(listener)
    state.resume(claim)
    waits.mailbox.resume(claim.run.inbox, this.wakeNames, claim.messages)
    this.applyClaim()
    state.scheduleTurn()
  }

  private applyClaim(): void {
    const { state, exit } = this.parts
    const { controlRequest, history, run } = state
    if (run.status !== 'cancelling' && controlRequest?.kind !== 'cancel') return
    exit.cancel(cancelReasonOf(controlRequest) ?? history.cancelling?.meta.reason ?? null)
  }

  applyControl(next: ControlRequest | null): void {
    const { state, exit } = this.parts
    if (!state.control(next)) return
    const { isLive, phase } = state
    if (next?.kind !== 'cancel') state.scheduleTurn()
    else if (isLive || phase === 'draining' || phase === 'unwinding') exit.cancel(next.reason)
  }

  fail(error: unknown): void {
    this.parts.exit.timedOut(error)
  }

  giveBack(): void {
    const { state } = this.parts
    state.giveBack()
    state.scheduleTurn()
  }

  abandon(): void {
    const { state, steps } = this.parts
    if (state.phase === 'live' || state.phase === 'draining') steps.abandon()
  }

  get arrived(): number | null {
    const { state, waits } = this.parts
    return waits.idle.awaitsMessages ? state.writer.arrived : null
  }

  get wakeNames(): readonly string[] | null {
    const { mailbox, idle } = this.parts.waits
    return mailbox.namesToRead(idle.names)
  }

  messageArrived(inbox: number | null): void {
    const { state, waits } = this.parts
    if (inbox === null) waits.mailbox.markStale()
    else state.writer.heard(inbox)
    if (state.isLive && waits.idle.awaitsMessages) state.scheduleTurn()
  }

  abort(reason: unknown): void {
    const { state } = this.parts
    if (state.phase === 'new' || state.phase === 'parked') state.end()
    else state.writer.lose(reason)
  }

  turn(): void {
    const { parts } = this
    const { state, resources, settler, steps, waits, drain } = parts
    if (state.isLive) waits.endTurn()
    if (state.phase === 'draining') return drain.proceed()
    if (state.phase === 'unwinding') return this.unwinding?.proceed()
    if (!state.isLive) return
    if (resources.proceed()) return this.flush()
    // Outcomes that come by the hundreds are sent while the body still sees them one by one.
    if (settler.settleNext()) return state.writer.isCrowded ? this.flush() : undefined
    if (state.phase === 'gathering' && !this.undoWork.mayCollect) return this.unwind()
    if (!state.history.isOver) return drain.givesBack() ? undefined : this.awaitReplay()
    if (settler.stepsEnded()) return
    if (state.isHalting) return this.haltHere()
    steps.beginHeldBack()
    const { idle } = waits
    if (idle.size > 0) {
      if (mustLook(waits)) return this.flush()
      wakeDue(waits, steps)
      // The payload of a message has to be fetched first, or cannot be read.
      if (!state.isLive || waits.mailbox.isReading) return this.flush()
      // A step that begins may end at once and move the body on: then the next turn has it all.
      if (state.hasTurn || settler.settleNext()) return
      if (isParkable(parts)) return rest(parts)
      state.wakeAt(idle.nextDue())
    }
    this.flush()
  }

  private flush(): void {
    const { history, writer } = this.parts.state
    if (history.isOver) writer.flush()
  }

  private awaitReplay(): void {
    this.replay ??= new ReplayProgress(this.parts.state, this.parts.settler)
    this.replay.wait()
  }

  private haltHere(): void {
    const { parts } = this
    const { exit, drain } = parts
    if (!isAtCheckpoint(parts) || !(exit.pauses() || drain.givesBack())) this.flush()
  }

  pausesReplay(): boolean {
    const { state, exit, drain } = this.parts
    if (state.phase !== 'live' || state.controlRequest?.kind !== 'pause') return false
    // Nothing counts that a body does before it has seen the whole journal. If the pause is withdrawn, it is replayed again.
    state.writer.discard()
    return exit.pauses(() => drain.gone({ kind: 'given-back' }))
  }

  bodyGoesOn(): void {
    this.replay?.goesOn()
    if (this.unwinding !== null && this.parts.state.phase === 'gathering') this.unwinding.bodyGoesOn()
  }

  unwind(): void {
    this.parts.state.wakeAt(null)
    this.undoWork.begin()
  }

  private get undoWork(): Unwinding {
    return (this.unwinding ??= new Unwinding(this.parts))
  }

  stop(reason: () => unknown): void {
    this.replay?.goesOn()
    this.unwinding?.stop(reason)
  }

  lost(reason: unknown): void {
    this.parts.drain.lost(reason)
  }

  stuckAt(unrequested: RecordedEntry): void {
    const { state, exit } = this.parts
    if (state.phase === 'live') exit.drifted(unrequested)
    // Newer code knows how its steps are undone.
    else if (!leavesToNewerCode(state, unrequested)) this.undoWork.hasCollectedAll()
  }

  unreadable(error: unknown, at: RecordedPlace | null): void {
    this.parts.exit.unreadable(error, at)
  }

  placesOf(calls: readonly FoundCall[]): Promise<readonly FoundCall[]> {
    const { body, claim, host, sites } = this.parts.state
    if (sites !== null) return new Promise(() => undefined)
    if (claim === null) return Promise.resolve(calls)
    return retrace(host, calls, (silent, found) => new FunctionFrame(body, silent, claim, found))
  }
}
