// Settles the calls of the body, one at a time: recorded outcomes first and in journal order, then live ones in the order in
// which their entries were appended. An optional outcome does not hold back any other. The frame that drives it runs all
// microtasks between two settlements. The first execution and every replay settle by this one rule, which is why the body
// sees the same order each time. A call that failed before it could be recorded fails again on every replay, and is shown
// before all else: the body made the later calls after it had seen that failure. The payload of an outcome is read
// (`payload-reader.ts`) and checked when its turn has come, and no other outcome overtakes it.
//
// The calls form a list, and only a replay looks them up by name: most runs never replay, and a table for each would be a
// large part of the memory of a run. The table goes when the journal has nothing more to settle.

import type { Call, CallOutcome, StepCall, WaitCall, WokenOutcome } from '../frame/body-call.ts'
import { isEndName } from '../api/call-identity.ts'
import type { UnhandledFailure } from '../api/call-promise.ts'
import type { FrameState } from '../frame/frame-state.ts'
import type { Resources } from '../steps/resources.ts'
import { callKind, type CallKind, type Outcome, type RecordedEntry } from './history.ts'
import { PayloadReader } from './payload-reader.ts'
import { quotedText } from '../../core/text/printable.ts'

/** Stands for an empty list until its first member. */
const none: never[] = []

/** One warning names the steps whose results the body forgot: this many are enough to find the place in the code. */
const mostUnheard = 8

export class Settler {
  /** How many calls of the body have not settled. */
  size = 0
  /** How many of them are steps. */
  openSteps = 0
  /** A call of the body was recorded in this stay. */
  hasProgressed = false
  readonly payloads: PayloadReader
  readonly resources: Resources
  private readonly state: FrameState
  private first: Call | null = null
  private last: Call | null = null
  /** The calls by kind and name, for as long as the journal has outcomes for them. */
  private byName: Map<string, Call> | null
  /** Calls whose live outcome the body has not seen yet. */
  private readyCalls: Call[] = none
  /** The payload of a message is being checked against the schema of its wait. */
  private isChecking = false
  /** Errors that the body got from failed calls, and their entries: thrown on, they would come back on every replay. */
  private failures: Map<unknown, number> | null = null
  /** Called when the steps have ended that a body which has returned did not await. */
  private afterSteps: (() => void) | null = null
  /** Calls that failed before the body asked for their outcome. */
  private failedUnheard: UnhandledFailure[] | null = null
  /** Steps that succeeded before the body asked for their results: all of them only in a test that watches bodies. */
  private succeededUnheard: StepCall[] | null = null

  constructor(state: FrameState, resources: Resources) {
    this.state = state
    this.resources = resources
    this.payloads = new PayloadReader(state)
    const { history } = state
    this.byName = history.next() === undefined && history.optional.length === 0 ? null : new Map()
  }

  /** An outcome is being fetched or checked, and nothing overtakes it. */
  get isFetching(): boolean {
    return this.payloads.isFetching || this.isChecking
  }

  /** Nothing is there to settle now. */
  get isIdle(): boolean {
    return this.readyCalls.length === 0 && !this.isFetching && this.state.history.isOver
  }

  *all(): Iterable<Call> {
    for (let call = this.first; call !== null; call = call.next) yield call
  }

  steps(): readonly StepCall[] {
    // Most runs end with no step under way.
    if (this.first === null) return none
    const steps: StepCall[] = []
    for (let call: Call | null = this.first; call !== null; call = call.next) if (call.kind === 'step') steps.push(call)
    return steps
  }

  /** Takes a call of the body: it settles when the journal has its outcome. */
  enter(call: Call): void {
    call.previous = this.last
    if (this.last === null) this.first = call
    else this.last.next = call
    this.last = call
    this.size += 1
    if (call.kind === 'step') this.openSteps += 1
    this.byName?.set(keyOf(call.kind, call.name), call)
    this.state.sites?.entered(call)
    this.state.scheduleTurn()
  }

  /** Gives the body the outcome of a call, whose entry has just been appended, as soon as its turn comes. */
  markReady(call: Call, outcome: CallOutcome): void {
    this.enqueue(call, outcome)
    if (!this.state.hasTurn && !this.settleNext()) this.state.scheduleTurn()
  }

