// Mailboxes and topics. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement.
// So a run that is being parked is either found asleep and woken, or its holder finds the counter moved. What is sent to a
// topic takes the topic, and those who wait on it, in the same way.

import { giveUp } from '../../../core/exchange.ts'
import { receptionOf } from '../../../core/message.ts'
import { isMailboxFull, sendToTopic } from '../../../core/quota.ts'
import { isTerminal } from '../../../core/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../../store.ts'
import { lendBooks, type LentBooks } from './books.ts'
import type { Execution } from './execution.ts'
import { reaching } from './reaching.ts'
import { byId, messageOf, type RunRow } from './tables.ts'
import type { Query } from './transaction.ts'

type New = NewMessage | NewBroadcast

export function deliverMessages(x: Execution, messages: readonly New[]): Promise<readonly Delivered[]> {
  const ids = messages.flatMap((one) => ('topic' in one ? [] : [one.runId]))
  return reaching(x, {
    method: 'deliver',
    ids,
    mayReach: messages.some((one) => 'topic' in one || one.policy?.onUnread === 'broadcast'),
    mustLook: true,
    lend: lendBooks,
    lock(tx, wanted, options) {
      const query: Query<RunRow> = { at: ['id', wanted], order: byId }
      return x.is('no-lock-on-deliver') ? tx.select(x.tables.runs, query) : tx.lock(x.tables.runs, query, options)
    },
    decide: async (books) => messages.map((one) => ('topic' in one ? send(books, one) : put(books, one))),
  })
}

function send(books: LentBooks, sent: NewBroadcast): Delivered {
  return sendToTopic(books, { ...sent, policy: structuredClone(sent.policy) })
}

function put(books: LentBooks, letter: NewMessage): Delivered {
  const row = books.row(letter.runId)
  if (row === undefined) return { outcome: 'target-not-found' }
  const known = books.message(letter.runId, letter.id)
  if (known !== undefined) return { ...told(known.outcome, row), repeated: true }
  if (row.deletedAt !== null) return { outcome: 'target-not-found' }
  if (!isTerminal(row.status)) {
    const unread = (most: number): number => books.unread(row.id, 0, most).messages.length
    if (isMailboxFull(row, letter, unread)) return { outcome: 'full' }
    const outcome = receptionOf(row, letter.name)
    books.put(letter)
    return told(outcome, row)
  }
  if (letter.policy !== null) {
    books.put(letter)
    giveUp(books, messageOf(books.message(letter.runId, letter.id) as Parameters<typeof messageOf>[0]))
  }
  return told('target-terminated', row)
}

function told(outcome: Delivered['outcome'], { status }: RunRow): Extract<Delivered, { repeated?: true }> {
  return outcome === 'delivered' || outcome === 'queued' ? { outcome } : { outcome: 'target-terminated', status }
}
