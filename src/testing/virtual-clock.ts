// A clock whose time only the test moves. Timers fire in the order of their time, then of their setting, each on its own:
// between two of them everything that the first one caused, and that needs no further time, has happened. So two days pass
// in a moment, and in the same way every time.

import { toMs, type Duration } from '../core/definition/duration.ts'
import { HoldfastError } from '../core/errors/error.ts'
import type { Cancel, Clock } from '../core/runtime/ports.ts'

export interface VirtualClock extends Clock {
  /** How many timers are set. */
  readonly pending: number
  /**
   * Lets time pass, and fires the timers that come due on the way. Two calls at once let the time of both pass, one after
   * the other.
   */
  advance(duration: Duration): Promise<void>
  /** Lets time pass from timer to timer until the condition holds; false if it does not within the duration. */
  runUntil(condition: () => boolean, within: Duration): Promise<boolean>
  /** Lets time pass from timer to timer until none is set. */
  runUntilIdle(): Promise<void>
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly wake: () => void
}

/** 1 January 2030, so that a time of this clock is not mistaken for one of the machine's. */
const defaultStartMs = 1_893_456_000_000

/** More timers than this in one call are an endless loop. */
const mostTimers = 1_000_000

/** The bound for code that asks for one turn after the other endlessly; then time goes on all the same. */
const mostTurns = 10_000

/**
 * Creates a clock that stands still until the test moves it. Before time moves, `rest` is awaited: it resolves when all that
 * needs no time has happened. @default rest as soon as nothing is left for the event loop to do at once
 *
 * @example
 * const clock = createVirtualClock()
 * clock.after(60_000, () => console.log('a minute later'))
 * await clock.advance('1 min')
 */
export function createVirtualClock(startMs: number = defaultStartMs, rest: () => Promise<void> = settle): VirtualClock {
  const timers = new Set<Timer>()
  let now = startMs
  let set = 0

  function first(until: number): Timer | undefined {
    let earliest: Timer | undefined
    for (const timer of timers) {
      if (timer.at <= until && (earliest === undefined || firesBefore(timer, earliest))) earliest = timer
    }
    return earliest
  }

  /** Fires due timers, one by one, until `stop` returns true or none is due by then. True if it was stopped. */
  async function run(until: number, stop: () => boolean): Promise<boolean> {
    for (let fired = 0; ; fired += 1) {
      await rest()
      if (stop()) return true
      const timer = first(until)
      if (timer === undefined) return false
      if (fired === mostTimers) throw runaway(now)
      timers.delete(timer)
      now = Math.max(now, timer.at)
      timer.wake()
    }
  }

  async function moveBy(ms: number, stop: () => boolean): Promise<boolean> {
    const until = now + ms
    if (await run(until, stop)) return true
    now = until
    return run(until, stop)
  }

  let last: Promise<unknown> = Promise.resolve()
  /** Calls move time one at a time, in their order: two calls of an hour let two hours pass. */
  function inTurn<Result>(move: () => Promise<Result>): Promise<Result> {
    const moved = last.then(move)
    last = moved.catch(() => undefined)
    return moved
  }

  return {
    now: () => now,
    monotonic: () => now - startMs,
    after(ms: number, wake: () => void): Cancel {
      const timer: Timer = { at: now + Math.max(0, ms), order: set++, wake }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    get pending() {
      return timers.size
    },
    async advance(duration) {
      const ms = toMs(duration, 'advance()')
      await inTurn(() => moveBy(ms, () => false))
    },
    async runUntil(condition, within) {
      const ms = toMs(within, 'runUntil()')
      return inTurn(() => moveBy(ms, condition))
    },
    async runUntilIdle() {
      await inTurn(() => run(Number.POSITIVE_INFINITY, () => false))
    },
  }
}

function firesBefore(a: Timer, b: Timer): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at
}

/** Lets everything happen that needs no time: at least one turn of the event loop, and more while one is asked for. */
async function settle(): Promise<void> {
  for (let turn = 0; turn === 0 || (turn < mostTurns && turnIsPending()); turn += 1) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function turnIsPending(): boolean {
  // oxlint-disable-next-line eslint/no-restricted-globals -- only the event loop itself can say whether a turn is pending
  return process.getActiveResourcesInfo?.().includes('Immediate') ?? false
}

function runaway(now: number): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `${mostTimers} timers fired in one call and more are set: something sets a new one whenever one fires. ` +
      'Let a bounded time pass with advance(), or look for the code that never comes to rest.',
    { details: { now } },
  )
}
