// The calls that only time or a message can move on: waits, and steps between two attempts. It knows which of them is due
// next, and which wait wants which messages, so that a run with ten thousand of them looks at all only when one joins, leaves
// or comes due.

import type { Due } from '../../core/model/due.ts'
import { dueOf, earliestDue, type RecordedCondition } from '../../core/model/wait-condition.ts'
import type { StepCall, WaitCall } from '../frame/body-call.ts'

/** A call that only time or a message can move on. */
export type IdleCall = StepCall | WaitCall

/** Shared by all runs that never wait, which are many. */
const noCalls = new Set<IdleCall>()

export class IdleCalls {
  private calls: Set<IdleCall> = noCalls
  private earliest: number | null = null
  private stale = false
  private made = 0
  /** The open waits by the names of the messages that they want. */
  private wanting: Map<string, Set<WaitCall>> | null = null
  /** Waits that are over as soon as they are registered. */
  private starts: Set<WaitCall> | null = null

  get size(): number {
    return this.calls.size
  }

  add(call: IdleCall): void {
    if (this.calls === noCalls) this.calls = new Set()
    this.calls.add(call)
    this.stale = true
    if (call.kind === 'wait') this.index(call)
  }

  private index(call: WaitCall): void {
    this.made += 1
    call.order = this.made
    for (const name of call.messageNames) {
      this.wanting ??= new Map()
      const others = this.wanting.get(name)
      if (others === undefined) this.wanting.set(name, new Set([call]))
      else others.add(call)
    }
    if (!call.conditions.some(({ kind }) => kind === 'start')) return
    this.starts ??= new Set()
    this.starts.add(call)
  }

  delete(call: IdleCall): void {
    if (!this.calls.delete(call)) return
    this.stale = true
    if (call.kind !== 'wait') return
    this.starts?.delete(call)
    for (const name of call.messageNames) {
      const others = this.wanting?.get(name)
      others?.delete(call)
      if (others?.size === 0) this.wanting?.delete(name)
    }
  }

  /** A registration became durable: its relative time now counts. */
  registered(): void {
    this.stale = true
  }

  /** The names of the messages that can end an open wait. */
  get names(): readonly string[] {
    return this.wanting === null || this.wanting.size === 0 ? none : [...this.wanting.keys()]
  }

  /** A message can end an open wait. */
  get awaitsMessages(): boolean {
    return this.wanting !== null && this.wanting.size > 0
  }

  /** An open wait wants messages of that name. */
  isAwaited(name: string): boolean {
    return this.wanting?.has(name) === true
  }

  /** The open waits that want messages of that name. */
  wantingOf(name: string): Iterable<WaitCall> {
    return this.wanting?.get(name) ?? none
  }

  /** All conditions of the open waits. */
  get conditions(): readonly RecordedCondition[] {
    return [...this.calls].flatMap((call) => (call.kind === 'wait' ? call.conditions : []))
  }

  /** A wait will be over as soon as it is registered: no message would wake the run for it. */
  get isStarting(): boolean {
    return this.starts !== null && this.starts.size > 0
  }

  /** When the next of those whose registration is durable comes due. */
  nextDue(): number | null {
    if (this.stale) {
      this.earliest = null
      for (const call of this.calls) {
        const due = dueTime(call)
        if (due !== null && (this.earliest === null || due < this.earliest)) this.earliest = due
      }
      this.stale = false
    }
    return this.earliest
  }

  /** The waits that may be over at that time: by themselves, or by a message of one of these names. In the order of the calls. */
  candidates(now: number, names: Iterable<string>): WaitCall[] {
    const found = new Set<WaitCall>(this.starts ?? none)
    for (const name of names) for (const call of this.wantingOf(name)) found.add(call)
    for (const call of this.dueCalls(now)) if (call.kind === 'wait') found.add(call)
    return [...found].sort((a, b) => a.order - b.order)
  }

  /** Takes out the steps that are to be tried again. */
  takeSteps(now: number): readonly StepCall[] {
    const steps: StepCall[] = []
    for (const call of this.dueCalls(now)) if (call.kind === 'step') steps.push(call)
    for (const call of steps) this.delete(call)
    return steps
  }

  private *dueCalls(now: number): Iterable<IdleCall> {
    const next = this.nextDue()
    if (next === null || next > now) return
    for (const call of this.calls) {
      const due = dueTime(call)
      if (due !== null && due <= now) yield call
    }
  }

  /** When the parked run must be claimed again: registrations that go with the parking commit count from that commit. */
  parkedDue(): Due {
    let at: number | null = null
    let afterMs: number | null = null
    for (const call of this.calls) {
      for (const condition of conditionsOf(call)) {
        const since = call.kind === 'wait' ? call.registeredAt : (call.delay?.since ?? null)
        if (condition.kind === 'delay' && since === null) afterMs = smaller(afterMs, condition.ms)
        else at = smaller(at, dueOf(condition, since ?? 0))
      }
    }
    return { at, afterMs }
  }
}

const none: readonly never[] = []

function conditionsOf(call: IdleCall): readonly RecordedCondition[] {
  if (call.kind === 'wait') return call.conditions
  return call.delay === null ? [] : [{ tag: 'retry', kind: 'delay', ms: call.delay.ms }]
}

function dueTime(call: IdleCall): number | null {
  const since = call.kind === 'wait' ? call.registeredAt : (call.delay?.since ?? null)
  return since === null ? null : earliestDue(conditionsOf(call), since)
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
