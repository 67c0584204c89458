// The options of a worker, and their checks.

import type { Definition } from '../core/definition/definition.ts'
import { someTime, toMs, type Duration } from '../core/definition/duration.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { shown } from '../core/text/suggest.ts'

export interface WorkOptions {
  /** How many runs move at once; a run that waits does not count. @default 100 */
  readonly concurrency?: number
  /** How long this process may be silent before other workers take over its runs. @default 30 s */
  readonly lease?: Duration
  /** How often it says that it is alive. @default a third of the lease */
  readonly heartbeat?: Duration
  /** How many waiting runs stay in memory, so that waking them needs no replay. @default 10,000 */
  readonly cachedRuns?: number
  /**
   * Retry delays up to this are waited in memory; longer ones release the run. The default is over the first delay of the
   * default policy, 1 s and up to half of it on top. @default 2 s
   */
  readonly inlineRetry?: Duration
  /**
   * How long attempts that were aborted are waited for, because their run is being cancelled, fails or is out of time. After
   * that they are abandoned: the journal says so, and they are undone if they have an undo function. @default 30 s
   */
  readonly abortGrace?: Duration
  /**
   * How many processes may die of one run before it is paused. From the third on it is performed alone, and only that
   * counts. A workflow may have a bound of its own. @default 5
   */
  readonly maxCrashes?: number
  /**
   * How long `stop()` waits for steps that are under way. Nothing new begins meanwhile, and each run is given back as soon as
   * its steps have ended; the remaining steps are then abandoned and their runs given back. Most platforms kill a process 30
   * s after they asked it to stop. @default 20 s
   */
  readonly shutdownTimeout?: Duration
  /**
   * Whether SIGTERM and SIGINT close this Holdfast gracefully before the process ends. If the application listens to the
   * signal itself, this Holdfast is closed all the same, and ending the process is left to the application. @default true
   */
  readonly signals?: boolean
}

export const workOptionNames = [
  'concurrency',
  'lease',
  'heartbeat',
  'cachedRuns',
  'inlineRetry',
  'abortGrace',
  'maxCrashes',
  'shutdownTimeout',
  'signals',
]

/** Often enough for the shortest of all leases. */
export function heartbeatMs(options: WorkOptions, leaseMs: number, definitions: readonly Definition[]): number {
  const shortest = Math.min(leaseMs, ...definitions.map((definition) => definition.leaseMs ?? leaseMs))
  if (options.heartbeat === undefined) return shortest / 3
  const everyMs = toMs(options.heartbeat, 'work({ heartbeat })', someTime)
  if (2 * everyMs <= shortest) return everyMs
  throw new HoldfastError(
    'INVALID_OPTION',
    'work({ heartbeat }) must be at most half of the shortest lease, so that one late beat does no harm.',
  )
}

export function count(name: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value
  throw new HoldfastError(
    'INVALID_OPTION',
    `work({ ${name} }) must be a whole number from ${least}. Got ${shown(value)}.`,
  )
}
