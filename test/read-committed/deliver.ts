// Mailboxes and topics. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement.
// So a run that is being parked is either found asleep and woken, or its holder finds the counter moved. What is sent to a
// topic takes the topic, and those who wait on it, in the same way.

import { settleUnread } from '../../src/core/rules/exchange.ts'
import { deliveryOutcomeOf } from '../../src/core/model/message.ts'
import { isMailboxFull, sendToTopic } from '../../src/core/rules/quota.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../src/store.ts'
import { lendBooks, type LockedUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { byId, messageOf, type RunRow } from './database/tables.ts'
import type { Query } from './database/transaction.ts'

type New = NewMessage | NewBroadcast

export function deliverMessages(x: Execution, messages: readonly New[]): Promise<readonly Delivered[]> {
  const ids = messages.flatMap((one) => ('topic' in one ? [] : [one.runId]))
  return exchange(x, {
    method: 'deliver',
    ids,
    mayTouch: messages.some((one) => 'topic' in one || one.policy?.onUnread === 'broadcast'),
    mustLook: true,
    lend: lendBooks,
    lock(tx, wanted, options) {
      const query: Query<RunRow> = { at: ['id', wanted], order: byId }
      return x.is('no-lock-on-deliver') ? tx.select(x.tables.runs, query) : tx.lock(x.tables.runs, query, options)
    },
    decide: async (unitOfWork) =>
      messages.map((one) => ('topic' in one ? send(unitOfWork, one) : put(unitOfWork, one))),
  })
}

function send(unitOfWork: LockedUnitOfWork, sent: NewBroadcast): Delivered {
  return sendToTopic(unitOfWork, { ...sent, policy: structuredClone(sent.policy) })
}

function put(unitOfWork: LockedUnitOfWork, draft: NewMessage): Delivered {
  const row = unitOfWork.row(draft.runId)
  if (row === undefined) return { outcome: 'target-not-found' }
  const known = unitOfWork.message(draft.runId, draft.id)
  if (known !== undefined) return { ...answerOf(known.outcome, row), repeated: true }
  if (row.deletedAt !== null) return { outcome: 'target-not-found' }
  if (!isTerminal(row.status)) {
    const unread = (most: number): number => unitOfWork.unread(row.id, 0, most).messages.length
    if (isMailboxFull(row, draft, unread)) return { outcome: 'full' }
    const outcome = deliveryOutcomeOf(row, draft.name)
    unitOfWork.put(draft)
    return answerOf(outcome, row)
  }
  if (draft.policy !== null) {
    unitOfWork.put(draft)
    settleUnread(unitOfWork, messageOf(unitOfWork.message(draft.runId, draft.id) as Parameters<typeof messageOf>[0]))
  }
  return answerOf('target-terminated', row)
}

function answerOf(outcome: Delivered['outcome'], { status }: RunRow): Extract<Delivered, { repeated?: true }> {
  return outcome === 'delivered' || outcome === 'queued' ? { outcome } : { outcome: 'target-terminated', status }
}
