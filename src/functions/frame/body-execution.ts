// One execution of the body, from its input to its result or error. For a run that is to be undone the body is called only to
// collect its undo functions: then its result means nothing.

import { damagedRow } from '../../core/payload/codec.ts'
import { shownEntry } from '../../core/rows/engine-notes.ts'
import { callBody } from '../../core/runtime/ports.ts'
import type { Context } from '../api/context.ts'
import { createContext } from '../api/function-context.ts'
import { Scope } from '../api/call-identity.ts'
import type { History } from '../replay/history.ts'
import { decodeAt } from '../replay/journal-text.ts'
import type { FrameParts } from './frame-parts.ts'
import type { FrameState } from './frame-state.ts'

/** Calls the body with the input of the run, if it goes on. */
export function beginBody(parts: FrameParts): void {
  const { state, settler } = parts
  if (!state.isLive || isDamaged(state)) return
  settler.payloads.fetch(state.history.input.data, (text) => call(parts, text))
}

/** Calls the body of a run whose journal says that it fails, as far as that is needed. */
export function beginFailingBody(parts: FrameParts, failing: NonNullable<History['failing']>): void {
  const { state, settler, exit } = parts
  if (isDamaged(state)) return
  settler.payloads.read(failing.data, failing, (failure) => {
    exit.goOnFailing(failure, failing.meta?.cause ?? null)
    beginBody(parts)
  })
}

/** A journal that the engine did not write so is not replayed: the run is paused as it is. */
function isDamaged(state: FrameState): boolean {
  const { damaged } = state.history
  if (damaged === null) return false
  const { seq, name } = damaged.entry
  const place = state.host.payloads.place(state.runId, seq, 'damaged', name)
  state.frame.unreadable(damagedRow(place, shownEntry(damaged.entry), damaged.why), damaged.entry)
  return true
}

function call(parts: FrameParts, text: string): void {
  const { state } = parts
  const { history, host, run } = state
  state.scheduleTurn()
  let input: unknown
  try {
    input = decodeAt(state, text, history.input)
  } catch (error) {
    return state.frame.unreadable(error, history.input)
  }
  state.beginBody()
  try {
    const ctx = createContext(parts, new Scope(), run)
    const { body } = state.body
    const result = host.ports.bodies === undefined ? body(ctx, input as never) : watched(state, ctx, input)
    Promise.resolve(result).then(
      (value) => returned(parts, value),
      (error: unknown) => threw(parts, error),
    )
  } catch (error) {
    threw(parts, error)
  }
}

/** Apart from `call`, which would make a closure and its scope with each run, and only tests need them. */
function watched({ body: { body }, host, run }: FrameState, ctx: Context, input: unknown): unknown {
  return callBody(host.ports, run.type, () => body(ctx, input as never))
}

function returned({ state, exit }: FrameParts, value: unknown): void {
  state.endBody()
  if (state.isWriting) exit.returned(value)
  else endedElsewhere(state)
}

function threw({ state, exit }: FrameParts, error: unknown): void {
  state.endBody()
  if (state.isWriting) exit.threw(error)
  else endedElsewhere(state)
}

function endedElsewhere(state: FrameState): void {
  state.spoil()
  state.scheduleTurn()
}
