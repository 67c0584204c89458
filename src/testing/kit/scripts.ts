// What a test has decided about attempts that are still to come: which fail, and which take long.

import { toMs, type Duration } from '../../core/duration.ts'
import { HoldfastError } from '../../core/error.ts'
import type { Performance } from '../../core/ports.ts'
import { checkOptions, shown } from '../../core/suggest.ts'
import { idOf, type RunReference } from '../../client/run-reference.ts'

export interface FailOptions {
  /** How many attempts fail; those after them go on as usual. @default 1 */
  readonly times?: number
  /** What they fail with. @default an `Error` that says that the test wanted it */
  readonly error?: unknown
  /** Only in this run. @default in any */
  readonly run?: RunReference
  /**
   * `before`: the function is not called. `after`: it is called, does what it does, and then the attempt fails all the same,
   * as when an answer is lost. @default 'before'
   */
  readonly when?: 'before' | 'after'
  /** The attempts to undo the step, and not those to perform it. @default false */
  readonly undo?: boolean
}

export interface SlowOptions {
  /** How many attempts take that long. @default all */
  readonly times?: number
  /** Only in this run. @default in any */
  readonly run?: RunReference
  /** The attempts to undo the step, and not those to perform it. @default false */
  readonly undo?: boolean
}

interface Script {
  readonly step: string
  readonly runId: string | null
  readonly isUndo: boolean
  left: number
}

interface Failing extends Script {
  readonly when: 'before' | 'after'
  readonly error: unknown
}

interface Slowing extends Script {
  readonly ms: number
}

/** What was decided about one attempt. */
export interface Scripted {
  readonly failsBefore: { readonly error: unknown } | null
  readonly failsAfter: { readonly error: unknown } | null
  readonly slowMs: number
}

export class Scripts {
  private readonly failing: Failing[] = []
  private readonly slowing: Slowing[] = []

  fail(step: string, options: FailOptions = {}): void {
    checkOptions(options, ['times', 'error', 'run', 'when', 'undo'], 'fail()')
    const { times = 1, when = 'before' } = options
    if (when !== 'before' && when !== 'after') {
      throw new HoldfastError('INVALID_OPTION', `fail({ when }) is 'before' or 'after'. Got ${shown(when)}.`)
    }
    const error = options.error ?? new Error(`The test lets step "${step}" fail`)
    this.failing.push({ ...scriptOf(step, times, options), when, error })
  }

  slow(step: string, duration: Duration, options: SlowOptions = {}): void {
    checkOptions(options, ['times', 'run', 'undo'], 'slow()')
    const { times = Number.POSITIVE_INFINITY } = options
    this.slowing.push({ ...scriptOf(step, times, options), ms: toMs(duration, 'slow()') })
  }

  /** What becomes of this attempt; the next one of the step may fare otherwise. */
  take(attempt: Performance): Scripted {
    const failure = takeFrom(this.failing, attempt)
    return {
      failsBefore: failure?.when === 'before' ? failure : null,
      failsAfter: failure?.when === 'after' ? failure : null,
      slowMs: takeFrom(this.slowing, attempt)?.ms ?? 0,
    }
  }
}

function scriptOf(step: string, times: number, { run, undo = false }: SlowOptions): Script {
  const isCount = times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times > 0)
  if (!isCount) {
    throw new HoldfastError('INVALID_OPTION', `{ times } must be a whole number from 1. Got ${shown(times)}.`)
  }
  return { step, runId: run === undefined ? null : idOf(run), isUndo: undo, left: times }
}

function takeFrom<Kind extends Script>(scripts: Kind[], { step, runId, isUndo }: Performance): Kind | null {
  const found = scripts.find(
    (script) =>
      script.left > 0 &&
      script.step === step &&
      script.isUndo === isUndo &&
      (script.runId === null || script.runId === runId),
  )
  if (found === undefined) return null
  found.left -= 1
  return found
}
