// The target of a signal: a run by its handle or id, or by its business key. Which run has a key changes over time, so the key is
// looked up when the signal is sent.

import { HoldfastError } from '../../core/errors/error.ts'
import { isRunId } from '../../core/model/run-id.ts'
import { checkKey } from '../../core/model/key.ts'
import { isTerminal, runStatuses } from '../../core/model/run.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RunFilter } from '../../store.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import { idOf, type RunReference } from '../run-reference.ts'
import { storedKey, warnOfUnknownKey } from '../stored-key.ts'

/** A run by its business key: the live one of that type that has it, else the one that had it last. */
export interface KeyReference {
  readonly type: string
  readonly key: string
}

/** The run that a signal is for. */
export type Target = RunReference | KeyReference

const liveStatuses = runStatuses.filter((status) => !isTerminal(status))

/** The id of a target that is named by its id, and null if it is named by its key. Throws INVALID_OPTION. */
export function knownId(target: Target): string | null {
  if (typeof target === 'string') return target
  if (typeof target !== 'object' || target === null) throw unnamed(target)
  // A run as `find` shows it has all three: its id says more.
  if ('id' in target) return idOf(target)
  if (typeof target.type === 'string' && typeof target.key === 'string') return null
  throw unnamed(target)
}

/** The id of the run that is meant; null if there is none. @internal */
export async function resolve(engine: Engine, target: Target): Promise<string | null> {
  const id = knownId(target)
  // Nothing else is the id of a run, and a store of several shards could not even look for it.
  if (id !== null) return isRunId(id) ? id : null
  const { type, key } = target as KeyReference
  const filter: RunFilter = { types: [type], key: storedKey(engine.registry, type, checkKey(key, 'The key of a run')) }
  const admin = adminOf(engine)
  const [live] = await admin.find({ ...filter, statuses: liveStatuses }, { limit: 1 })
  if (live !== undefined) return live.id
  const [last] = await admin.find(filter, { limit: 1 })
  if (last === undefined) warnOfUnknownKey(engine, type, key)
  return last?.id ?? null
}

function unnamed(target: unknown): HoldfastError {
  const missing = typeof target === 'object' && target !== null && 'key' in target ? ' without a type' : ''
  return new HoldfastError(
    'INVALID_OPTION',
    `The target of a signal is the id of a run, its handle, or { type, key }. Got ${shown(target)}${missing}.`,
  )
}
