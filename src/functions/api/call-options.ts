// Checks the arguments of the calls of a body: the options of its steps, the waits that it passes, the schema of the messages
// that it receives, the run that it starts.

import type { Definition, Isolation } from '../../core/definition/definition.ts'
import { someTime, toMs } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { retryPolicy, type RetryPolicy } from '../../core/definition/retry.ts'
import { isSchema, type Schema } from '../../core/definition/schema.ts'
import { checkOptions, didYouMean, shown } from '../../core/text/suggest.ts'
import type { UndoFunction } from '../frame/body-call.ts'
import type { ChildOptions, ReceiveOptions, TransactionStepOptions } from './context.ts'
import { checkIsolation, notAFunction, notAWait, notAWorkflow } from './misuse.ts'
import { Wait } from '../waits/wait.ts'
import type { ChildSpec, OnParentEnd } from '../waits/wait-case.ts'

export function checkSchema(options: ReceiveOptions<unknown>, where: string): Schema | undefined {
  checkOptions(options, ['schema'], where)
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

/** An empty list is one, since it may have been made; nothing at all was forgotten. */
export function checkWaits(waits: unknown, what: string): void {
  if (typeof waits !== 'object' || waits === null) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `${what} needs waits, such as { paid: ctx.receive('paid'), late: ctx.sleep('1h') }. Got ${shown(waits)}.`,
    )
  }
  for (const [key, wait] of Object.entries(waits)) if (!(wait instanceof Wait)) throw notAWait(what, key, wait)
}

export function childSpec(
  kind: ChildSpec['kind'],
  workflow: Definition,
  input: unknown,
  given: ChildOptions | undefined,
): ChildSpec {
  const { type, validate }: Partial<Definition> = workflow ?? {}
  if (typeof type !== 'string' || typeof validate !== 'function') throw notAWorkflow(`ctx.${kind}`)
  const { onParentEnd = kind === 'child' ? 'cancel' : 'abandon', ...options } = given ?? {}
  if (!endings.includes(onParentEnd)) {
    const known = `Got ${shown(onParentEnd)}.${didYouMean(onParentEnd, endings)}`
    throw new HoldfastError('INVALID_OPTION', `onParentEnd of ctx.${kind} is one of ${endings.join(', ')}. ${known}`)
  }
  return { kind, workflow, input, options, onParentEnd, prepared: null, runId: null }
}

const endings: readonly OnParentEnd[] = ['cancel', 'abandon', 'wait']

const stepOptionNames = ['retry', 'timeout', 'undo']
const transactionOptionNames = [...stepOptionNames, 'isolation']

/** The checked options of a step. Throws INVALID_OPTION or INVALID_DURATION. */
export function stepSpec(
  name: string,
  options: TransactionStepOptions,
  policy: RetryPolicy,
  isTransaction: boolean,
): StepSpec {
  const where = `step "${name}"`
  checkOptions(options, isTransaction ? transactionOptionNames : stepOptionNames, where)
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
