// The calls that only time can move on: waits, and steps between two attempts. It knows which of them is due next, so
// that a run with ten thousand of them looks at all only when one joins, leaves or comes due.

import type { Due } from '../core/transition.ts'
import { dueOf, earliestDue, winnerOf, type Condition, type Winner } from '../core/wait.ts'
import type { Call, StepCall, WaitCall } from './call.ts'

export interface Woken {
  readonly call: WaitCall
  readonly winner: Winner
}

/** Shared by all runs that never wait, which are many. */
const nobody = new Set<Call>()

export class Resting {
  private calls: Set<Call> = nobody
  private earliest: number | null = null
  private stale = false

  get size(): number {
    return this.calls.size
  }

  add(call: Call): void {
    if (this.calls === nobody) this.calls = new Set()
    this.calls.add(call)
    this.stale = true
  }

  delete(call: Call): void {
    if (this.calls.delete(call)) this.stale = true
  }

  /** A registration became durable: its relative time now counts. */
  registered(): void {
    this.stale = true
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

  /** Takes out everything that has come due: waits in the order in which they came true, and steps to try again. */
  takeDue(now: number): { readonly woken: readonly Woken[]; readonly steps: readonly StepCall[] } {
    const woken: Woken[] = []
    const steps: StepCall[] = []
    const next = this.nextDue()
    if (next === null || next > now) return { woken, steps }
    for (const call of this.calls) {
      if (call.kind === 'step') {
        const due = dueTime(call)
        if (due !== null && due <= now) steps.push(call)
      } else if (call.registeredAt !== null) {
        const facts = { now, registeredAt: call.registeredAt, signals: [], ended: [] }
        const winner = winnerOf(call.conditions, facts)
        if (winner !== null) woken.push({ call, winner })
      }
    }
    for (const { call } of woken) this.delete(call)
    for (const call of steps) this.delete(call)
    woken.sort((a, b) => a.winner.trueAt - b.winner.trueAt)
    return { woken, steps }
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

function conditionsOf(call: Call): readonly Condition[] {
  if (call.kind === 'wait') return call.conditions
  return call.delay === null ? [] : [{ tag: 'retry', kind: 'delay', ms: call.delay.ms }]
}

function dueTime(call: Call): number | null {
  const since = call.kind === 'wait' ? call.registeredAt : (call.delay?.since ?? null)
  return since === null ? null : earliestDue(conditionsOf(call), since)
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
