// What a body notes for those who look at its run: nothing of it may cost the run anything.

import { HoldfastError, messageOf } from '../core/error.ts'
import type { Stage } from './stage.ts'

/** A note that cannot be stored is no reason to fail: it says why instead. */
export function encodeNote(
  stage: Stage,
  value: unknown,
  instead: (error: HoldfastError) => unknown,
  kind: 'exposed' | 'logged' | 'progressed',
  name: string,
): string {
  try {
    return stage.encode(value, kind, name)
  } catch (error) {
    const { id, type } = stage.run
    const reason = `What was noted as "${name}" cannot be stored: ${messageOf(error)}`
    stage.host.ports.logger.warn(`${reason} Run ${id} goes on without it.`, { run: id, type })
    return stage.encode(instead(new HoldfastError('NOT_STORABLE', reason)), kind, name)
  }
}
