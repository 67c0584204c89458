// The ports of the machine that we run on. This is the only file of the engine that reads real time and real chance.

import { getRandomValues } from 'node:crypto'
import type { Cancel, Clock, Logger, Ports, Random, Turns } from './core/ports.ts'

/** The longest delay that the runtime's timer takes; a longer one fires at once instead of late. */
const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms: number, wake: () => void): Cancel {
    const first = Math.min(Math.ceil(ms), longestTimerMs)
    let cancelled: Cancel = () => clearTimeout(timer)
    const timer = setTimeout(() => {
      if (ms > longestTimerMs) cancelled = systemClock.after(ms - longestTimerMs, wake)
      else wake()
    }, first)
    return () => cancelled()
  },
}

/** Whether this is where it counts, by the convention of the ecosystem. */
export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production'
}

/** Everyone who asks in one turn is called in the next, so that a thousand runs cost one event of the loop. */
function createTurns(): Turns {
  let waiting: (() => void)[] = []
  const run = (): void => {
    const calls = waiting
    waiting = []
    for (const call of calls) call()
  }
  return {
    next(call) {
      if (waiting.push(call) === 1) setImmediate(run)
    },
  }
}

function createRandom(): Random {
  const pool = new Uint32Array(1024)
  let at = pool.length
  return {
    uint32() {
      if (at === pool.length) {
        getRandomValues(pool)
        at = 0
      }
      return pool[at++] as number
    },
  }
}

const signals = ['SIGTERM', 'SIGINT'] as const
/** What must be closed before a signal may end this process: signals are the process's, however many Holdfasts it has. */
const closers = new Set<() => Promise<void>>()

/**
 * Calls `close` on the first SIGTERM or SIGINT and lets the signal have its usual effect afterwards; a second one has it at
 * once.
 */
export function closeOnSignal(close: () => Promise<void>): Cancel {
  if (closers.size === 0) for (const signal of signals) process.on(signal, closeAll)
  closers.add(close)
  return () => {
    if (closers.delete(close) && closers.size === 0) ignoreSignals()
  }
}

function ignoreSignals(): void {
  for (const signal of signals) process.off(signal, closeAll)
}

function closeAll(signal: NodeJS.Signals): void {
  ignoreSignals()
  void Promise.allSettled(Array.from(closers, (close) => close())).then(() => process.kill(process.pid, signal))
}

const consoleLogger: Logger = {
  debug: () => undefined,
  info: (message, details) => (details === undefined ? console.info(message) : console.info(message, details)),
  warn: (message, details) => (details === undefined ? console.warn(message) : console.warn(message, details)),
  error: (message, details) => (details === undefined ? console.error(message) : console.error(message, details)),
}

export function systemPorts(logger: Logger = consoleLogger): Ports {
  return { clock: systemClock, turns: createTurns(), random: createRandom(), logger }
}
