// One run of a function, as it lives in a process: the body runs against its journal.
//
// The frame's heartbeat is the turn: it settles one call of the body, lets every microtask that follows from that run
// out, and only then settles the next. Recorded outcomes come first and in journal order; live ones follow in the order
// in which their entries were appended. Since the first execution settles by the same rule, a replay shows the body
// exactly the order that it saw before.
//
//   new     → live     `start`: the body is called with the input
//   live    → parking  nothing but time or a message can move it on: a commit to `waiting` is on its way
//   parking → parked   that commit was answered; the lease is gone
//   parking → live     a message had arrived: look again
//   parked  → live     `resume`, under a new lease, with nothing having happened to the journal in between
//   live    → leaving  the body returned or threw, or code and journal disagree: the last commit is on its way
//   leaving → gone     that commit was answered
//   any     → gone     the lease or the journal went elsewhere, or `abort`, or the body spoiled its parked frame
//
// Nothing is ever thrown through the body to suspend it: a parked or abandoned body just waits for a promise that does
// not settle, and is collected with its frame.

import type { Claim, Departure, Frame, Host } from '../core/definition.ts'
import { HoldfastError } from '../core/error.ts'
import type { Cancel } from '../core/ports.ts'
import { afterFailure, type RetryPolicy } from '../core/retry.ts'
import { isTerminal, type Run } from '../core/run.ts'
import type { Due } from '../core/transition.ts'
import { Alarm } from './alarm.ts'
import type { Call, CallOutcome, StepCall, WaitCall } from './call.ts'
import { createContext, type Context } from './context.ts'
import { describeDrift, driftGraceMs } from './drift.ts'
import { History } from './history.ts'
import { Resources } from './resources.ts'
import { Resting } from './resting.ts'
import { Scope } from './scope.ts'
import { Settler } from './settler.ts'
import type { Stage } from './stage.ts'
import { StepRunner } from './step-runner.ts'
import { Writer } from './writer.ts'

export interface FunctionBody {
  readonly policy: RetryPolicy
  readonly body: (ctx: Context, input: never) => unknown
}

export class FunctionFrame implements Frame, Stage {
  readonly host: Host
  readonly policy: RetryPolicy
  readonly history: History
  readonly writer: Writer
  readonly resting = new Resting()
  readonly resources: Resources
  busy = 0
  performing: string | null = null
  private readonly definition: FunctionBody
  private readonly steps: StepRunner
  private readonly startedAt: number
  private run: Run
  private readonly settler: Settler
  private phase: 'new' | 'live' | 'parking' | 'parked' | 'leaving' | 'gone' = 'new'
  private stirred = false
  /** Steps without an outcome: they begin when everything recorded has been shown, and never if the code drifted. */
  private heldBack: StepCall[] = []
  private warned = false
  private readonly alarm: Alarm
  private driftCheck: Cancel | null = null
  private depart: (departure: Departure) => void = () => undefined

  constructor(definition: FunctionBody, host: Host, claim: Claim) {
    this.definition = definition
    this.host = host
    this.run = claim.run
    this.policy = definition.policy
    this.history = new History(claim.entries)
    this.writer = new Writer(host, claim, this)
    this.steps = new StepRunner(this)
    this.settler = new Settler(this)
    this.resources = new Resources(this)
    this.alarm = new Alarm(this)
    this.startedAt = host.ports.clock.monotonic()
  }

  get seq(): number | null {
    return this.phase === 'parked' ? this.writer.seq : null
  }

  get runId(): string {
    return this.run.id
  }

  start(): Promise<Departure> {
    this.phase = 'live'
    return new Promise((resolve) => {
      this.depart = resolve
      this.settler.fetch(this.history.input.data, (text) => this.begin(text))
    })
  }

  resume(claim: Claim): Promise<Departure> {
    this.phase = 'live'
    this.run = claim.run
    this.writer.renew(claim)
    return new Promise((resolve) => {
      this.depart = resolve
      this.stir()
    })
  }

  abort(reason: unknown): void {
    if (this.phase === 'new' || this.phase === 'parked') this.phase = 'gone'
    else this.writer.lose(reason)
  }

