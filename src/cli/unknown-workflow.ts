// The error of a workflow that is not registered advises a call of the library. Who uses the command line names a module instead.

import { HoldfastError, isHoldfastError } from '../core/errors/error.ts'
import { registerAdvice } from '../engine/registry.ts'
import { quoted } from './usage.ts'

/** The same error with advice for the command line; any other error as it is. */
export function adviseModule<Thrown>(error: Thrown, module: string | undefined): Thrown | HoldfastError {
  if (!isHoldfastError(error, 'WORKFLOW_UNKNOWN') || !error.message.endsWith(registerAdvice)) return error
  const advice =
    module === undefined
      ? 'Name the module that exports it with --workflows.'
      : `Export it from ${quoted(module)}, or name the module that does with --workflows.`
  const { message, details } = error
  return new HoldfastError(error.code, message.slice(0, -registerAdvice.length) + advice, { details })
}
