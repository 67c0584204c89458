// The payloads of one instance as its journal has them: each text belongs to the place at which it stands.

import type { Draft, Entry, EntryKind } from '../../core/model/entry.ts'
import type { Payloads } from '../../core/payload/payload.ts'

/** An entry, or a draft with the number that it will have. */
export type Numbered = Draft & { readonly seq: number }

/** The same, or a row that is damaged. */
export type Read = Entry | Numbered

export class JournalTexts {
  private readonly payloads: Payloads
  private readonly runId: string

  constructor(payloads: Payloads, runId: string) {
    this.payloads = payloads
    this.runId = runId
  }

  /** Throws NOT_STORABLE. */
  encode(value: unknown, seq: number, kind: EntryKind, name: string | null): string {
    return this.payloads.encode(value, this.payloads.place(this.runId, seq, kind, name))
  }

  /** Never throws. */
  encodeFailure(error: unknown, seq: number, kind: EntryKind, name: string | null): string {
    return this.payloads.encodeFailure(error, this.payloads.place(this.runId, seq, kind, name))
  }

  /** Throws PAYLOAD_CORRUPT. Undefined if the entry has no payload. */
  decode({ seq, kind, name, data }: Read): unknown {
    return data === null ? undefined : this.payloads.decode(data, this.payloads.place(this.runId, seq, kind, name))
  }
}
