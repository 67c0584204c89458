// The ports of the machine that we run on. This is the only file of the engine that reads real time and real chance.

import { createHash, createHmac, getRandomValues } from 'node:crypto'
import { createScopes } from './async-scopes.ts'
import { createConsoleLogger } from './console-logger.ts'
import type { Cancel, Clock, Digest, Logger, Ports, Random, Turns } from './core/runtime/ports.ts'

/** The longest delay that the runtime's timer takes; a longer one fires at once instead of late. */
const longestTimerMs = 2 ** 31 - 1

/** A timer for any delay. One in the background does not keep the process alive. */
function timer(ms: number, wake: () => void, isBackground: boolean): Cancel {
  let cancel: Cancel = () => clearTimeout(first)
  const first = setTimeout(
    () => {
      if (ms > longestTimerMs) cancel = timer(ms - longestTimerMs, wake, isBackground)
      else wake()
    },
    Math.min(Math.ceil(ms), longestTimerMs),
  )
  if (isBackground) first.unref()
  return () => cancel()
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, wake) => timer(ms, wake, false),
  background: (ms, wake) => timer(ms, wake, true),
}

/** Stands for an empty list until its first member. */
const none: never[] = []

/** Whether this is where it counts, by the convention of the ecosystem. */
export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production'
}

/**
 * All callbacks of one turn are called in the next, so that a thousand runs cost one event of the loop. An error of one is an
 * uncaught exception of the process, as with any event, and does not prevent the others.
 */
export function createTurns(): Turns {
  let waiting: (() => void)[] = none
  const run = (): void => {
    const calls = waiting
    waiting = none
    let called = 0
    try {
      for (const call of calls) {
        called += 1
        call()
      }
    } finally {
      const left = called === calls.length ? none : calls.slice(called)
      if (left.length > 0) {
        if (waiting.length === 0) setImmediate(run)
        waiting = [...left, ...waiting]
      }
    }
  }
  return {
    next(call) {
      if (waiting.length > 0) return void waiting.push(call)
      // A list that grows takes room for 17: that of a process which performs one run has one member.
      waiting = [call]
      setImmediate(run)
    },
  }
}

export function createRandom(): Random {
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

export const systemDigest: Digest = {
  sha256: (text) => createHash('sha256').update(text).digest('hex'),
  hmac: (key, text) => createHmac('sha256', key).update(text).digest('hex'),
}

const signals = ['SIGTERM', 'SIGINT'] as const
/**
 * The functions to call before a signal may end this process: signals belong to the process, however many Holdfasts it has.
 */
const closers = new Set<() => Promise<void>>()

/**
 * Calls `close` on the first SIGTERM or SIGINT and lets the signal have its usual effect afterwards; a second one has it at
 * once. Where the application listens to the signal itself, when and how the process ends is left to it.
 */
export function closeOnSignal(close: () => Promise<void>): Cancel {
  // Before all other listeners: a `once` listener has not left the list yet when they are counted.
  if (closers.size === 0) for (const signal of signals) process.prependListener(signal, closeAll)
  closers.add(close)
  return () => {
    if (closers.delete(close) && closers.size === 0) ignoreSignals()
  }
}

function ignoreSignals(): void {
  for (const signal of signals) process.off(signal, closeAll)
}

/** Distinguishes our listeners, also those of another copy of this package, from those of an application. */
const ours = Symbol.for('holdfast.signal-listener')

function closeAll(signal: NodeJS.Signals): void {
  ignoreSignals()
  const isHeard = process.listeners(signal).some((listener) => !(ours in listener))
  void Promise.allSettled(Array.from(closers, (close) => close())).then(() => {
    if (!isHeard) process.kill(process.pid, signal)
  })
}
Object.defineProperty(closeAll, ours, { value: true })

export function systemPorts(logger: Logger = createConsoleLogger()): Ports {
  const random = createRandom()
  return { clock: systemClock, turns: createTurns(), random, digest: systemDigest, logger, scopes: createScopes() }
}
