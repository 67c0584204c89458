// Settles the calls of the body, one at a time: recorded outcomes first and in journal order, then live ones in the order in
// which their entries were appended. A loose outcome does not hold back any other. The frame that drives it runs all
// microtasks between two settlements. The first execution and every replay settle by this one rule, which is why the body
// sees the same order each time. A call that failed before it could be recorded fails again on every replay, and is shown
// before all else: the body made the later calls after it had seen that failure. The payload of an outcome is read
// (`payload-reader.ts`) and checked when its turn has come, and no other outcome overtakes it.
//
// The calls form a list, and only a replay looks them up by name: most runs never replay, and a table for each would be a
// large part of the memory of a run.

import type { Call, CallOutcome, StepCall, WaitCall, WokenOutcome } from '../frame/body-call.ts'
import { callKind, type CallKind, type History, type Outcome, type RecordedEntry } from './history.ts'
import { PayloadReader, type PayloadReaderDeps } from './payload-reader.ts'

export interface SettlerDeps extends PayloadReaderDeps {
  readonly history: History
  /** A call was settled. */
  scheduleTurn(): void
  /** Knows which errors the body got, and the entries of those errors. */
  readonly steps: { remember(error: unknown, seq: number): void }
  /** That call has failed, and the body has not asked for its result so far. */
  failedUnheard(call: Call, error: unknown): void
  /** That call has succeeded, and the body has not asked for its result so far. */
  succeededUnheard(call: Call): void
}

/** Stands for an empty list until its first member. */
const none: never[] = []

export class Settler {
  /** How many calls of the body have not settled. */
  size = 0
  /** How many of them are steps. */
  openSteps = 0
  readonly payloads: PayloadReader
  private readonly deps: SettlerDeps
  private first: Call | null = null
  private last: Call | null = null
  /** The calls by kind and name, for as long as the journal has outcomes for them. */
  private readonly byName: Map<string, Call> | null
  /** Calls whose live outcome the body has not seen yet. */
  private readyCalls: Call[] = none
  /** The payload of a message is being checked against the schema of its wait. */
  private isChecking = false

  constructor(deps: SettlerDeps) {
    this.deps = deps
    this.payloads = new PayloadReader(deps)
    const { history } = deps
    this.byName = history.next() === undefined && history.optional.length === 0 ? null : new Map()
  }

  /** An outcome is being fetched or checked, and nothing overtakes it. */
  get isFetching(): boolean {
    return this.payloads.isFetching || this.isChecking
  }

  /** Nothing is there to settle now. */
  get isIdle(): boolean {
    return this.readyCalls.length === 0 && !this.isFetching && this.deps.history.next() === undefined
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

  enter(call: Call): void {
    call.previous = this.last
    if (this.last === null) this.first = call
    else this.last.next = call
    this.last = call
    this.size += 1
    if (call.kind === 'step') this.openSteps += 1
    this.byName?.set(keyOf(call.kind, call.name), call)
  }

  /** Takes the outcome of a call, whose entry has just been appended. */
  markReady(call: Call, outcome: CallOutcome): void {
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
    const { history } = this.deps
    const next = history.next()
    if (history.optional.length === 0) return next
    const requested = history.optional.find((outcome) => this.callOf(outcome) !== undefined)
    return requested !== undefined && (next === undefined || requested.seq < next.seq) ? requested : next
  }

  private callOf({ kind, name }: Outcome): Call | undefined {
    return this.byName?.get(keyOf(callKind({ kind }), name))
  }

  /** The first recorded outcome that the body has not asked for. */
  unrequested(): Outcome | undefined {
    return this.deps.history.firstWithout((kind, name) => this.isMade(kind, name))
  }

  /** An entry that a body which is over did not ask for: an outcome, or a step that may have been begun. */
  leftBehind(): RecordedEntry | undefined {
    return this.unrequested() ?? this.deps.history.firstBegunWithout((kind, name) => this.isMade(kind, name))
  }

  private isMade(kind: CallKind, name: string): boolean {
    return this.byName?.has(keyOf(kind, name)) ?? false
  }

  private settleRecorded(recorded: Outcome): boolean {
    const call = this.callOf(recorded)
    if (call === undefined) return false
    const { kind, entry, amended, seq } = recorded
    this.deps.history.seen(recorded)
    if (entry.kind === 'woken') {
      const { meta, data } = entry
      this.readWoken(call as WaitCall, { meta, data, isKept: true }, seq, amended)
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
    const { deps } = this
    const fail = (error: unknown): void => this.settle(call, { failed: true, value: error, seq })
    try {
      const read = call.read(meta, value)
      if (!(read instanceof Promise)) return this.settle(call, { failed: false, value: read, seq })
      this.isChecking = true
      const over = (settle: (result: unknown) => void) => (result: unknown) => {
        this.isChecking = false
        if (deps.isLive) settle(result)
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
    if (outcome.failed && outcome.seq !== null) this.deps.steps.remember(outcome.value, outcome.seq)
    call.settle(outcome)
    if (!call.promise.isHeard) this.settledUnheard(call, outcome)
    this.deps.scheduleTurn()
  }

  private settledUnheard(call: Call, { failed, value }: CallOutcome): void {
    if (failed) this.deps.failedUnheard(call, value)
    else this.deps.succeededUnheard(call)
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
