// `createTest`: what a test of a workflow holds in its hands. Runs live in memory, time moves when the test says so, steps
// fail when it wants them to, and the process that performs them can be killed. It needs no test runner.

// Whoever compiles against this may not have the symbol of `await using` in their libraries.
/// <reference lib="esnext.disposable" preserve="true" />

import type { Duration } from '../../core/definition/duration.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Holdfast, HoldfastOptions } from '../../holdfast.ts'
import type { StepAttempt } from './attempts.ts'
import { checkBodyChecks, type BodyChecks } from './body-watch.ts'
import type { FailOptions, SlowOptions } from './scripts.ts'
import type { TestStore } from './test-store.ts'
import type { WaitingRun } from './waiting-run.ts'
import { World } from './world.ts'

export type TestOptions = Omit<HoldfastOptions, 'store' | 'migrate' | 'poll' | 'ports'> & {
  /**
   * Where runs live: `ctx.transaction` needs a database. It must be empty and go by the time of the test: an address such as
   * `'sqlite::memory:'` or `'sqlite:test.db'`, or a function that gives the clock on to the store.
   * @default in memory
   */
  readonly store?: TestStore
  /**
   * What becomes of a body that does what a replay could not repeat: it uses the clock, chance, timers or network of the machine
   * outside of a step, or leaves a step that nobody awaits. `error`: the next call that lets something happen, or `close()`, rejects
   * with BODY_UNSAFE, which tells the file and line. `warn` only logs it. `off` leaves the process alone: then `Date` is that of the
   * machine, too. @default 'error'
   */
  readonly bodyChecks?: BodyChecks
  /** What chance makes of it: ids, `ctx.random()`, the spread of delays. @default 1 */
  readonly seed?: number
  /** How many waiting runs stay in memory; with 0 every run is replayed whenever it goes on. @default 10,000 */
  readonly cachedRuns?: number
  /** How long the function of a step is waited for in real time, before the time of the test goes on all the same. @default '2s' */
  readonly patience?: Duration
}

export interface DrainOptions {
  /** Let time pass, too. @default false */
  readonly time?: boolean
  /** How much of it at most. @default '1000 days' */
  readonly atMost?: Duration
}

export interface CrashOptions {
  /** How long nobody performs anything before the next process begins. @default no time at all */
  readonly away?: Duration
}

/** What is done from outside, `start`, `signal` and the like, is done by a Holdfast of its own, which never dies. */
export interface WorkflowTest extends Omit<Holdfast, 'work' | 'close'> {
  /** That Holdfast, for code that wants one. */
  readonly holdfast: Holdfast
  /** The time of the test. */
  readonly now: Date
  /**
   * Lets time pass: everything that comes due on the way happens, in order, what is due at the last moment included. Two months
   * take a moment. Two calls at once let the time of both pass, one after the other.
   */
  advance(duration: Duration): Promise<void>
  /**
   * Lets everything happen that needs no time; with `time`, lets time pass as well, until every run has ended or waits for
   * somebody outside. Gives back the runs that have not ended, and what each waits for.
   *
   * @example
   * const [run] = await t.drain({ time: true })
   * console.log(run?.waitsFor) // [{ kind: 'signal', name: 'approved' }]
   */
  drain(options?: DrainOptions): Promise<readonly WaitingRun[]>
  /**
   * Lets the next attempts of a step fail. A step is named by its identity: `charge`, `charge#2`, `eu/charge`. If no run ever
   * reaches a step of that name, `close()` rejects with STEP_UNKNOWN; so does whatever let all runs end, if a step of nearly that
   * name ran.
   *
   * @example
   * t.fail('charge', { times: 2, error: new Error('The bank is away') })
   */
  fail(step: string, options?: FailOptions): void
  /** Lets the attempts of a step take so long: their functions do what they do, and the result comes after that time. */
  slow(step: string, duration: Duration, options?: SlowOptions): void
  /** Every attempt that was made, in order; of one step, if it is named. */
  attempts(step?: string): readonly StepAttempt[]
  /**
   * The process that performs runs dies as by `kill -9`, and another one begins: what was not committed is lost. The new one
   * takes over at once, as if the lease of the old one had just run out.
   */
  crash(options?: CrashOptions): Promise<void>
  /**
   * Ends the world. Rejects with BODY_UNSAFE if a body did what a replay could not repeat, and with STEP_UNKNOWN if the test let a
   * step fail or be slow that no run has reached, unless the test was told before.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const optionNames = [
  'workflows',
  'services',
  'versionFor',
  'untilInterval',
  'codec',
  'offload',
  'logger',
  'store',
  'transaction',
  'transactions',
  'bodyChecks',
  'seed',
  'cachedRuns',
  'patience',
]

/**
 * Makes a world for one test: a Holdfast in memory, on a clock that the test moves.
 *
 * @example
 * const t = await createTest({ workflows: [checkout], services: { bank } })
 * const run = await t.start(checkout, { total: 99 })
 * await t.advance('2 days')
 * console.log(await run.status())
 * await t.close()
 */
export async function createTest(options: TestOptions): Promise<WorkflowTest> {
  checkOptions(options, optionNames, 'createTest()')
  checkBodyChecks(options.bodyChecks, 'createTest')
  return testOf(await World.open(options))
}

/** The hands of a test on a world. */
export function testOf(world: World): WorkflowTest {
  const { driver, attempts } = world
  const close = async (): Promise<void> => {
    await world.close()
    world.watch.assertSafe()
    world.attempts.assertReached()
  }
  return {
    ...driver,
    holdfast: driver,
    get now() {
      return new Date(world.clock.now())
    },
    advance: (duration) => world.advance(duration),
    drain(options = {}) {
      checkOptions(options, ['time', 'atMost'], 'drain()')
      const { time = false, atMost = '1000 days' } = options
      return time ? world.drainTime(atMost) : world.drain()
    },
    fail: (step, options) => attempts.scripts.fail(step, options),
    slow: (step, duration, options) => attempts.scripts.slow(step, duration, options),
    attempts: (step) => attempts.list(step),
    crash(options = {}) {
      checkOptions(options, ['away'], 'crash()')
      return world.crash(options.away)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
