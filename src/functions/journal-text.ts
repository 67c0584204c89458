// The payloads of a run as its journal has them: each text belongs to the place at which it stands.

import type { Host } from '../core/definition.ts'
import type { Run } from '../core/run.ts'
import type { Writer } from '../core/writer.ts'

export abstract class JournalText {
  abstract readonly host: Host
  abstract readonly run: Run
  abstract readonly writer: Writer

  /** The text of a value, for the next entry. */
  encode(value: unknown, name: string | null): string {
    return this.host.payloads.encode(value, { runId: this.run.id, seq: this.writer.seq + 1, name })
  }

  /** The text of whatever was thrown, for the next entry. */
  encodeFailure(error: unknown, name: string | null): string {
    return this.host.payloads.encodeFailure(error, { runId: this.run.id, seq: this.writer.seq + 1, name })
  }

  decode(text: string, seq: number, name: string | null): unknown {
    return this.host.payloads.decode(text, { runId: this.run.id, seq, name })
  }
}