  get isLive(): boolean {
    return this.phase === 'live'
  }

  admits(): boolean {
    if (this.phase === 'live') return true
    // The body went on beside its wait: this frame has missed a call, so the run can only go on by a replay.
    if (this.phase === 'parked') this.phase = 'gone'
    else if (this.phase === 'parking') this.writer.lose(new Error('The body went on while its run was being parked.'))
    if (!this.warned) {
      this.warned = true
      const run = this.run.id
      this.host.ports.logger.warn(
        `Code of run ${run} went on after the run was parked, had ended or moved elsewhere. What it asks for now never ` +
          'settles here: await every promise that the body makes, and do other work inside steps.',
        { run, type: this.run.type },
      )
    }
    return false
  }

  enterStep(call: StepCall): void {
    this.settler.enter(call)
    this.stir()
    if (this.history.has('step', call.name)) return
    if (this.isReplaying || this.heldBack.length > 0) this.heldBack.push(call)
    else this.steps.enter(call, this.history.failedAttempt(call.name))
  }

  enterWait(call: WaitCall): void {
    this.settler.enter(call)
    this.stir()
    if (this.history.has('wait', call.name)) return
    this.resting.add(call)
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
    this.driftCheck?.()
    this.driftCheck = null
    if (this.stirred) return
    this.stirred = true
    this.host.ports.turns.next(this.turn)
  }

  private readonly turn = (): void => {
    this.stirred = false
    if (this.phase !== 'live') return
    if (this.resources.proceed()) return this.flush()
    if (this.settleNext()) return
    if (this.isReplaying) return this.isStuck() ? this.expectDrift() : undefined
    if (this.heldBack.length > 0) this.beginHeldBack()
    if (this.resting.size > 0) {
      this.wakeDue()
      // A step that begins may end at once and move the body on: then the next turn has it all.
      if (this.stirred || this.settleNext()) return
      if (this.isResting()) return this.rest()
      this.alarm.set(this.resting.nextDue())
    }
    this.flush()
  }

  /** The journal has outcomes that the body has not seen. Until it has, nothing new is begun or written. */
  private get isReplaying(): boolean {
    return this.history.next() !== undefined
  }

  private flush(): void {
    if (!this.isReplaying) this.writer.flush()
  }

  private beginHeldBack(): void {
    const calls = this.heldBack
    this.heldBack = []
    for (const call of calls) this.steps.enter(call, this.history.failedAttempt(call.name))
  }

  private settleNext(): boolean {
    return this.phase === 'live' && !this.resources.isBusy && this.settler.settleNext()
  }

  private begin(text: string): void {
    this.stir()
    let input: unknown
    try {
      input = this.decode(text, this.history.input.seq, null)
    } catch (error) {
      return this.fail(error)
    }
    try {
      const result = this.definition.body(createContext(this, new Scope(), this.run), input as never)
      Promise.resolve(result).then(
        (value) => this.returned(value),
        (error: unknown) => this.threw(error),
      )
    } catch (error) {
      this.threw(error)
    }
  }

  /** Journals the waits that have come due and begins the steps whose delay is over. */
  private wakeDue(): void {
    const now = this.host.now()
    const { woken, steps } = this.resting.takeDue(now)
    for (const { call, winner } of woken) {
      const meta = { winner: winner.tag, trueAt: winner.trueAt, seenAt: now }
      this.writer.append({ kind: 'woken', name: call.name, meta, data: null })
      this.settler.ripen(call, { failed: false, value: meta })
    }
    for (const call of steps) this.steps.begin(call)
  }

  /** Only time or a message can move the body on. */
  private isResting(): boolean {
    return (
      this.busy === 0 &&
      this.resting.size > 0 &&
      this.resting.size === this.settler.size &&
      this.settler.isIdle &&
      this.steps.inlineDelays === 0 &&
      !this.resources.isBusy
    )
  }

  /** Parks the run, as soon as nothing of it is on its way to the store. */
  private rest(): void {
    if (this.writer.isIdle) return void this.park()
    this.writer.barrier(() => this.stir())
  }