  /** The same in the middle of a turn, which settles by itself. */
  enqueue(call: Call, outcome: CallOutcome): void {
    if (!outcome.failed) this.hasProgressed = true
    call.outcome = outcome
    if (call.isExpected) {
      call.isExpected = false
      return
    }
    if (this.readyCalls.length === 0) this.readyCalls = [call]
    else if (outcome.seq === null) this.readyCalls.unshift(call)
    else this.readyCalls.push(call)
  }

  /** Gives a call its turn: its entry has just been appended, but is not certain yet. Nothing overtakes it. */
  expect(call: Call): void {
    call.isExpected = true
    if (this.readyCalls.length === 0) this.readyCalls = [call]
    else this.readyCalls.push(call)
  }

  /** The entry of that call is another now, and no outcome. */
  dismiss(call: Call): void {
    call.isExpected = false
    this.readyCalls = this.readyCalls.filter((other) => other !== call)
  }

  /** Settles the next call whose turn has come. False if there is none. */
  settleNext(): boolean {
    if (!this.state.isLive || this.resources.isBusy) return false
    if (this.isFetching) return true
    const call = this.readyCalls[0]
    const recorded = call?.outcome?.seq === null ? undefined : this.nextRecorded()
    if (recorded !== undefined) return this.settleRecorded(recorded)
    if (call === undefined || call.outcome === null) return false
    this.readyCalls.shift()
    const { outcome } = call
    if (call.kind === 'wait' && !outcome.failed) this.readWoken(call, outcome.value as WokenOutcome, outcome.seq, null)
    else this.settle(call, outcome)
    return true
  }

  private nextRecorded(): Outcome | undefined {
    const { history } = this.state
    const next = history.next()
    if (history.optional.length === 0) {
      if (next === undefined) this.byName = null
      return next
    }
    const requested = history.optional.find((outcome) => this.callOf(outcome) !== undefined)
    return requested !== undefined && (next === undefined || requested.seq < next.seq) ? requested : next
  }

  private callOf({ kind, name }: Outcome): Call | undefined {
    return this.byName?.get(keyOf(callKind({ kind }), name))
  }

  /** The first recorded outcome that the body has not asked for. */
  unrequested(): Outcome | undefined {
    return this.state.history.firstWithout((kind, name) => this.isMade(kind, name))
  }

  /** An entry that a body which is over did not ask for: an outcome, or a step that may have been begun. */
  leftBehind(): RecordedEntry | undefined {
    return this.unrequested() ?? this.state.history.firstBegunWithout((kind, name) => this.isMade(kind, name))
  }

  private isMade(kind: CallKind, name: string): boolean {
    if (this.byName !== null) return this.byName.has(keyOf(kind, name))
    for (const call of this.all()) if (call.kind === kind && call.name === name) return true
    return false
  }

  private settleRecorded(recorded: Outcome): boolean {
    const call = this.callOf(recorded)
    if (call === undefined) return false
    const { kind, entry, amended, seq } = recorded
    this.state.history.seen(recorded)
    if (entry.kind === 'woken') {
      const { meta, data } = entry
      this.readWoken(call as WaitCall, { meta, data, isKept: true }, seq, amended)
    } else if (call.kind === 'send') {
      this.settle(call, { failed: false, value: undefined, seq })
    } else {
      const counts = amended ?? entry
      this.payloads.read(counts.data ?? '', counts, (value) =>
        this.settle(call, { failed: kind === 'step-failed', value, seq }),
      )
    }
    return true
  }

  /** The body gets the payload of the message as the condition that came true reads it. */
  private readWoken(
    call: WaitCall,
    { meta, data, isKept }: WokenOutcome,
    seq: number | null,
    amended: Outcome['amended'],
  ): void {
    const { payloads } = this
    const kept = amended?.data ?? data
    if (kept === null) return this.conclude(call, meta, undefined, seq)
    const entry = amended ?? { seq: seq ?? 0, kind: 'woken' as const, name: call.name }
    const use = (value: unknown): void => this.conclude(call, meta, value, seq)
    if (isKept || amended !== null) payloads.read(kept, entry, use)
    else payloads.decode(kept, entry, use)
  }

