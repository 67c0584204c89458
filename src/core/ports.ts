// What the engine asks of the machine that it runs on. Everything that is not a pure function of its arguments
// comes through these ports, so that a test or the simulator can own time, chance and order.

export type Cancel = () => void

export interface Clock {
  /** Wall time in milliseconds since 1970. */
  now(): number
  /** Milliseconds on a clock that never steps back; only differences mean something. */
  monotonic(): number
  /** Calls `wake` once, after at least `ms` milliseconds. Until then it keeps the process alive. */
  after(ms: number, wake: () => void): Cancel
}

export interface Turns {
  /**
   * Calls `next` when every microtask that is due now, and all those that they cause, have run.
   * This is the boundary on which replay and parking rest.
   */
  next(call: () => void): void
}

export interface Random {
  /** A uniformly random unsigned 32-bit integer. */
  uint32(): number
}

export interface Logger {
  debug(message: string, details?: Readonly<Record<string, unknown>>): void
  info(message: string, details?: Readonly<Record<string, unknown>>): void
  warn(message: string, details?: Readonly<Record<string, unknown>>): void
  error(message: string, details?: Readonly<Record<string, unknown>>): void
}

/** The same logger, but it harms nobody: what it throws, or rejects with, is dropped. */
export function harmless(logger: Logger): Logger {
  const guarded =
    (level: keyof Logger): Logger['info'] =>
    (message, details) => {
      try {
        const answer: unknown = details === undefined ? logger[level](message) : logger[level](message, details)
        if (answer instanceof Promise) answer.catch(() => undefined)
      } catch {
        // There is nowhere left to say it.
      }
    }
  return { debug: guarded('debug'), info: guarded('info'), warn: guarded('warn'), error: guarded('error') }
}

export interface Ports {
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
}

/** A random number in [0, 1) with 53 bits, as `Math.random()` would give. */
export function randomFraction(random: Random): number {
  const high = random.uint32() >>> 5
  const low = random.uint32() >>> 6
  return (high * 2 ** 26 + low) / 2 ** 53
}
