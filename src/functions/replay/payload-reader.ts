// Reads the payloads of recorded entries for one frame: fetches those that were offloaded, decodes them, and hands on the
// value. An inline payload is handed on before the call returns, without a promise. An offloaded one is waited for, however
// long that takes; nothing is handed on once the frame is gone. A payload that cannot be read goes to `unreadable`, which
// pauses the run.

import type { Host } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { fetchPatiently } from '../../core/payload/fetch.ts'
import type { RecordedPlace } from './history.ts'

export interface PayloadReaderDeps {
  readonly host: Host
  readonly isLive: boolean
  /** The payload of that entry cannot be read, or not be fetched if that is null. */
  unreadable(error: unknown, at: RecordedPlace | null): void
  decode(text: string, entry: EntryPlace): unknown
}

/** The entry that a payload was written for. */
type EntryPlace = Pick<Entry, 'seq' | 'kind' | 'name'>

export class PayloadReader {
  /** A payload is on its way from where large values are kept. */
  isFetching = false
  private readonly deps: PayloadReaderDeps

  constructor(deps: PayloadReaderDeps) {
    this.deps = deps
  }

  /** Hands on the text of a payload, as the codec wrote it. */
  fetch(kept: string, use: (text: string) => void): void {
    const text = this.deps.host.payloads.fetch(kept)
    if (typeof text === 'string') use(text)
    else this.await(kept, text, use)
  }

  /** Hands on the value of a payload, which may have been offloaded. */
  read(kept: string, entry: EntryPlace, use: (value: unknown) => void): void {
    const text = this.deps.host.payloads.fetch(kept)
    if (typeof text === 'string') this.decode(text, entry, use)
    else this.await(kept, text, (fetched) => this.decode(fetched, entry, use))
  }

  /** Hands on the value of a payload that is at hand as the codec wrote it. */
  decode(text: string, entry: EntryPlace, use: (value: unknown) => void): void {
    let value: unknown
    try {
      value = this.deps.decode(text, entry)
    } catch (error) {
      return this.deps.unreadable(error, entry)
    }
    use(value)
  }

  private await(kept: string, first: Promise<string>, use: (text: string) => void): void {
    const { deps } = this
    this.isFetching = true
    void fetchPatiently(deps.host, first, kept, () => deps.isLive).then(
      (fetched) => {
        this.isFetching = false
        if (deps.isLive) use(fetched)
      },
      (error: unknown) => deps.unreadable(error, null),
    )
  }
}
