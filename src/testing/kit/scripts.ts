// The scripted outcomes of attempts to come: which fail, and which take long.

import { toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Performance } from '../../core/runtime/ports.ts'
import { checkOptions, closest, shown } from '../../core/text/suggest.ts'
import { idOf, type RunReference } from '../../client/run-reference.ts'

export interface FailOptions {
  /** How many attempts fail; later ones are performed as usual. @default 1 */
  readonly times?: number
  /** Their error. @default an `Error` that names the test as the cause */
  readonly error?: unknown
  /** Only in this run. @default in any */
  readonly run?: RunReference
  /**
   * `before`: the function is not called. `after`: it is called, does its work, and then the attempt fails all the same, as
   * when an answer is lost. @default 'before'
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
  /** How the test asked for it: `t.fail('charge')`. */
  readonly call: string
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

/** The scripted outcome of one attempt. */
export interface Scripted {
  readonly failsBefore: { readonly error: unknown } | null
  readonly failsAfter: { readonly error: unknown } | null
  readonly slowMs: number
}

export class Scripts {
  private failing: Failing[] = []
  private slowing: Slowing[] = []

  fail(step: string, options: FailOptions = {}): void {
    checkOptions(options, ['times', 'error', 'run', 'when', 'undo'], 'fail()')
    const { times = 1, when = 'before' } = options
    if (when !== 'before' && when !== 'after') {
      throw new HoldfastError('INVALID_OPTION', `fail({ when }) is 'before' or 'after'. Got ${shown(when)}.`)
    }
    const error = options.error ?? new Error(`The test lets step "${step}" fail`)
    this.failing.push({ ...scriptOf('fail', step, times, options), when, error })
  }

  slow(step: string, duration: Duration, options: SlowOptions = {}): void {
    checkOptions(options, ['times', 'run', 'undo'], 'slow()')
    const { times = Number.POSITIVE_INFINITY } = options
    this.slowing.push({ ...scriptOf('slow', step, times, options), ms: toMs(duration, 'slow()') })
  }

  /** The scripted outcome of this attempt; the next one of the step may differ. */
  take(attempt: Performance): Scripted {
    const failure = takeFrom(this.failing, attempt)
    return {
      failsBefore: failure?.when === 'before' ? failure : null,
      failsAfter: failure?.when === 'after' ? failure : null,
      slowMs: takeFrom(this.slowing, attempt)?.ms ?? 0,
    }
  }

  /** Removes the scripts of these steps. */
  forget(steps: ReadonlySet<string>): void {
    this.failing = this.failing.filter(({ step }) => !steps.has(step))
    this.slowing = this.slowing.filter(({ step }) => !steps.has(step))
  }

  /** Scripts for steps that did not run: most likely their names are misspelt. */
  unknown(ran: ReadonlySet<string>): readonly UnknownStep[] {
    const all: readonly Script[] = [...this.failing, ...this.slowing]
    return all.filter(({ step }) => !ran.has(step)).map(({ call, step }) => ({ call, step, meant: closest(step, ran) }))
  }
}

/** A scripted step that no run has reached. */
export interface UnknownStep {
  readonly call: string
  readonly step: string
  /** A step of a similar name that ran. */
  readonly meant: string | undefined
}

/** Whether a step of a similar name ran. */
export function isMisspelt({ meant }: UnknownStep): boolean {
  return meant !== undefined
}

/** The error for a test that scripts steps that do not exist. */
export function unknownSteps(unknown: readonly UnknownStep[], ran: ReadonlySet<string>): HoldfastError {
  const text = unknown.map(({ call, step, meant }) => {
    const hint = meant === undefined ? '' : ` Did you mean "${meant}"?`
    return `${call} had no effect, because no run has reached a step "${step}".${hint}`
  })
  const known = [...ran].slice(0, mostListed).map((step) => `"${step}"`)
  const list = known.length === 0 ? 'No step ran at all.' : `The steps that ran are: ${known.join(', ')}.`
  const names = unknown.map(({ step }) => step)
  return new HoldfastError('STEP_UNKNOWN', [...text, list].join('\n'), { details: { steps: names, ran: [...ran] } })
}

const mostListed = 20

function scriptOf(method: string, step: string, times: number, { run, undo = false }: SlowOptions): Script {
  const isCount = times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times > 0)
  if (!isCount) {
    throw new HoldfastError('INVALID_OPTION', `{ times } must be a whole number from 1. Got ${shown(times)}.`)
  }
  return {
    call: `t.${method}(${shown(step)})`,
    step,
    runId: run === undefined ? null : idOf(run),
    isUndo: undo,
    left: times,
  }
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
