// Ports that a test moves by hand: time passes when it says so, chance is fixed, and log lines are kept.

import type { Cancel, Clock, Logger, Ports } from '../../src/core/runtime/ports.ts'
import { systemDigest } from '../../src/system.ts'

interface Timer {
  readonly due: number
  readonly wake: () => void
}

export class ManualClock implements Clock {
  /** Every delay that was ever asked for. */
  readonly asked: number[] = []
  private readonly timers = new Set<Timer>()
  private passed = 0

  now(): number {
    return 1_000_000 + this.passed
  }

  monotonic(): number {
    return this.passed
  }

  after(ms: number, wake: () => void): Cancel {
    const timer = { due: this.passed + ms, wake }
    this.asked.push(ms)
    this.timers.add(timer)
    return () => this.timers.delete(timer)
  }

  /** How many timers are set. */
  get pending(): number {
    return this.timers.size
  }

  advance(ms: number): void {
    this.passed += ms
    for (const timer of [...this.timers].sort((a, b) => a.due - b.due)) {
      if (timer.due <= this.passed && this.timers.delete(timer)) timer.wake()
    }
  }
}

export interface ManualPorts extends Ports {
  readonly clock: ManualClock
  readonly warnings: string[]
}

export function manualPorts(): ManualPorts {
  const warnings: string[] = []
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message) => warnings.push(message),
    error: (message) => warnings.push(message),
  }
  const turns = { next: (call: () => void) => void setImmediate(call) }
  return { clock: new ManualClock(), turns, random: { uint32: () => 2 ** 31 }, digest: systemDigest, logger, warnings }
}

/** Lets every microtask run that is due, and all that they cause. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
