// What is sent to runs and to topics. A message's position is the run's `inbox` after it, which only grows: first in, first
// out. What is sent to a topic goes to those who wait on it, by the rules of the exchange.

import { giveUp } from '../../core/exchange.ts'
import type { Reception } from '../../core/message.ts'
import { isMailboxFull, sendToTopic } from '../../core/quota.ts'
import { isTerminal, type Run } from '../../core/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteBooks } from './books.ts'

export function deliverOne(batch: Batch, sent: NewMessage | NewBroadcast): Delivered {
  const books = new SqliteBooks(batch)
  return 'topic' in sent ? sendToTopic(books, sent) : deliverLetter(batch, books, sent)
}

function deliverLetter(batch: Batch, books: SqliteBooks, letter: NewMessage): Delivered {
  const run = books.run(letter.runId)
  if (run === undefined) return { outcome: 'target-not-found' }
  const known = knownOutcome(batch, letter)
  if (known !== undefined) return { ...answerOf(known, run), repeated: true }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  if (isTerminal(run.status)) {
    // Without a policy it would only be discarded.
    if (letter.policy !== null) giveUpLetter(books, letter, run)
    return { outcome: 'target-terminated', status: run.status }
  }
  if (isMailboxFull(run, letter, (most) => books.depth(run, most))) return { outcome: 'full' }
  return answerOf(books.receive(letter, run), run)
}

/** It came too late: it lies in the mailbox, so that its id is known, and its policy says what becomes of it. */
function giveUpLetter(books: SqliteBooks, { id, kind, name, data, policy }: NewMessage, run: Run): void {
  const letter = { id, runId: run.id, kind, name, data, policy }
  books.receive(letter, run)
  giveUp(books, { ...letter, position: run.inbox + 1, at: books.now })
}

type Answer = Extract<Delivered, { readonly repeated?: true }>

function answerOf(outcome: Reception, { status }: Run): Answer {
  return outcome === 'target-terminated' ? { outcome, status } : { outcome }
}

// The index is named, or Turso walks the whole mailbox.
export const knownSql = `
  select outcome from messages indexed by messages_id where shard = 0 and run_id = ? and id = ?`

/** What the sender of this message was told the first time. */
function knownOutcome({ db }: Batch, { runId, id }: NewMessage): Reception | undefined {
  const row = db.get(knownSql, [runId, id])
  return row?.['outcome'] as Reception | undefined
}
