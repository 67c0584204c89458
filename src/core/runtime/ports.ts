// The ports of the engine to the machine that it runs on. Everything that is not a pure function of its arguments comes
// through them, so that a test or the simulator can control time, randomness and order.

export type Cancel = () => void

export interface Clock {
  /** Wall time in milliseconds since 1970. */
  now(): number
  /** Milliseconds on a clock that never steps back; only differences are meaningful. */
  monotonic(): number
  /**
   * The fraction of the time that passes here which may not have passed in the store. A clock that the store itself reads has
   * 0. @default 0.005
   */
  readonly drift?: number
  /** Calls `wake` once, after at least `ms` milliseconds. Until then it keeps the process alive. */
  after(ms: number, wake: () => void): Cancel
  /**
   * As `after`, but does not keep the process alive: for work that is only worth a line in the log. @default such lines are
   * not written
   */
  background?(ms: number, wake: () => void): Cancel
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

/** Hashes of texts as UTF-8, as hexadecimal digits. */
export interface Digest {
  sha256(text: string): string
  /** HMAC with SHA-256. */
  hmac(key: string, text: string): string
}

export interface Logger {
  debug(message: string, details?: Readonly<Record<string, unknown>>): void
  info(message: string, details?: Readonly<Record<string, unknown>>): void
  warn(message: string, details?: Readonly<Record<string, unknown>>): void
  error(message: string, details?: Readonly<Record<string, unknown>>): void
}

/** The same logger, but it never throws: its errors and rejections are dropped. */
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

/** An attempt of a step, or to undo one, as it is about to be made. */
export interface Performance {
  readonly runId: string
  /** The identity of the step: `charge`, `charge#2`, `eu/charge`. */
  readonly step: string
  /** 1 for the first. */
  readonly attempt: number
  readonly idempotencyKey: string
  readonly isUndo: boolean
}

export interface Effects {
  /**
   * Calls `work`, the function of a step, with these tools or with others of its kind. Its result, error or rejection counts
   * as that of the function; as long as it has not settled, the attempt is under way.
   */
  perform<Tools extends object>(attempt: Performance, tools: Tools, work: (tools: Tools) => unknown): unknown
}

/**
 * Follows a call across every `await`, so that it is known later on whose behalf code runs. Following costs the whole process
 * a little with every promise, so an implementation need not follow every call of a step.
 */
export interface Scopes {
  /**
   * Whether the next call of that step is to be followed, by the name that the body uses: `charge` also for
   * `eu/charge#2`.
   */
  follows(type: string, step: string): boolean
  /** Calls `work`: in it, and in all code that it awaits, `current` returns `scope`. */
  run(scope: object, work: () => unknown): unknown
  current(): object | undefined
  /**
   * Whether a function of that name awaits the code that runs now, directly or not: for calls that were not followed.
   * It cannot know that of a callback of a timer or an event. Left out if every call is followed.
   */
  isAwaitedBy?(name: string): boolean
  /** A function that calls `work` with the async context of this call: no code that `work` begins sees that of its caller. */
  snapshot(): (work: () => void) => void
}

/**
 * Knows that code of a body runs, and not that of the engine or of a step: for tests that find forbidden actions of a body.
 * Code that it awaits is followed, too.
 */
export interface Bodies {
  /** Calls code of a body: of a run of that type. */
  enter<Result>(type: string, work: () => Result): Result
  /** Calls a pure function of a decider of that type: `what` is its name, such as `decide`. @default it is not distinguished */
  readonly enterPure?: <Result>(type: string, what: string, work: () => Result) => Result
  /** Calls the engine on behalf of a body. */
  leave<Result>(work: () => Result): Result
}

export interface Ports {
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly digest: Digest
  readonly logger: Logger
  /** The effects port: functions of steps are called through it. @default they are called directly */
  readonly effects?: Effects
  /** Knows calls that come from inside a step after an `await`. @default only those before it are known */
  readonly scopes?: Scopes
  /** Distinguishes code of bodies from all other code. @default it is not distinguished */
  readonly bodies?: Bodies
}

/** Calls code of a body, through the port if there is one. */
export function callBody<Result>({ bodies }: Pick<Ports, 'bodies'>, type: string, work: () => Result): Result {
  return bodies === undefined ? work() : bodies.enter(type, work)
}

/** Calls the engine on behalf of a body, through the port if there is one. */
export function leaveBody<Result>({ bodies }: Pick<Ports, 'bodies'>, work: () => Result): Result {
  return bodies === undefined ? work() : bodies.leave(work)
}

/** A random number in [0, 1) with 53 bits, as `Math.random()` would give. */
export function randomFraction(random: Random): number {
  const high = random.uint32() >>> 5
  const low = random.uint32() >>> 6
  return (high * 2 ** 26 + low) / 2 ** 53
}

/** A random id, as `crypto.randomUUID()` would give. */
export function randomUuid(random: Random): string {
  const uint32 = (): number => random.uint32()
  const hex = (value: number): string => value.toString(16).padStart(8, '0')
  const [a, b, c, d] = [hex(uint32()), hex(uint32()), hex(uint32()), hex(uint32())]
  const variant = '89ab'[Number.parseInt(c.charAt(0), 16) & 3] ?? '8'
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`
}
