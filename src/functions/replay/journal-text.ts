// The payloads of a run as its journal has them: each text belongs to the place at which it stands.

import type { Host } from '../../core/definition/definition.ts'
import type { Entry, EntryKind } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import type { JournalWriter } from '../../core/runtime/journal-writer.ts'

export abstract class JournalText {
  abstract readonly host: Host
  abstract readonly run: Run
  abstract readonly writer: JournalWriter

  /** The text of a value, for the next entry. */
  encode(value: unknown, kind: EntryKind, name: string | null): string {
    const { payloads } = this.host
    return payloads.encode(value, payloads.place(this.run.id, this.writer.seq + 1, kind, name))
  }

  /** The text of a thrown value, for the next entry. */
  encodeFailure(error: unknown, kind: EntryKind, name: string | null): string {
    const { payloads } = this.host
    return payloads.encodeFailure(error, payloads.place(this.run.id, this.writer.seq + 1, kind, name))
  }

  /** The value of a text that stands in that entry. */
  decode(text: string, { seq, kind, name }: Pick<Entry, 'seq' | 'kind' | 'name'>): unknown {
    const { payloads } = this.host
    return payloads.decode(text, payloads.place(this.run.id, seq, kind, name))
  }
}
