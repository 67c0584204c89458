// What is wrong with how a body uses its context, in words.

import type { Host } from '../core/definition.ts'
import { HoldfastError } from '../core/error.ts'
import type { Run } from '../core/run.ts'
import { shown } from '../core/suggest.ts'
import { fatal } from '../core/verdict.ts'

/** A replay does not call the functions of recorded steps, so it would miss what they ask of the context. */
export function insideStep(what: string, step: string): Error {
  const message =
    `${what} was called inside of step "${step}". Call it in the body, before or after that step, ` +
    'or use ctx.branch to group several steps.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step } }))
}

export function noTransactions(name: string): Error {
  const message =
    `Transaction "${name}" needs a store whose database has your tables, too: 'sqlite:app.db' or 'postgres://…'. This one ` +
    'keeps runs only; use ctx.step here.'
  return fatal(new HoldfastError('INVALID_OPTION', message, { details: { step: name } }))
}

export function notAFunction(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a function to perform.`)
}

export function notAWait(what: string, key: string, given: unknown): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `${what} takes waits: ctx.signal, ctx.sleep, ctx.child, ctx.waitFor, ctx.token or another race. ${shown(key)} is none` +
      `${given instanceof Promise ? ' but a promise: a step runs to its end, so await it before or after' : ''}.`,
  )
}

export function notAWorkflow(what: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `${what} needs a workflow, made by workflow(), and its input.`)
}

export function warnOfStrayCode({ ports }: Host, { id, type }: Run): void {
  ports.logger.warn(
    `Code of run ${id} went on after the run was parked, had ended or moved elsewhere. What it asks for now never ` +
      'settles here: await every promise that the body makes, and do other work inside steps.',
    { run: id, type },
  )
}
