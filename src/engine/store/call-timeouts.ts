// Gives up calls that are not answered in time, with one timer for all of them. A timer for each call was a tenth of the cost
// of a step on the memory store: they are nearly always answered within a millisecond, and made by the thousand.
//
//   no timer  → armed      a call begins: the timer is set to when that one is over
//   armed     → armed      a call begins that is over sooner; or the timer fires, gives up overdue calls, and is set to the next
//   armed     → no timer   the timer fires and nothing is under way; or nothing is under way any more and a timer may not be left
//                          behind: because the watch is stopped, or because a timer of this clock would keep the process alive

import type { Cancel, Clock } from '../../core/runtime/ports.ts'

/** One call that is under way. They stand in a list: a set is made anew again and again as its members come and go. */
export interface TimedCall {
  /** When it is given up, in the time of this process. */
  overAt: number
  /** Its neighbours in the list. */
  before: TimedCall | null
  behind: TimedCall | null
  expire(): void
}

export class CallTimeouts {
  private readonly clock: Clock
  private first: TimedCall | null = null
  private last: TimedCall | null = null
  private mayStayArmed: boolean
  private firesAt = Number.POSITIVE_INFINITY
  private cancel: Cancel | null = null

  constructor(clock: Clock) {
    this.clock = clock
    this.mayStayArmed = clock.background !== undefined
  }

  /** Gives the call up after so many milliseconds, unless it is answered before. */
  begin(call: TimedCall, ms: number): void {
    call.overAt = this.clock.monotonic() + ms
    call.before = this.last
    if (this.last === null) this.first = call
    else this.last.behind = call
    this.last = call
    if (call.overAt < this.firesAt) this.arm(call.overAt, ms)
  }

  answered(call: TimedCall): void {
    this.remove(call)
    if (this.first === null && !this.mayStayArmed) this.disarm()
  }

  /** Leaves no timer behind once the calls under way are answered or given up. */
  stop(): void {
    this.mayStayArmed = false
    if (this.first === null) this.disarm()
  }

  /** One that was removed before stands nowhere. */
  private remove(call: TimedCall): void {
    const { before, behind } = call
    if (before === null && this.first !== call) return
    if (before === null) this.first = behind
    else before.behind = behind
    if (behind === null) this.last = before
    else behind.before = before
    call.before = null
    call.behind = null
  }

  private arm(at: number, ms: number): void {
    this.cancel?.()
    this.firesAt = at
    // Whole milliseconds, upwards: a clock that lags behind its timers fires early, and a rest of less than one might never pass.
    const wholeMs = Math.max(1, Math.ceil(ms))
    this.cancel = this.clock.background?.(wholeMs, this.fire) ?? this.clock.after(wholeMs, this.fire)
  }

  private disarm(): void {
    this.cancel?.()
    this.cancel = null
    this.firesAt = Number.POSITIVE_INFINITY
  }

  private readonly fire = (): void => {
    this.disarm()
    const now = this.clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (let call = this.first; call !== null;) {
      const { behind } = call
      if (call.overAt > now) next = Math.min(next, call.overAt)
      else {
        this.remove(call)
        call.expire()
      }
      call = behind
    }
    if (next < Number.POSITIVE_INFINITY) this.arm(next, next - now)
  }
}
