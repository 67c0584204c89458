// Notes that a body writes for the people who look at its run: none of them may cost the run anything.

import { runLine } from '../../core/rows/engine-notes.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { encodeNext } from '../replay/journal-text.ts'
import { quotedText } from '../../core/text/printable.ts'

/** A note that cannot be stored is no reason to fail: it says why instead. */
export function encodeNote(
  state: FrameState,
  value: unknown,
  instead: (error: HoldfastError) => unknown,
  kind: 'exposed' | 'logged' | 'progressed',
  name: string,
): string {
  try {
    return encodeNext(state, value, kind, name)
  } catch (error) {
    const { id, type } = state.run
    const reason = `The note ${quotedText(name)} cannot be stored: ${messageOf(error)}`
    state.host.ports.logger.warn(`${reason} ${runLine(state.run, 'goes on without it.')}`, { run: id, type })
    return encodeNext(state, instead(new HoldfastError('NOT_STORABLE', reason)), kind, name)
  }
}