  private async park(): Promise<void> {
    this.phase = 'parking'
    try {
      const parked = await this.writer.park(this.resting.parkedDue())
      if (this.phase !== 'parking') return
      if (!parked) {
        this.phase = 'live'
        return this.stir()
      }
    } catch (error) {
      return this.writer.lose(error)
    }
    this.alarm.set(null)
    // A resource lives no longer than a stay in memory, so the body that holds one must be replayed to get a fresh one.
    this.phase = this.resources.areHeld ? 'gone' : 'parked'
    if (this.resources.areHeld) await this.resources.releaseAll()
    this.depart({ kind: 'parked' })
  }

  /** The journal has an outcome that no call of the body asks for, and nothing else can move the body on. */
  private isStuck(): boolean {
    return this.isReplaying && this.settler.size > 0 && !this.resources.isBusy
  }

  private expectDrift(): void {
    this.driftCheck = this.host.ports.clock.after(driftGraceMs, () => {
      this.driftCheck = null
      if (this.phase === 'live' && this.isStuck()) this.pauseForDrift()
    })
  }

  private pauseForDrift(): void {
    const recorded = this.settler.unasked()
    if (recorded === undefined) return
    const meta = describeDrift(recorded, this.settler.all())
    const error = new HoldfastError('DRIFT', meta.message, { details: { ...meta } })
    this.host.ports.logger.error(meta.message, { run: this.run.id, type: this.run.type, error })
    // What the changed code said is not what the run should go on with.
    this.writer.discard()
    this.writer.append({ kind: 'paused', name: null, meta, data: null })
    this.leave('paused', null)
  }

  private returned(value: unknown): void {
    if (this.phase !== 'live') return
    if (this.settler.unasked() !== undefined) return this.pauseForDrift()
    try {
      const data = this.encode(value, null)
      this.writer.append({ kind: 'succeeded', name: null, meta: null, data })
    } catch (error) {
      return this.fail(error)
    }
    this.leave('succeeded', null)
  }

  private threw(error: unknown): void {
    if (this.phase !== 'live') return
    const attempt = this.history.bodyFailures + 1
    const next = this.steps.isStepFailure(error)
      ? { retry: false as const }
      : afterFailure(this.policy, attempt, error, this.host.ports.random)
    if (!next.retry) return this.fail(error)
    const ms = Math.round(this.host.ports.clock.monotonic() - this.startedAt)
    const meta = { attempt, ms, delayMs: next.delayMs }
    this.writer.append({ kind: 'attempt-failed', name: null, meta, data: this.encodeFailure(error, null) })
    this.leave('pending', { at: null, afterMs: next.delayMs })
  }

  rememberFailure(error: unknown): void {
    this.steps.remember(error)
  }

  unreadable(error: unknown): void {
    // Running a step again whose result cannot be read any more could do its work twice.
    if (this.phase === 'live') this.fail(error)
  }

  private fail(error: unknown): void {
    this.writer.append({ kind: 'failed', name: null, meta: null, data: this.encodeFailure(error, null) })
    this.leave('failed', null)
  }

  private leave(status: 'succeeded' | 'failed' | 'pending' | 'paused', due: Due | null): void {
    this.phase = 'leaving'
    this.stop(() => new Error(`The body of run ${this.run.id} has ended: nothing waits for this step any more.`))
    this.writer.leave(status, due).then(
      (data) =>
        this.left(isTerminal(status) ? { kind: 'ended', status, seq: this.writer.seq, data } : { kind: 'released' }),
      (error: unknown) => this.writer.lose(error),
    )
  }

  private left(departure: Departure): void {
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
    this.alarm.set(null)
    this.driftCheck?.()
    this.driftCheck = null
    for (const call of this.settler.all()) if (call.kind === 'step') call.attempt?.abort(reason())
  }

  encode(value: unknown, name: string | null): string {
    return this.host.payloads.encode(value, { runId: this.run.id, seq: this.writer.seq + 1, name })
  }

  encodeFailure(error: unknown, name: string | null): string {
    return this.host.payloads.encodeFailure(error, { runId: this.run.id, seq: this.writer.seq + 1, name })
  }

  decode(text: string, seq: number, name: string | null): unknown {
    return this.host.payloads.decode(text, { runId: this.run.id, seq, name })
  }
}
