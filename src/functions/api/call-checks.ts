// Checks of arguments of the context that are no options. Each throws INVALID_OPTION, and says what was needed and given.

import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { wrongOption } from '../../core/text/check-option.ts'
import { isPlainObject, shown } from '../../core/text/suggest.ts'
import { Wait } from '../waits/wait.ts'
import { notAWait, notAWorkflow } from './misuse.ts'

/** An empty list is one, since it may have been made; nothing at all was forgotten. */
export function checkWaits(waits: unknown, what: string): void {
  // A Set or an iterator has no entries of its own: it would be a wait for nothing.
  if (!Array.isArray(waits) && !isPlainObject(waits)) {
    const list = what === 'ctx.all' ? ', or a list of them' : ''
    throw new HoldfastError(
      'INVALID_OPTION',
      `${what} needs waits, such as { paid: ctx.receive('paid'), late: ctx.sleep('1h') }${list}. Got ${shown(waits)}.`,
    )
  }
  for (const [key, wait] of Object.entries(waits)) if (!(wait instanceof Wait)) throw notAWait(what, key, wait)
}

export function checkFraction(fraction: unknown): void {
  if (typeof fraction === 'number' && fraction >= 0 && fraction <= 1) return
  throw wrongOption('The fraction of ctx.progress', 'a number from 0 to 1', fraction)
}

/** The functions of `ctx.withResource`, by their names. */
export function checkResourceFunctions(functions: Readonly<Record<string, unknown>>): void {
  for (const [name, given] of Object.entries(functions)) {
    if (typeof given !== 'function') throw wrongOption(`The ${name} of ctx.withResource`, 'a function', given)
  }
}

export function checkWorkflow(workflow: unknown, what: string): void {
  const { type, validate } = (workflow ?? {}) as Partial<Definition>
  if (typeof type !== 'string' || typeof validate !== 'function') throw notAWorkflow(what, workflow)
}

/** The id of a run that is given by its id or its handle. */
export function checkRun(run: unknown, what: string): string {
  const id = typeof run === 'string' ? run : (run as { readonly id?: unknown } | null | undefined)?.id
  if (typeof id === 'string' && isRunId(id)) return id
  throw new HoldfastError('INVALID_OPTION', `${what} needs a run, by its id or its handle. Got ${shown(run)}.`)
}
