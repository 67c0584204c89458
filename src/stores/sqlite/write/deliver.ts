// What is sent to runs and to topics. A message's position is the run's `inbox` after it, which only grows: first in, first
// out. What is sent to a topic goes to those who wait on it, by the rules of the exchange.

import { settleUnread } from '../../../core/rules/exchange.ts'
import type { DeliveryOutcome } from '../../../core/model/message.ts'
import { isMailboxFull, sendToTopic } from '../../../core/rules/quota.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'

export function deliverOne(batch: Batch, sent: NewMessage | NewBroadcast): Delivered {
  const unitOfWork = new SqliteUnitOfWork(batch)
  return 'topic' in sent ? sendToTopic(unitOfWork, sent) : deliverMessage(batch, unitOfWork, sent)
}

function deliverMessage(batch: Batch, unitOfWork: SqliteUnitOfWork, draft: NewMessage): Delivered {
  const run = unitOfWork.run(draft.runId)
  if (run === undefined) return { outcome: 'target-not-found' }
  const known = knownOutcome(batch, draft)
  if (known !== undefined) return { ...answerOf(known, run), repeated: true }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  if (isTerminal(run.status)) {
    // Without a policy it would only be discarded.
    if (draft.policy !== null) settleUnreadMessage(unitOfWork, draft, run)
    return { outcome: 'target-terminated', status: run.status }
  }
  if (isMailboxFull(run, draft, (most) => unitOfWork.depth(run, most))) return { outcome: 'full' }
  return answerOf(unitOfWork.receive(draft, run), run)
}

/** It came too late: it lies in the mailbox, so that its id is known, and its policy says what becomes of it. */
function settleUnreadMessage(
  unitOfWork: SqliteUnitOfWork,
  { id, kind, name, data, policy }: NewMessage,
  run: Run,
): void {
  const draft = { id, runId: run.id, kind, name, data, policy }
  unitOfWork.receive(draft, run)
  settleUnread(unitOfWork, { ...draft, position: run.inbox + 1, at: unitOfWork.now })
}

type Answer = Extract<Delivered, { readonly repeated?: true }>

function answerOf(outcome: DeliveryOutcome, { status }: Run): Answer {
  return outcome === 'target-terminated' ? { outcome, status } : { outcome }
}

// The index is named, or Turso walks the whole mailbox.
export const knownSql = `
  select outcome from messages indexed by messages_id where shard = 0 and run_id = ? and id = ?`

/** What the sender of this message was told the first time. */
function knownOutcome({ db }: Batch, { runId, id }: NewMessage): DeliveryOutcome | undefined {
  const row = db.get(knownSql, [runId, id])
  return row?.['outcome'] as DeliveryOutcome | undefined
}
