// Reads the payloads of recorded entries for one frame: fetches those that were offloaded, decodes them, and hands on the
// value. An inline payload is handed on before the call returns, without a promise. An offloaded one is waited for, however
// long that takes; nothing is handed on once the frame is gone. A payload that cannot be read goes to `unreadable`, which
// pauses the run.

import type { Entry } from '../../core/model/entry.ts'
import { fetchPatiently } from '../../core/runtime/fetch.ts'
import type { FrameState } from '../frame/frame-state.ts'
import { decodeAt } from './journal-text.ts'

/** The entry that a payload was written for. */
type EntryPlace = Pick<Entry, 'seq' | 'kind' | 'name'>

export class PayloadReader {
  /** A payload is on its way from where large values are kept. */
  isFetching = false
  private readonly state: FrameState

  constructor(state: FrameState) {
    this.state = state
  }

  /** Hands on the text of a payload, as the codec wrote it. */
  fetch(kept: string, use: (text: string) => void): void {
    const text = this.state.host.payloads.fetch(kept)
    if (typeof text === 'string') use(text)
    else this.await(kept, text, use)
  }

  /** Hands on the value of a payload, which may have been offloaded. */
  read(kept: string, entry: EntryPlace, use: (value: unknown) => void): void {
    const text = this.state.host.payloads.fetch(kept)
    if (typeof text === 'string') this.decode(text, entry, use)
    else this.await(kept, text, (fetched) => this.decode(fetched, entry, use))
  }

  /** Hands on the value of a payload that is at hand as the codec wrote it. */
  decode(text: string, entry: EntryPlace, use: (value: unknown) => void): void {
    let value: unknown
    try {
      value = decodeAt(this.state, text, entry)
    } catch (error) {
      return this.state.frame.unreadable(error, entry)
    }
    use(value)
  }

  private await(kept: string, first: Promise<string>, use: (text: string) => void): void {
    const { state } = this
    this.isFetching = true
    void fetchPatiently(state.host, first, kept, () => state.isLive).then(
      (fetched) => {
        this.isFetching = false
        if (state.isLive) use(fetched)
      },
      (error: unknown) => state.frame.unreadable(error, null),
    )
  }
}
