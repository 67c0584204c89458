// Encrypts the payloads of entries and messages with the current key of the codec, and names those that changed.

import type { Entry } from '../../core/model/entry.ts'
import type { Message } from '../../core/model/message.ts'
import { damagedRow } from '../../core/payload/codec.ts'
import type { Payloads } from '../../core/payload/payload.ts'
import { endPlace, messagePlace, type Place } from '../../core/payload/place.ts'
import { endedIn } from '../../core/model/engine-message.ts'
import type { PayloadRewrite } from '../../store.ts'
import { placeOfData } from '../read/run-view.ts'
import { quotedText } from '../../core/text/printable.ts'

/** Throws PAYLOAD_CORRUPT at a payload that cannot be read. */
export class PayloadRewriter {
  private readonly payloads: Payloads

  constructor(payloads: Payloads) {
    this.payloads = payloads
  }

  async entries(runId: string, read: readonly Entry[]): Promise<PayloadRewrite['entries']> {
    const entries: { seq: number; data: string }[] = []
    for (const entry of read) {
      if (entry.kind === 'damaged') {
        const place = placeOfData(runId, entry, this.payloads)
        throw damagedRow(place, `entry ${entry.seq}`, entry.meta.why)
      }
      if (entry.data === null) continue
      const place = placeOfData(runId, entry, this.payloads)
      const data = staysInline.has(entry.kind)
        ? this.payloads.rekey(entry.data, place)
        : await this.kept(entry.data, place)
      if (data !== entry.data) entries.push({ seq: entry.seq, data })
    }
    return entries
  }

  async messages(read: readonly Message[]): Promise<PayloadRewrite['messages']> {
    const messages: { id: string; data: string }[] = []
    for (const message of read) {
      const sent = sentIn(this.payloads.namespace, message)
      if (sent === null) continue
      const data = await this.kept(sent.payload, sent.place)
      if (data !== sent.payload) messages.push({ id: message.id, data: sent.with(data) })
    }
    return messages
  }

  /** The kept form of the same payload under the current key. An offloaded payload is offloaded once more. */
  private async kept(kept: string, place: Place): Promise<string> {
    const text = await this.payloads.fetch(kept)
    const anew = this.payloads.rekey(text, place)
    return anew === text ? kept : this.payloads.keep(anew, place)
  }
}

/** The payloads of these entries are never offloaded. */
const staysInline: ReadonlySet<Entry['kind']> = new Set(['recorded', 'issued', 'paused', 'resumed', 'retried'])

interface Sent {
  /** As it is kept. */
  readonly payload: string
  /** The place that it was written for. */
  readonly place: Place
  /** The data of the message with another payload. */
  readonly with: (payload: string) => string
}

/** The payload of a message; null if it has none. Throws PAYLOAD_CORRUPT if the engine cannot have written the message. */
function sentIn(namespace: string, message: Message): Sent | null {
  const { kind, name, data } = message
  if (kind === 'refused') return null
  const place = messagePlace(namespace, message)
  if (kind !== 'ended') return { payload: data, place, with: (payload) => payload }
  const ended = endedIn(message)
  if (ended === null) throw damagedRow(place, `message ${quotedText(message.id)}`, 'no run can have ended so')
  if (ended.status === 'not-found' || ended.data === null) return null
  const withPayload = (payload: string): string => JSON.stringify({ ...ended, data: payload })
  return { payload: ended.data, place: endPlace(namespace, name, ended), with: withPayload }
}
