// Mailboxes and topics. A delivery takes the run first, whatever that is doing, and looks in the next statement.
// So a run that is being parked is either found asleep and woken, or its holder finds the counter moved. What is sent to a
// topic takes the topic, and those who wait on it, in the same way.

import { deliver } from '../../src/core/rules/messages/deliver.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../src/store.ts'
import { lendUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { byId, type RunRow } from './database/tables.ts'
import type { Query } from './database/transaction.ts'

type New = NewMessage | NewBroadcast

export function deliverMessages(x: Execution, messages: readonly New[]): Promise<readonly Delivered[]> {
  const ids = messages.flatMap((one) => ('topic' in one ? [] : [one.runId]))
  return exchange(x, {
    method: 'deliver',
    ids,
    mayTouch: messages.some((one) => 'topic' in one || one.policy?.onUnread === 'broadcast'),
    mustLook: true,
    lend: lendUnitOfWork,
    lock(tx, wanted, options) {
      const query: Query<RunRow> = { at: ['id', wanted], order: byId }
      return x.is('no-lock-on-deliver') ? tx.select(x.tables.runs, query) : tx.lock(x.tables.runs, query, options)
    },
    decide: async (unitOfWork) =>
      messages.map((one) =>
        deliver(unitOfWork, 'topic' in one ? undefined : unitOfWork.run(one.runId), structuredClone(one)),
      ),
  })
}
