// The way in which everything that this process sends reaches the store: gathered, in the order in which it was sent, with
// one call for each flush. What goes to one run, or to one topic, is in at most one flush at a time, so that its order is kept
// also while two of them are on their way.

import { bug } from '../core/error.ts'
import type { Ports } from '../core/ports.ts'
import type { Delivered, MailRequest, NewBroadcast, NewMessage, Store } from '../store.ts'
import { Batcher } from './batcher.ts'

/** What can be sent: to a run, or to a topic. */
export type Mail = NewMessage | NewBroadcast

/** For those who read a journal and do not care what lies in the mailbox. */
export const noMail: MailRequest = { names: [], limit: 0 }

/** A message, and the how-manieth it was. */
interface Numbered {
  readonly order: number
  readonly mail: Mail
}

type Answers = ReadonlyMap<Numbered, Delivered>

/** What a message costs besides its payload: it keeps a flush to a few thousand of them. */
const overheadBytes = 1_000

export class Mailer {
  private readonly batcher: Batcher<readonly Numbered[], Answers, Delivered>
  private sent = 0

  /** `told` learns of every answer before its sender does. */
  constructor(
    store: Pick<Store, 'deliver'>,
    ports: Ports,
    told: (mail: readonly Mail[], answers: readonly Delivered[]) => void,
  ) {
    this.batcher = new Batcher(ports, {
      flush: async (units) => {
        const all = units.flat().sort((one, other) => one.order - other.order)
        const mail = all.map((one) => one.mail)
        const answers = await store.deliver(mail)
        if (answers.length !== all.length) throw bug(`${all.length} messages got ${answers.length} answers`)
        told(mail, answers)
        const byMessage: Answers = new Map(all.map((one, at) => [one, answers[at] as Delivered]))
        return units.map(() => byMessage)
      },
      keyOf: ([first]) => addressOf((first as Numbered).mail),
      sizeOf: (numbered) => numbered.reduce((bytes, { mail }) => bytes + overheadBytes + mail.data.length, 0),
      resultOf: ([only], answers) => answers.get(only as Numbered) as Delivered,
      merge: { may: () => true, both: (first, second) => [...first, ...second] },
    })
  }

  /** Sends a message; waits when too many are on their way already. */
  send(mail: Mail): Promise<Delivered> {
    const item = [{ order: this.sent, mail }]
    this.sent += 1
    if (this.batcher.isFull) return this.batcher.room().then(() => this.batcher.submit(item))
    return this.batcher.submit(item)
  }

  drain(): Promise<void> {
    return this.batcher.drain()
  }

  close(): void {
    this.batcher.close()
  }
}

/** A run and a topic never have the same: the id of a run has no space. */
function addressOf(mail: Mail): string {
  return 'topic' in mail ? `topic ${mail.topic.name}` : mail.runId
}