  private conclude(call: WaitCall, meta: WokenOutcome['meta'], value: unknown, seq: number | null): void {
    const { state } = this
    const fail = (error: unknown): void => this.settle(call, { failed: true, value: error, seq })
    try {
      const read = call.read(meta, value)
      if (!(read instanceof Promise)) return this.settle(call, { failed: false, value: read, seq })
      this.isChecking = true
      const over = (settle: (result: unknown) => void) => (result: unknown) => {
        this.isChecking = false
        if (state.isLive) settle(result)
      }
      read.then(
        over((later) => this.settle(call, { failed: false, value: later, seq })),
        over(fail),
      )
    } catch (error) {
      fail(error)
    }
  }

  private settle(call: Call, outcome: CallOutcome): void {
    this.remove(call)
    if (outcome.failed && outcome.seq !== null) this.remember(outcome.value, outcome.seq)
    call.settle(outcome)
    if (!call.promise.isHeard) this.settledUnheard(call, outcome)
    this.state.scheduleTurn()
  }

  private remember(error: unknown, seq: number): void {
    this.failures ??= new Map()
    this.failures.set(error, seq)
  }

  /** The entry of the call whose error this is; null if no call failed with it. */
  causeOf(error: unknown): number | null {
    return this.failures?.get(error) ?? null
  }

  private settledUnheard(call: Call, { failed, value }: CallOutcome): void {
    const { host, body } = this.state
    const { promise, kind, name, place } = call
    if (!failed) {
      if (kind === 'step') this.succeededEarly(call, host.ports.bodies === undefined ? mostUnheard : Infinity)
    } else if (!isEndName(name)) {
      this.unheard({
        promise,
        what: `${kind} ${quotedText(name)}`,
        place: place ?? body.places.placeOf(call),
        error: value,
      })
    }
  }

  /** A body may make many calls and await them later: those that it has awaited by now make room. */
  private succeededEarly(call: StepCall, most: number): void {
    const others = this.succeededUnheard ?? []
    const unheard = others.length < most ? others : others.filter(({ promise }) => !promise.isHeard)
    if (unheard.length < most) unheard.push(call)
    this.succeededUnheard = unheard
  }

  /** A call has failed before the body asked for its outcome. */
  unheard(failure: UnhandledFailure): void {
    this.failedUnheard ??= []
    this.failedUnheard.push(failure)
  }

  /** Takes out the calls that failed, and that the body never asked about. */
  takeSwallowed(): readonly UnhandledFailure[] {
    const swallowed = this.failedUnheard?.filter(({ promise }) => !promise.isHeard) ?? none
    this.failedUnheard = null
    return swallowed
  }

  /** Calls that the body has not asked about, or of which that is not known: a branch awaits its own, and may be forgotten. */
  forgotten(): readonly Call[] {
    if (this.size === 0 && this.succeededUnheard === null) return none
    // The losers of a Promise.race were awaited, too.
    const isForgotten = ({ promise, name }: Call): boolean => !promise.isHeard || name.includes('/')
    const unheard = Array.from(this.all()).filter(isForgotten)
    for (const call of this.succeededUnheard ?? none) if (!call.promise.isHeard) unheard.push(call)
    return unheard
  }

  /** Calls back when each step has ended that the body has called: at once if there is none. */
  whenStepsEnd(next: () => void): void {
    if (this.openSteps === 0) return next()
    this.afterSteps = next
    this.state.scheduleTurn()
  }

  /** The steps that a body which has returned did not await have ended, and the frame goes on from there. */
  stepsEnded(): boolean {
    const { afterSteps } = this
    if (afterSteps === null || this.openSteps > 0) return false
    this.afterSteps = null
    afterSteps()
    return true
  }

  private remove(call: Call): void {
    if (call.previous === null) this.first = call.next
    else call.previous.next = call.next
    if (call.next === null) this.last = call.previous
    else call.next.previous = call.previous
    this.size -= 1
    if (call.kind === 'step') this.openSteps -= 1
    this.byName?.delete(keyOf(call.kind, call.name))
  }
}

function keyOf(kind: Call['kind'], name: string): string {
  return `${kind} ${name}`
}
