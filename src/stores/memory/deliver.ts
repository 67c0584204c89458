// Mailboxes and topics: what is sent to a run, and what is sent to whoever waits on a name.

import { settleUnread } from '../../core/rules/exchange.ts'
import type { DeliveryOutcome } from '../../core/model/message.ts'
import { isMailboxFull, sendToTopic } from '../../core/rules/quota.ts'
import { isTerminal, type RunStatus } from '../../core/model/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../store.ts'
import type { MemoryUnitOfWork } from './unit-of-work.ts'

export function deliverOne(unitOfWork: MemoryUnitOfWork, sent: NewMessage | NewBroadcast): Delivered {
  return 'topic' in sent ? sendToTopic(unitOfWork, sent) : deliverMessage(unitOfWork, sent)
}

function deliverMessage(unitOfWork: MemoryUnitOfWork, draft: NewMessage): Delivered {
  const row = unitOfWork.tables.rows.get(draft.runId)
  if (row === undefined) return { outcome: 'target-not-found' }
  const known = row.mailbox?.get(draft.id)
  if (known !== undefined) return { ...answerOf(known.outcome, row.status), repeated: true }
  if (row.deletedAt !== null) return { outcome: 'target-not-found' }
  if (!isTerminal(row.status)) {
    if (isMailboxFull(row, draft, (most) => row.unread(most))) return { outcome: 'full' }
    return answerOf(unitOfWork.receive(draft), row.status)
  }
  if (draft.policy !== null) {
    unitOfWork.put(draft)
    // Only this one: what else is unread may be left to a chore.
    const { messages } = unitOfWork.unread(row.id, row.inbox - 1, 1)
    for (const message of messages) settleUnread(unitOfWork, message)
  }
  return { outcome: 'target-terminated', status: row.status }
}

function answerOf(
  outcome: DeliveryOutcome,
  status: RunStatus,
):
  { readonly outcome: 'delivered' | 'queued' } | { readonly outcome: 'target-terminated'; readonly status: RunStatus } {
  return outcome === 'target-terminated' ? { outcome, status } : { outcome }
}
