// Mailboxes and topics: what is sent to a run, and what is sent to whoever waits on a name.

import { giveUp } from '../../core/exchange.ts'
import type { Reception } from '../../core/message.ts'
import { isMailboxFull, sendToTopic } from '../../core/quota.ts'
import { isTerminal, type RunStatus } from '../../core/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../store.ts'
import type { MemoryBooks } from './books.ts'

export function deliverOne(books: MemoryBooks, sent: NewMessage | NewBroadcast): Delivered {
  return 'topic' in sent ? sendToTopic(books, sent) : deliverLetter(books, sent)
}

function deliverLetter(books: MemoryBooks, letter: NewMessage): Delivered {
  const row = books.tables.rows.get(letter.runId)
  if (row === undefined) return { outcome: 'target-not-found' }
  const known = row.mailbox?.get(letter.id)
  if (known !== undefined) return { ...answerOf(known.outcome, row.status), repeated: true }
  if (row.deletedAt !== null) return { outcome: 'target-not-found' }
  if (!isTerminal(row.status)) {
    if (isMailboxFull(row, letter, (most) => row.unread(most))) return { outcome: 'full' }
    return answerOf(books.receive(letter), row.status)
  }
  if (letter.policy !== null) {
    books.put(letter)
    // Only this one: what else is unread may be left to a chore.
    const { messages } = books.unread(row.id, row.inbox - 1, 1)
    for (const message of messages) giveUp(books, message)
  }
  return { outcome: 'target-terminated', status: row.status }
}

function answerOf(
  outcome: Reception,
  status: RunStatus,
):
  { readonly outcome: 'delivered' | 'queued' } | { readonly outcome: 'target-terminated'; readonly status: RunStatus } {
  return outcome === 'target-terminated' ? { outcome, status } : { outcome }
}
