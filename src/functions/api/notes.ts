// Notes that a body writes for the people who look at its run: none of them may cost the run anything. `call` is the identity
// of the call that writes a note.

import { runLine } from '../../core/rows/engine-notes.ts'
import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { encodeNext } from '../replay/journal-text.ts'
import { quotedText } from '../../core/text/printable.ts'

/** A note that cannot be stored is no reason to fail: it says why instead. */
function encodeNote(
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

/** A value that the run shows under that name. */
export function writeExposed(state: FrameState, call: string, name: string, value: unknown): void {
  const data = encodeNote(state, value, (error) => error, 'exposed', name)
  state.writer.append({ kind: 'exposed', name, meta: { call }, data })
  state.scheduleTurn()
}

/** A line of the run's own log, which goes to the logger, too. */
export function writeLogged(state: FrameState, call: string, message: string, data: unknown): void {
  const line = data === undefined ? { message } : { message, data }
  const cut = (error: HoldfastError): unknown => ({ message: message.slice(0, 1_000), error })
  const written = encodeNote(state, line, cut, 'logged', call)
  state.writer.append({ kind: 'logged', name: call, meta: null, data: written })
  const { id: run, type } = state.run
  state.host.ports.logger.info(message, { run, type, ...(data === undefined ? {} : { data }) })
  state.scheduleTurn()
}

/** How far the run is. */
export function writeProgress(state: FrameState, call: string, fraction: number, text: string | undefined): void {
  const data = text === undefined ? null : encodeNote(state, text, (error) => error.message, 'progressed', call)
  state.writer.append({ kind: 'progressed', name: call, meta: { fraction }, data })
  state.scheduleTurn()
}
