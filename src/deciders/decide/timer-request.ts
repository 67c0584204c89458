// The timers that a decision asks for, checked.

import { toMs } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import type { TimerMeta } from '../../core/model/entry.ts'
import { isPlainObject, shown } from '../../core/text/suggest.ts'
import type { TimerTime } from '../api/decision.ts'
import { unkeyed } from '../fold/timers.ts'

/** A hundred years: a point in time beyond that is a mistake. */
const longestMs = 36_525 * 86_400_000

/** When a timer is due. One in the past is due at once. Throws INVALID_DURATION beyond a hundred years. */
export function timerMeta(given: TimerTime, now: number): TimerMeta {
  const when = checkTime(given)
  if (when.at === undefined) return { at: null, afterMs: toMs(when.after, 'The time of a timer') }
  const at = when.at instanceof Date ? when.at.getTime() : NaN
  if (Number.isNaN(at)) {
    throw new HoldfastError('INVALID_OPTION', `The time of a timer must be a valid Date. Got ${shown(when.at)}.`)
  }
  if (at - now <= longestMs) return { at: Math.ceil(at), afterMs: null }
  throw new HoldfastError('INVALID_DURATION', `The time of a timer is over 100 years away: ${when.at.toISOString()}.`, {
    details: { what: 'The time of a timer', at, now },
  })
}

/** Throws INVALID_OPTION for what only JavaScript can pass: a time without its name, or two. */
function checkTime(when: unknown): TimerTime {
  if (isPlainObject(when)) {
    const { after, at } = when as { readonly after?: unknown; readonly at?: unknown }
    if ((after === undefined) !== (at === undefined)) return when as TimerTime
  }
  const isTime = typeof when === 'string' || typeof when === 'number'
  const meant = isTime ? `{ after: ${JSON.stringify(when)} }` : when instanceof Date ? '{ at: … }' : `{ after: '1h' }`
  throw new HoldfastError(
    'INVALID_OPTION',
    `The time of a timer must be { after } or { at }, and not both, such as ${meant}. Got ${shown(when)}.`,
  )
}

/** The key of a timer. Those that begin with `#` are names of timers without a key. */
export function timerKey(key: unknown): string {
  const checked = checkKey(key, 'The key of a timer')
  if (!checked.startsWith(unkeyed)) return checked
  throw new HoldfastError('INVALID_NAME', `The key of a timer must not begin with "${unkeyed}". Got ${shown(key)}.`)
}
