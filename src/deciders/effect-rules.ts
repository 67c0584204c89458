// The handlers of the effects of a decider, checked.

import { longestName } from '../core/definition/declared-topic.ts'
import { someTime, toMs, type Duration } from '../core/definition/duration.ts'
import { retryPolicy, type Retry, type RetryPolicy } from '../core/definition/retry.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { checkFunction } from '../core/text/check-option.ts'
import { checkOptions, isPlainObject, shown } from '../core/text/suggest.ts'
import type { DeciderRules, EffectRules } from './rules.ts'

interface GivenEffect extends Pick<EffectRules, 'perform'> {
  readonly retry?: Retry
  readonly timeout?: Duration
  readonly orderBy?: NonNullable<EffectRules['orderBy']>
}

export function effectRules(given: unknown, inherited: RetryPolicy, decider: string): DeciderRules['effects'] {
  const where = `decider "${decider}"`
  if (given === undefined) return new Map()
  if (!isPlainObject(given))
    throw invalid(`effects of ${where} must have a handler for each type. Got ${shown(given)}.`)
  return new Map(
    Object.entries(given).map(([type, one]) => {
      checkName(decider, type)
      return [type, oneEffect(one, inherited, `effect "${type}" of ${where}`)]
    }),
  )
}

/** Effects are found under the name of their decider and their type, which the store keeps as far as it keeps any name. */
function checkName(decider: string, type: string): void {
  if (type.includes('#')) {
    throw new HoldfastError(
      'INVALID_NAME',
      `An effect cannot be called ${shown(type)}: # separates its type from its number.`,
    )
  }
  const { length } = `${decider}/${type}`
  if (length <= longestName) return
  throw new HoldfastError(
    'INVALID_NAME',
    `The effect ${shown(type)} of decider ${shown(decider)} needs a shorter name: both with a / between them may have ` +
      `${longestName} characters. They have ${length}.`,
  )
}

function oneEffect(given: unknown, inherited: RetryPolicy, where: string): EffectRules {
  if (typeof given === 'function') {
    return { policy: inherited, timeoutMs: null, perform: given as EffectRules['perform'], orderBy: null }
  }
  checkOptions(given, ['perform', 'retry', 'timeout', 'orderBy'], where)
  const { perform, retry, timeout, orderBy } = given as GivenEffect
  if (typeof perform !== 'function') throw invalid(`perform of ${where} must be a function. Got ${shown(perform)}.`)
  checkFunction(orderBy, `orderBy of ${where}`, '(effect) => effect.customer')
  return {
    policy: retryPolicy(retry, inherited, `${where}: retry`),
    timeoutMs: timeout === undefined ? null : toMs(timeout, `timeout of ${where}`, someTime),
    perform,
    orderBy: orderBy ?? null,
  }
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}
