// How a caller names a run.

import { HoldfastError } from '../core/error.ts'
import { shown } from '../core/suggest.ts'

/** A run, by its handle or its id. */
export type RunReference = string | { readonly id: string }

export function idOf(reference: RunReference): string {
  const id: unknown = typeof reference === 'string' ? reference : (reference as { readonly id?: unknown } | null)?.id
  if (typeof id === 'string') return id
  throw new HoldfastError('INVALID_OPTION', `A run is named by its id or its handle. Got ${shown(reference)}.`)
}

export function runNotFound(id: string): HoldfastError {
  return new HoldfastError('RUN_NOT_FOUND', `There is no run ${shown(id)} in this store.`, { details: { runId: id } })
}
