// What a body does that a replay could not repeat: it uses the clock, the chance, the timers or the network of the machine outside
// of a step, or leaves a step behind that nobody awaits. Each is found once, with its file and line, when it happens, and not only
// when a replay goes another way.

import { HoldfastError } from '../../core/errors/error.ts'
import type { Bodies, Clock, Logger } from '../../core/runtime/ports.ts'
import { shown } from '../../core/text/suggest.ts'
import { systemPorts } from '../../system.ts'
import {
  holdAmbient,
  withAmbient,
  withoutAmbient,
  type AmbientName,
  type AmbientScope,
  type AmbientUse,
} from './ambient.ts'

/** What becomes of a body that does what a replay could not repeat. */
export type BodyChecks = 'error' | 'warn' | 'off'

/** Something that a body must not do. */
export interface BodyFinding {
  /** The workflow. */
  readonly type: string
  readonly kind: 'ambient' | 'floating'
  /** What it uses, `Date.now()`, or what it leaves behind, `step "charge"`. */
  readonly what: string
  /** The file, line and column; null if they are not known. */
  readonly place: string | null
}

const clockAdvice = 'Take the time from ctx.now(), or read the clock in a step.'
const timerAdvice = 'Wait with ctx.sleep(), or do it in a step.'

const advice: Record<AmbientName, string> = {
  'Date.now()': clockAdvice,
  'new Date()': clockAdvice,
  'performance.now()': clockAdvice,
  'Math.random()': 'Use ctx.random(), or draw in a step.',
  'crypto.randomUUID()': 'Use ctx.uuid().',
  'crypto.getRandomValues()': 'Use ctx.random() or ctx.uuid(), or draw in a step.',
  'fetch()': 'Put it into a step: ctx.step(name, () => fetch(…)).',
  'setTimeout()': timerAdvice,
  'setInterval()': timerAdvice,
  'setImmediate()': timerAdvice,
}

const floatingAdvice = 'Await it, alone or in Promise.all().'

/** One finding, in a sentence, and what to do about it in another. */
export function findingText({ type, kind, what, place }: BodyFinding): string {
  const where = place === null ? '' : `, at ${place}`
  return kind === 'floating'
    ? `The body of "${type}" never awaits ${what}${where}. ${floatingAdvice}`
    : `The body of "${type}" calls ${what} outside of a step${where}. ${advice[what as AmbientName]}`
}

/** A loop would find the same without end. */
const mostFindings = 100

export interface BodyWatchOptions {
  readonly clock: Pick<Clock, 'now'>
  /** `keep`: what is found is kept for who looks at it. */
  readonly checks: BodyChecks | 'keep'
  /** Told of what is found, if that is to be a warning. @default the console, so that it is seen */
  readonly logger: Logger | undefined
}

export class BodyWatch {
  /** Everything that was found, each once. */
  readonly findings: BodyFinding[] = []
  private readonly checks: BodyWatchOptions['checks']
  private readonly logger: Logger | undefined
  private readonly virtual: AmbientScope
  /** How many of the findings were thrown. */
  private reportedFindings = 0

  constructor({ clock, checks, logger }: BodyWatchOptions) {
    this.checks = checks
    this.logger = logger
    this.virtual = { now: () => clock.now(), random: null, onUse: null }
  }

  /** Lets `Date` follow the time of the test until what this returns is called. */
  hold(): () => void {
    return this.checks === 'off' ? () => undefined : holdAmbient()
  }

  /** The port of a process; null if nobody wants to know what bodies do. */
  get bodies(): Bodies | null {
    if (this.checks === 'off') return null
    return bodiesIn((type) => ({ ...this.virtual, onUse: (use) => this.used(type, use) }))
  }

  /** Calls code that goes by the time of the test and may use the machine: that of a step. */
  inVirtualTime<Result>(work: () => Result): Result {
    return this.checks === 'off' ? work() : withAmbient(this.virtual, work)
  }

  /** Throws what was found since the last time. */
  assertSafe(): void {
    if (this.checks !== 'error' || this.reportedFindings === this.findings.length) return
    const undelivered = this.findings.slice(this.reportedFindings)
    this.reportedFindings = this.findings.length
    throw unsafeBody(undelivered)
  }

  /** The same logger, and what it says of calls that nobody awaits is noted. */
  listening(logger: Logger): Logger {
    return {
      debug: (message, details) => logger.debug(message, details),
      info: (message, details) => logger.info(message, details),
      warn: (message, details) => {
        this.heard(details ?? {})
        logger.warn(message, details)
      },
      error: (message, details) => logger.error(message, details),
    }
  }

  private heard({ type, forgotten, swallowed }: Readonly<Record<string, unknown>>): void {
    if (typeof type !== 'string' || this.checks === 'off') return
    const calls = (forgotten ?? []) as readonly { kind: string; name: string; place: string | null }[]
    const failed = (swallowed ?? []) as readonly { what: string; place: string | null }[]
    // A wait that was made and is of no use any more, as a deadline, does no harm.
    for (const { kind, name, place } of calls) {
      if (kind === 'step') this.found({ type, kind: 'floating', what: `step "${name}"`, place })
    }
    for (const { what, place } of failed) this.found({ type, kind: 'floating', what, place })
  }

  private used(type: string, { what, place }: AmbientUse): void {
    this.found({ type, kind: 'ambient', what, place })
  }

  private found(finding: BodyFinding): void {
    const { what, place, type } = finding
    const isKnown = this.findings.some((one) => one.what === what && one.place === place && one.type === type)
    if (isKnown || this.findings.length >= mostFindings) return
    this.findings.push(finding)
    if (this.checks === 'warn') warnOf(finding, this.logger)
  }
}

/** Says what was found. Whoever asks for warnings sees them, also without a logger. */
export function warnOf(finding: BodyFinding, logger: Logger | undefined): void {
  const { logger: seen } = systemPorts(logger)
  seen.warn(findingText(finding), { ...finding })
}

/** A port that lets bodies find the machine to be what `scopeOf` says. */
export function bodiesIn(scopeOf: (type: string) => AmbientScope): Bodies {
  return {
    enter: (type, work) => withAmbient(scopeOf(type), work),
    leave: withoutAmbient,
  }
}

export function checkBodyChecks(checks: unknown, where: string): void {
  if (checks === undefined || checks === 'error' || checks === 'warn' || checks === 'off') return
  throw new HoldfastError(
    'INVALID_OPTION',
    `${where}({ bodyChecks }) is 'error', 'warn' or 'off'. Got ${shown(checks)}.`,
  )
}

/** The error for who tests a workflow whose body does this. */
function unsafeBody(findings: readonly BodyFinding[]): HoldfastError {
  const lines = [
    ...findings.map(findingText),
    'After a crash a body is called again, and must go the same way: it may depend on its input and on what its calls of ctx ' +
      "returned, and on nothing else. createTest({ bodyChecks: 'warn' }) only logs this.",
  ]
  return new HoldfastError('BODY_UNSAFE', lines.join('\n'), { details: { findings } })
}
