// The mailbox of a run as its holder knows it. Each message is read once, first in first out; one that was taken, and may lie
// there until that is durable, is known by its position.

import type { Place } from '../../src/core/payload/codec.ts'
import type { Host } from '../../src/core/definition/definition.ts'
import { fetchPatiently } from '../../src/core/runtime/fetch.ts'
import type { Message } from '../../src/core/model/message.ts'
import { messagePlace } from '../../src/core/payload/place.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Occasion } from './program.ts'

/** Nobody notifies a holder that is busy of new messages, so it looks as often as this. */
const lookMs = 1_000

export class Mailbox {
  /** What was read and is not taken, oldest first. */
  readonly occasions = new Set<Extract<Occasion, { kind: 'message' }>>()
  /** How many messages had ever come when it was last read. */
  seen: number
  /** When a holder that is busy reads it again. */
  lookAt: number
  private readonly host: Host
  private readonly runId: string
  private lastPosition = 0

  constructor(host: Host, run: Pick<Run, 'id' | 'inbox'>) {
    this.host = host
    this.runId = run.id
    this.seen = run.inbox
    this.lookAt = host.now() + lookMs
  }

  /** Reads it, after so many messages have come. */
  async look(arrived: number): Promise<void> {
    const { messages } = await this.host.mailbox(this.runId, null)
    await this.sort(messages)
    this.seen = Math.max(this.seen, arrived)
    this.lookAt = this.host.now() + lookMs
  }

  async sort(messages: readonly Message[]): Promise<void> {
    for (const message of messages) {
      const { position, data } = message
      if (position <= this.lastPosition) continue
      this.lastPosition = position
      this.seen = Math.max(this.seen, position)
      // One that cannot be read is an occasion, too: it harms itself and is not left to be read again and again.
      const read = await readPayload(this.host, data, messagePlace(this.host.payloads.namespace, message)).then(
        (value) => () => value,
        (error: unknown) => () => {
          throw error
        },
      )
      this.occasions.add({ kind: 'message', message, read })
    }
  }
}

/** The value of a payload, wherever it is kept. */
export async function readPayload(host: Host, kept: string, place: Place, isWanted = () => true): Promise<unknown> {
  const text = host.payloads.fetch(kept)
  return host.payloads.decode(typeof text === 'string' ? text : await fetchPatiently(host, text, kept, isWanted), place)
}
