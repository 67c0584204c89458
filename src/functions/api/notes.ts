// Notes that a body writes for the people who look at its run: none of them may cost the run anything.

import { runLine } from '../../core/rows/engine-notes.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { FrameApi } from '../frame/frame-api.ts'

/** A note that cannot be stored is no reason to fail: it says why instead. */
export function encodeNote(
  frame: FrameApi,
  value: unknown,
  instead: (error: HoldfastError) => unknown,
  kind: 'exposed' | 'logged' | 'progressed',
  name: string,
): string {
  try {
    return frame.encode(value, kind, name)
  } catch (error) {
    const { id, type } = frame.run
    const reason = `The note "${name}" cannot be stored: ${messageOf(error)}`
    frame.host.ports.logger.warn(`${reason} ${runLine(frame.run, 'goes on without it.')}`, { run: id, type })
    return frame.encode(instead(new HoldfastError('NOT_STORABLE', reason)), kind, name)
  }
}
