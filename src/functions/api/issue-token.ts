// Issues tokens, and finds those again that a run has issued. The journal keeps the hash of a secret; the secret itself is made
// of the key of the workers and of the place of its entry, so that every replay hands out the same text.

import { noSecret } from '../../core/text/blank-tokens.ts'
import type { Entry } from '../../core/model/entry.ts'
import { derivedSecret, hashOfSecret, isHashOfSecret, newSecret, type Token } from '../../core/model/token.ts'
import type { FrameApi } from '../frame/frame-api.ts'

type Issued = Extract<Entry, { kind: 'issued' }>

/** The token of the call with that identity. */
export function issueToken(frame: FrameApi, identity: string, read: (entry: Issued) => unknown): Token {
  const { runId, host, writer } = frame
  const issued = frame.history.issued(identity)
  if (issued !== undefined) return { runId, seq: issued.seq, secret: recordedSecret(frame, issued, read(issued)) }
  // A token that is not written to the journal cannot be completed.
  if (!frame.admits() || !frame.isWriting) return { runId, seq: writer.seq, secret: noSecret }
  const secret = derivedAt(frame, writer.seq + 1, identity)
  const kept = secret === null ? newSecret(host.ports.random) : hashOfSecret(host.ports.digest, secret)
  const data = frame.encode(kept, 'issued', identity)
  writer.append({ kind: 'issued', name: identity, meta: null, data })
  frame.scheduleTurn()
  return { runId, seq: writer.seq, secret: secret ?? kept }
}

/** A replay without the key gets a token that completes nothing. */
function recordedSecret(frame: FrameApi, { seq, name }: Issued, kept: unknown): string {
  const text = kept as string
  return isHashOfSecret(text) ? (derivedAt(frame, seq, name) ?? noSecret) : text
}

function derivedAt({ host, runId }: FrameApi, seq: number, name: string): string | null {
  const { ports, tokenKey = null } = host
  if (tokenKey === null) return null
  return derivedSecret(ports.digest, tokenKey, { runId, seq, name })
}
