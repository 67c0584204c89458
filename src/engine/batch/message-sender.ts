// The path of every message of this process to the store: gathered, in the order in which they were sent, with one call for
// each flush. The messages to one run, or to one topic, are in at most one flush at a time, so that their order is kept also
// while two flushes are on their way.

import { utf8Weight } from '../../core/text/bytes.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import type { BatchOptions, Busy, Delivered, MailboxRequest, NewBroadcast, NewMessage, Store } from '../../store.ts'
import { Batcher } from './batcher.ts'
import { done, NotDone, CallerTimeouts, type Called, type Caller } from './caller-timeouts.ts'
import { quotedText } from '../../core/text/printable.ts'

/** A message to a run, or to a topic. */
export type OutgoingMessage = NewMessage | NewBroadcast

/** For readers of a journal that do not need the mailbox. */
export const noMessages: MailboxRequest = { names: [], limit: 0 }

/** A message, its number, and the answer of the store; null as long as there is none. */
interface Numbered {
  readonly order: number
  readonly message: OutgoingMessage
  answer: Delivered | NotDone | null
}

/** A message, whose sender waits. */
type Sent = Caller<Numbered>

/** The size of a message besides its payload: it limits a flush to a few thousand of them. */
const overheadBytes = 1_000

export interface MailerOptions {
  /** How long a sender waits for an answer. */
  readonly limitMs: () => number
  readonly isAnswering?: (() => Promise<boolean>) | undefined
  /** Learns of every answer before its sender does. */
  readonly noteDelivered: (messages: readonly OutgoingMessage[], answers: readonly Delivered[]) => void
}

export class MessageSender {
  private readonly batcher: Batcher<readonly Sent[], readonly Sent[], Delivered>
  private readonly callerTimeouts: CallerTimeouts<Numbered>
  private sent = 0

  constructor(store: Pick<Store, 'deliver'>, ports: Ports, { limitMs, isAnswering, noteDelivered }: MailerOptions) {
    this.callerTimeouts = new CallerTimeouts({
      clock: ports.clock,
      limitMs,
      called: ({ message }) => calledMessage(message),
    })
    const deliver = async (
      live: readonly Numbered[],
      options: BatchOptions,
    ): Promise<readonly (Delivered | Busy)[]> => {
      const answers = await store.deliver(
        live.map((one) => one.message),
        options,
      )
      const messages: OutgoingMessage[] = []
      const answered: Delivered[] = []
      answers.forEach((answer, at) => {
        if (answer.outcome === 'busy') return
        messages.push((live[at] as Numbered).message)
        answered.push(answer)
      })
      noteDelivered(messages, answered)
      return answers
    }
    this.batcher = new Batcher(ports, {
      isAnswering,
      limitMs,
      flush: async (units, options) => {
        // The other items of a unit that is sent again because one of them was busy have their answers.
        const open = units.flat().filter(({ given }) => given.answer === null)
        const all = open.sort((one, other) => one.given.order - other.given.order)
        const answers = await this.callerTimeouts.flush(all, (live) => deliver(live, options), options)
        all.forEach((one, at) => {
          const answer = answers[at] as Delivered | Busy | NotDone
          if (answer instanceof NotDone || answer.outcome !== 'busy') one.given.answer = answer
        })
        return units
      },
      isBusy: (unit) => unit.some(({ given }) => given.answer === null),
      nameOf: ([first]) => nameOf((first as Sent).given.message),
      keyOf: ([first]) => addressOf((first as Sent).given.message),
      sizeOf: (sent) => sent.reduce((bytes, { given }) => bytes + overheadBytes + utf8Weight(given.message.data), 0),
      resultOf: ([only]) => done((only as Sent).given.answer as Delivered | NotDone),
      merge: { may: () => true, both: (first, second) => [...first, ...second] },
    })
  }

  /** Sends a message; waits when too many are on their way already. */
  send(message: OutgoingMessage, abortSignal?: AbortSignal): Promise<Delivered> {
    const item: Numbered = { order: this.sent, message, answer: null }
    this.sent += 1
    return this.callerTimeouts.submit(this.batcher, item, alone, abortSignal)
  }

  drain(): Promise<void> {
    return this.batcher.drain()
  }

  close(): void {
    this.batcher.close()
  }
}

function alone(sent: Sent): readonly Sent[] {
  return [sent]
}

/** A run and a topic never have the same: the id of a run has no space. */
function addressOf(message: OutgoingMessage): string {
  return 'topic' in message ? `topic ${message.topic.name}` : message.runId
}

function nameOf(message: OutgoingMessage): string {
  return 'topic' in message
    ? `the broadcasts to the topic ${quotedText(message.topic.name)}`
    : `the messages to run ${message.runId}`
}

/** The name of a message in errors. A completion is known by its completion token. */
function calledMessage(message: OutgoingMessage): Called {
  const what = 'topic' in message ? `Broadcast ${message.id}` : `Signal ${message.id} to run ${message.runId}`
  const isToken = !('topic' in message) && message.id === message.name
  const again = isToken
    ? 'Complete the token again: the first completion counts.'
    : `Send it again with { id: '${message.id}' }: it is taken once.`
  const details = 'topic' in message ? { signalId: message.id } : { signalId: message.id, runId: message.runId }
  return { what, again, details }
}
