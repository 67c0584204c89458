// Logs attempts that failed and are followed by another one, so that a failing dependency shows long before its runs fail for
// good. Each line names the run, what failed, the attempt and the delay.
//
// While a dependency is away, thousands of runs fail again and again. So the lines of each type are bounded: a few at once,
// then one more each time `refillMs` has passed. The next line says how many were left out.

import type { FailedAttempt } from '../../core/definition/definition.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { runLine, shortMessage } from '../../core/rows/engine-notes.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { quotedText } from '../../core/text/printable.ts'

const mostAtOnce = 5
const refillMs = 10_000

interface Allowance {
  left: number
  since: number
  leftOut: number
}

export class RetryLog {
  private readonly ports: Pick<Ports, 'clock' | 'logger'>
  private readonly allowances = new Map<string, Allowance>()

  constructor(ports: Pick<Ports, 'clock' | 'logger'>) {
    this.ports = ports
  }

  add(failed: FailedAttempt): void {
    const { run, step, attempt, delayMs, error } = failed
    const allowance = this.allowanceOf(run.type)
    if (allowance.left === 0) return void (allowance.leftOut += 1)
    const { leftOut } = allowance
    allowance.left -= 1
    allowance.leftOut = 0
    const before = leftOut === 0 ? '' : ` (${leftOut} failed attempts of its type before this one were not logged)`
    const details = { run: run.id, type: run.type, step, attempt, delayMs, error }
    this.ports.logger.warn(`${retryLine(failed)}${before}`, details)
  }

  private allowanceOf(type: string): Allowance {
    const now = this.ports.clock.monotonic()
    const known = this.allowances.get(type)
    if (known === undefined) {
      const full = { left: mostAtOnce, since: now, leftOut: 0 }
      this.allowances.set(type, full)
      return full
    }
    const refills = Math.floor((now - known.since) / refillMs)
    known.left = Math.min(mostAtOnce, known.left + refills)
    known.since += refills * refillMs
    return known
  }
}

const nouns = { do: 'step', undo: 'the undo of step', timer: 'timer' } as const

function retryLine({ run, step, kind, attempt, delayMs, error }: FailedAttempt): string {
  const what = step === null ? 'its body' : `${nouns[kind]} ${quotedText(step)}`
  return runLine(run, `tries ${what} again in ${formatMs(delayMs)}: attempt ${attempt} failed: ${shortMessage(error)}`)
}
