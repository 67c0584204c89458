// Messages to runs and to topics, by the rules of the core. A message's position is the run's `inbox` after it, which only
// grows: first in, first out.

import { deliver, type DeliveryWork } from '../../../core/rules/messages/deliver.ts'
import type { DeliveryOutcome } from '../../../core/model/message.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../../store.ts'
import type { Batch } from './batch.ts'
import { SqliteUnitOfWork } from './unit-of-work.ts'

export function deliverOne(batch: Batch, sent: NewMessage | NewBroadcast): Delivered {
  const work = new SqliteDeliveryWork(batch)
  return deliver(work, 'topic' in sent ? undefined : work.run(sent.runId), sent)
}

// The index is named, or Turso walks the whole mailbox.
export const knownSql = `
  select outcome from messages indexed by messages_id where shard = 0 and run_id = ? and id = ?`

class SqliteDeliveryWork extends SqliteUnitOfWork implements DeliveryWork {
  outcomeOf({ runId, id }: NewMessage): DeliveryOutcome | undefined {
    return this.batch.db.get(knownSql, [runId, id])?.['outcome'] as DeliveryOutcome | undefined
  }
}
