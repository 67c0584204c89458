// Finds what a body does that a replay could not repeat: it uses the clock, the randomness, the timers or the network of the
// machine outside of a step, or does not await a step. Each is reported once, with its file and line, when it happens, and
// not only when a replay takes another path.

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

/** The reaction to a body that does something that a replay could not repeat. */
export type BodyChecks = 'error' | 'warn' | 'off'

/** A violation in a body. */
export interface BodyFinding {
  /** The workflow. */
  readonly type: string
  readonly kind: 'ambient' | 'floating' | 'impure'
  /** The pure function of a decider that is not: `decide`. */
  readonly inside?: string
  /** The function that it uses, `Date.now()`, or the call that it does not await, `step "charge"`. */
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

const pureAdvice =
  'Take the time from { now }, the third argument of decide; what else it needs comes with the input, or from an effect.'

const floatingAdvice = 'Await it, alone or in Promise.all().'

/** One finding, in a sentence, and its remedy in another. */
export function findingText({ type, kind, what, place, inside }: BodyFinding): string {
  const where = place === null ? '' : `, at ${place}`
  if (kind === 'impure') {
    return `${inside ?? 'A pure function'} of decider "${type}" uses ${what}${where}, and must be pure. ${pureAdvice}`
  }
  return kind === 'floating'
    ? `The body of "${type}" never awaits ${what}${where}. ${floatingAdvice}`
    : `The body of "${type}" calls ${what} outside of a step${where}. ${advice[what as AmbientName]}`
}

/** The most findings: a loop would find the same one endlessly. */
const mostFindings = 100

export interface BodyWatchOptions {
  readonly clock: Pick<Clock, 'now'>
  /** `keep`: findings are kept for the caller. */
  readonly checks: BodyChecks | 'keep'
  /** Logs findings that are warnings. @default the console */
  readonly logger: Logger | undefined
}

export class BodyWatch {
  /** All findings, each once. */
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

  /** Lets `Date` follow the time of the test until the returned function is called. */
  hold(): () => void {
    return this.checks === 'off' ? () => undefined : holdAmbient()
  }

  /** The port of a process; null if bodies are not checked. */
  get bodies(): Bodies | null {
    if (this.checks === 'off') return null
    const bodies = bodiesIn((type) => ({ ...this.virtual, onUse: (use) => this.used(type, use) }))
    const enterPure: Bodies['enterPure'] = (type, inside, work) =>
      withAmbient({ ...this.virtual, onUse: (use) => this.found({ type, kind: 'impure', inside, ...use }) }, work)
    return { ...bodies, enterPure }
  }

  /** Calls code of a step, which sees the time of the test and may use the machine. */
  inVirtualTime<Result>(work: () => Result): Result {
    return this.checks === 'off' ? work() : withAmbient(this.virtual, work)
  }

  /** Throws the findings since the last call. */
  assertSafe(): void {
    if (this.checks !== 'error' || this.reportedFindings === this.findings.length) return
    const undelivered = this.findings.slice(this.reportedFindings)
    this.reportedFindings = this.findings.length
    throw unsafeBody(undelivered)
  }

  /** The same logger, which also records the warnings about calls that were not awaited. */
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
    // A wait that was made and is no longer needed, such as a deadline, is harmless.
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

/** Logs the findings. Warnings are visible also without a logger. */
export function warnOf(finding: BodyFinding, logger: Logger | undefined): void {
  const { logger: seen } = systemPorts(logger)
  seen.warn(findingText(finding), { ...finding })
}

/** A port that runs bodies in the scope that `scopeOf` returns. */
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

/** The error for the test of a workflow with these findings. */
function unsafeBody(findings: readonly BodyFinding[]): HoldfastError {
  const lines = [
    ...findings.map(findingText),
    'After a crash a body is called again, and must take the same path: it may depend on its input and on the results of its ' +
      "calls of ctx, and on nothing else. createTest({ bodyChecks: 'warn' }) only logs this.",
  ]
  return new HoldfastError('BODY_UNSAFE', lines.join('\n'), { details: { findings } })
}
