// Issues completion tokens, and finds those again that a run has issued. The journal keeps the hash of a secret; the secret
// itself is made of the key of the workers and of the place of its entry, so that every replay hands out the same text.

import { noSecret } from '../../core/completion/blank-completion-tokens.ts'
import type { Entry } from '../../core/model/entry.ts'
import {
  derivedSecret,
  hashOfSecret,
  isHashOfSecret,
  newSecret,
  type CompletionToken,
} from '../../core/completion/completion-token.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { encodeNext } from '../replay/journal-text.ts'

type Issued = Extract<Entry, { kind: 'issued' }>

/** The completion token of the call with that identity. */
export function issueCompletionToken(
  state: FrameState,
  identity: string,
  read: (entry: Issued) => unknown,
): CompletionToken {
  const { runId, host, writer } = state
  const issued = state.history.issued(identity)
  if (issued !== undefined) return { runId, seq: issued.seq, secret: recordedSecret(state, issued, read(issued)) }
  // A token that is not written to the journal cannot be completed.
  if (!state.admits() || !state.isWriting) return completionTokenOfNothing(state)
  const secret = derivedAt(state, writer.seq + 1, identity)
  const kept = secret === null ? newSecret(host.ports.random) : hashOfSecret(host.ports.digest, secret)
  const data = encodeNext(state, kept, 'issued', identity)
  writer.append({ kind: 'issued', name: identity, meta: null, data })
  state.scheduleTurn()
  return { runId, seq: writer.seq, secret: secret ?? kept }
}

/** A token that completes nothing. */
export function completionTokenOfNothing({ runId, writer }: FrameState): CompletionToken {
  return { runId, seq: writer.seq, secret: noSecret }
}

/** A replay without the key gets a token that completes nothing. */
function recordedSecret(state: FrameState, { seq, name }: Issued, kept: unknown): string {
  const text = kept as string
  return isHashOfSecret(text) ? (derivedAt(state, seq, name) ?? noSecret) : text
}

function derivedAt({ host, runId }: FrameState, seq: number, name: string): string | null {
  const { ports, tokenKey = null } = host
  if (tokenKey === null) return null
  return derivedSecret(ports.digest, tokenKey, { runId, seq, name })
}
