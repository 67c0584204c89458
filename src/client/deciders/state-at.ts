// The state that an instance had at an earlier time.

import { HoldfastError } from '../../core/errors/error.ts'
import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { codeOf, entriesOf, openInstance } from './instance-walk.ts'

/** Whether an entry had happened by then. Throws INVALID_OPTION. */
export function happenedBy(at: unknown): (entry: Pick<Entry, 'seq' | 'at'>) => boolean {
  if (at instanceof Date && !Number.isNaN(at.getTime())) {
    const time = at.getTime()
    return (entry) => entry.at <= time
  }
  if (typeof at === 'number' && Number.isSafeInteger(at) && at >= 0) return ({ seq }) => seq <= at
  const message = `state({ at }) must be the number of an entry, as history() gives it, or a Date. Got ${shown(at)}.`
  throw new HoldfastError('INVALID_OPTION', message)
}

/** Undefined if its first input was not accepted by then. @internal */
export async function stateAt(engine: Engine, run: Run, had: ReturnType<typeof happenedBy>): Promise<unknown> {
  const instance = openInstance(engine, codeOf(engine, run), run)
  for await (const entry of entriesOf(engine, run)) {
    if (!had(entry)) break
    instance.apply([entry])
  }
  return instance.hasBegun ? instance.state : undefined
}
