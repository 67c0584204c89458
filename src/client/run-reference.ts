// How a caller names a run.

import { HoldfastError } from '../core/errors/error.ts'
import type { Run } from '../core/model/run.ts'
import { shown } from '../core/text/suggest.ts'

/** A run, by its handle or its id. */
export type RunReference = string | { readonly id: string }

export function idOf(reference: RunReference): string {
  const id: unknown = typeof reference === 'string' ? reference : (reference as { readonly id?: unknown } | null)?.id
  if (typeof id === 'string') return id
  throw new HoldfastError('INVALID_OPTION', `A run is named by its id or its handle. Got ${shown(reference)}.`)
}

/** The error of a run that was removed before it ended: it never will. */
export function runRemoved({ id, status, deletedAt, deleteReason }: Run): HoldfastError {
  const why = deleteReason === null ? '' : ` (${deleteReason})`
  const message =
    `Run ${id} was removed${why} before it ended, and is performed no more: it has no result. ` +
    `It is ${status} for ever; its journal can still be read.`
  return new HoldfastError('RUN_NOT_FOUND', message, {
    details: { runId: id, status, deletedAt, reason: deleteReason },
  })
}

export function runNotFound(id: string): HoldfastError {
  return new HoldfastError('RUN_NOT_FOUND', `There is no run ${shown(id)} in this store.`, { details: { runId: id } })
}
