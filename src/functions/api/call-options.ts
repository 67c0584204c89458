// Checks the options of the calls of a body: those of its steps, the schema of the messages that it receives, the run that it
// starts.

import type { Definition, Isolation } from '../../core/definition/definition.ts'
import { someTime, toMs } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { retryNames, retryPolicy, type RetryPolicy } from '../../core/definition/retry.ts'
import { isSchema, type Schema } from '../../core/definition/schema.ts'
import { wrongOption } from '../../core/text/check-option.ts'
import { checkOptions, didYouMean, isPlainObject, shown } from '../../core/text/suggest.ts'
import type { UndoFunction } from '../frame/body-call.ts'
import type { ChildOptions, ReceiveOptions, TransactionStepOptions } from './context.ts'
import { checkWorkflow } from './call-checks.ts'
import { checkIsolation, noTimeout, notAFunction } from './misuse.ts'
import type { ChildSpec, OnParentEnd } from '../waits/wait-case.ts'
import { quotedText } from '../../core/text/printable.ts'

/** The schema of a wait for a signal of that name, or for a token: null. */
export function checkSchema(options: ReceiveOptions<unknown>, signal: string | null): Schema | undefined {
  const where = signal === null ? 'token' : `signal "${signal}"`
  if (typeof options === 'object' && options !== null && Object.hasOwn(options, 'timeout'))
    throw noTimeout(where, signal)
  checkOptions(options, signal === null ? ['schema'] : ['schema', 'message'], where)
  const { schema } = options
  if (schema === undefined || isSchema(schema)) return schema
  throw new HoldfastError('INVALID_OPTION', `The schema of ${where} must be a Standard Schema, such as one of zod.`)
}

/** The time of a Date, or that time. Throws INVALID_DURATION. */
export function timeOf(time: unknown): number {
  const at = time instanceof Date ? time.getTime() : time
  // A store cannot represent a time that a Date cannot.
  if (typeof at === 'number' && !Number.isNaN(new Date(at).getTime())) return at
  const hint = typeof time === 'string' ? ' Write new Date(…) for a point in time, or ctx.sleep for a duration.' : ''
  throw new HoldfastError(
    'INVALID_DURATION',
    `ctx.sleepUntil needs a valid Date or milliseconds since 1970. Got ${shown(time)}.${hint}`,
  )
}

export function childSpec(
  kind: ChildSpec['kind'],
  workflow: Definition,
  input: unknown,
  given: ChildOptions | undefined,
): ChildSpec {
  checkWorkflow(workflow, `ctx.${kind}`)
  if (given !== undefined && !isPlainObject(given)) {
    throw wrongOption(`The last argument of ctx.${kind}`, 'a plain object with options', given)
  }
  const { onParentEnd = kind === 'child' ? 'cancel' : 'abandon', ...options } = given ?? {}
  if (!endings.includes(onParentEnd)) {
    const known = `Got ${shown(onParentEnd)}.${didYouMean(onParentEnd, endings)}`
    throw new HoldfastError('INVALID_OPTION', `onParentEnd of ctx.${kind} is one of ${endings.join(', ')}. ${known}`)
  }
  return { kind, workflow, input, options, onParentEnd, prepared: null, runId: null }
}

const endings: readonly OnParentEnd[] = ['cancel', 'abandon', 'wait']

const stepOptionNames = ['retry', 'timeout', 'undo']
export const transactionOptionNames = [...stepOptionNames, 'isolation']

/** The checked options of a step. Throws INVALID_OPTION or INVALID_DURATION. */
export function stepSpec(
  name: string,
  options: TransactionStepOptions,
  policy: RetryPolicy,
  isTransaction: boolean,
): StepSpec {
  const where = `step ${quotedText(name)}`
  checkOptions(options, isTransaction ? transactionOptionNames : stepOptionNames, where, retryNames)
  const { undo, retry, timeout, isolation } = options
  if (undo !== undefined && typeof undo !== 'function') throw notAFunction(`The undo of ${where}`)
  return {
    undo,
    policy: retryPolicy(retry, policy, `${where}: retry`),
    timeoutMs: timeout === undefined ? undefined : toMs(timeout, `The timeout of ${where}`, someTime),
    isTransaction,
    isolation: checkIsolation(isolation, name),
  }
}

interface StepSpec {
  readonly policy: RetryPolicy
  readonly timeoutMs: number | undefined
  readonly undo: UndoFunction | undefined
  readonly isTransaction: boolean
  readonly isolation: Isolation | undefined
}
