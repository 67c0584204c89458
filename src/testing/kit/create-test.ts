// `createTest`: the API for testing a workflow. Runs live in memory, the test moves time, makes steps fail, and can kill the
// process that performs them. It needs no test runner.

// A user's libraries may not have the symbol of `await using`.
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

export type TestOptions = Omit<HoldfastOptions, 'store' | 'migrate' | 'poll' | 'ports' | 'services'> & {
  /** The services that the workflows of the test use: fakes, and no others. */
  // oxlint-disable-next-line typescript/no-generated-empty-object-type -- it has the services that an application declares
  readonly services?: Partial<NonNullable<HoldfastOptions['services']>>
  /**
   * Where runs live: `ctx.transaction` needs a database. It must be empty and use the time of the test: an address such as
   * `'sqlite::memory:'` or `'sqlite:test.db'`, or a function that passes the clock on to the store.
   * @default in memory
   */
  readonly store?: TestStore
  /**
   * The reaction to a body that does something that a replay could not repeat: it uses the clock, randomness, timers or
   * network of the machine outside of a step, or does not await a step. `error`: the next call that moves the world, or
   * `close()`, rejects with BODY_UNSAFE, which names the file and line. `warn` only logs it. `off` replaces no global: then
   * `Date` is that of the machine, too. @default 'error'
   */
  readonly bodyChecks?: BodyChecks
  /** The random seed: of ids, `ctx.random()`, the jitter of delays. @default 1 */
  readonly seed?: number
  /** How many waiting runs stay in memory; with 0 every run is replayed whenever it continues. @default 10,000 */
  readonly cachedRuns?: number
  /**
   * How long the function of a step is awaited in real time, before the time of the test moves on; and how long the test may
   * await the result of a run while nothing happens, before it gets an error that says why. @default '2s'
   */
  readonly patience?: Duration
}

export interface DrainOptions {
  /** Let time pass, too. @default false */
  readonly time?: boolean
  /** How much of it at most. @default '1000 days' */
  readonly atMost?: Duration
}

export interface CrashOptions {
  /** How long there is no process before the next one begins. @default no time */
  readonly away?: Duration
}

/** Calls from outside, such as `start` and `signal`, go through a separate Holdfast, which never dies. */
export interface WorkflowTest extends Omit<Holdfast, 'work' | 'close'> {
  /** That Holdfast, for code that needs one. */
  readonly holdfast: Holdfast
  /** The time of the test. */
  readonly now: Date
  /**
   * Lets time pass: everything that comes due on the way happens, in order, up to and including the last moment. Two months
   * take a moment. Two calls at once let the time of both pass, one after the other.
   */
  advance(duration: Duration): Promise<void>
  /**
   * Lets everything happen that needs no time; with `time`, lets time pass as well, until every run has ended or waits for
   * an outside call. Returns the runs that have not ended, and what each waits for.
   *
   * @example
   * const [run] = await t.drain({ time: true })
   * console.log(run?.waitsFor) // [{ kind: 'signal', name: 'approved' }]
   */
  drain(options?: DrainOptions): Promise<readonly WaitingRun[]>
  /**
   * Lets the next attempts of a step fail. A step is named by its identity: `charge`, `charge#2`, `eu/charge`. If no run
   * ever reaches a step of that name, `close()` rejects with STEP_UNKNOWN; if a step of a similar name ran, so does the call
   * in which all runs have ended.
   *
   * @example
   * t.fail('charge', { times: 2, error: new Error('The bank is away') })
   */
  fail(step: string, options?: FailOptions): void
  /** Delays the results of a step's attempts by this long: their functions are called at once. */
  slow(step: string, duration: Duration, options?: SlowOptions): void
  /** Every attempt that was made, in order, those of undo functions, too; of one step, if it is named. */
  attempts(step?: string): readonly StepAttempt[]
  /**
   * The process that performs runs dies as by `kill -9`, and another one begins: uncommitted work is lost. The new one takes
   * over at once, as if the lease of the old one had just expired.
   */
  crash(options?: CrashOptions): Promise<void>
  /**
   * Ends the world. Rejects with BODY_UNSAFE if a body did something that a replay could not repeat, and with STEP_UNKNOWN
   * if the test let a step fail or be slow that no run has reached, unless an earlier call has rejected with it.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export const testOptionNames = [
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
 * Creates a world for one test: a Holdfast in memory, on a clock that the test moves.
 *
 * @example
 * const t = await createTest({ workflows: [checkout], services: { bank } })
 * const run = await t.start(checkout, { total: 99 })
 * await t.advance('2 days')
 * console.log(await run.status())
 * await t.close()
 */
export async function createTest(options: TestOptions): Promise<WorkflowTest> {
  checkOptions(options, testOptionNames, 'createTest()')
  checkBodyChecks(options.bodyChecks, 'createTest')
  return testOf(await World.open(options))
}

/** The API of a test over a world. */
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
