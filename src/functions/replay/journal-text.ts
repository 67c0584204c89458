// The payloads of a run as its journal has them: each text belongs to the place at which it stands.

import type { Entry, EntryKind } from '../../core/model/entry.ts'
import type { FrameState } from '../frame/frame-state.ts'

/** The text of a value, for the next entry. */
export function encodeNext(state: FrameState, value: unknown, kind: EntryKind, name: string | null): string {
  const { payloads } = state.host
  return payloads.encode(value, payloads.place(state.runId, state.writer.seq + 1, kind, name))
}

/** The text of a thrown value, for the next entry. */
export function encodeFailure(state: FrameState, error: unknown, kind: EntryKind, name: string | null): string {
  const { payloads } = state.host
  return payloads.encodeFailure(error, payloads.place(state.runId, state.writer.seq + 1, kind, name))
}

/** The value of a text that stands in that entry. */
export function decodeAt(
  state: FrameState,
  text: string,
  { seq, kind, name }: Pick<Entry, 'seq' | 'kind' | 'name'>,
): unknown {
  const { payloads } = state.host
  return payloads.decode(text, payloads.place(state.runId, seq, kind, name))
}
