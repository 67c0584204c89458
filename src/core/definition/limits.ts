// How much callers may ask for at once. The defaults are large enough that a caller does not reach them by accident; the
// error names the number and the option that raises it.

import { HoldfastError } from '../errors/error.ts'
import { checkOptions, shown } from '../text/suggest.ts'

export interface Limits {
  /** How many operations, signals or starts one call takes, and how many members a list in a filter has. @default 100_000 */
  readonly batch: number
  /** How many tags a run may have, those of its workflow among them; at most 10,000. @default 50 */
  readonly tags: number
  /** How far the priority of a run may be from 0, either way; at most 2,147,483,647. @default 1_000_000 */
  readonly priority: number
  /**
   * How many unread messages the mailbox of a run may hold before signals to it are refused: MAILBOX_FULL. The engine's own
   * messages and broadcasts of a topic are never refused. @default 100_000
   */
  readonly mailbox: number
  /** How many runs may wait on one topic before another one is refused: TOPIC_FULL. @default 100_000 */
  readonly subscribers: number
  /** How many broadcasts a topic may keep for later subscribers before more are refused: TOPIC_FULL. @default 100_000 */
  readonly retained: number
}

export const defaultLimits: Limits = {
  batch: 100_000,
  tags: 50,
  priority: 1_000_000,
  mailbox: 100_000,
  subscribers: 100_000,
  retained: 100_000,
}

/** The range of the column of a priority, or of the position of a message. */
const largest = 2 ** 31 - 1
/** The most that each limit can be set to. */
export const highestLimits: Limits = {
  batch: Number.MAX_SAFE_INTEGER,
  tags: 10_000,
  priority: largest,
  mailbox: largest,
  subscribers: largest,
  retained: largest,
}
const names = Object.keys(defaultLimits) as readonly (keyof Limits)[]

/** The limits that are given, and the default ones for the others. Throws INVALID_OPTION. */
export function checkLimits(given: Partial<Limits>): Limits {
  checkOptions(given, names, 'createHoldfast({ limits })')
  const limits = { ...defaultLimits }
  for (const name of names) {
    const value: unknown = given[name]
    if (value === undefined) continue
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= highestLimits[name]) {
      limits[name] = value
      continue
    }
    throw new HoldfastError(
      'INVALID_OPTION',
      `limits.${name} of createHoldfast() is a whole number from 1 to ${digits(highestLimits[name])}. Got ${shown(value)}.`,
    )
  }
  return limits
}

/** `at most 50 (limits.tags of createHoldfast())`, for the error of a caller that asks for more. */
export function atMost<Name extends keyof Limits>(limits: Pick<Limits, Name>, name: Name): string {
  const most = `at most ${digits(limits[name])}`
  // An option that is at its highest would not help.
  return limits[name] < highestLimits[name] ? `${most} (limits.${name} of createHoldfast())` : most
}

/** Throws INVALID_OPTION if a list is longer than one call takes. */
export function checkBatch(list: readonly unknown[], limits: Limits, what: string): void {
  if (list.length <= limits.batch) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `${what} takes ${atMost(limits, 'batch')}. Got ${digits(list.length)}: make several calls of it.`,
    { details: { limit: 'batch', most: limits.batch, got: list.length } },
  )
}

/** A readable number: 100,000. */
export function digits(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
}
