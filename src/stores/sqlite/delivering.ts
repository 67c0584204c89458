// Mailboxes. A message's position is the run's `inbox` after it, which only grows: first in, first out.

import { isTerminal } from '../../core/run.ts'
import type { Delivered, NewMessage } from '../../store.ts'
import type { Batch } from './batch.ts'
import { readRun } from './reading.ts'

export function deliverOne(batch: Batch, message: NewMessage): Delivered {
  const { db, now } = batch
  const run = readRun(db, message.runId)
  if (run === undefined) return { outcome: 'target-not-found' }
  const known = knownOutcome(batch, message)
  if (known !== undefined) return { outcome: known }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  if (isTerminal(run.status)) return { outcome: 'target-terminated', status: run.status }

  const outcome = run.status === 'waiting' ? 'delivered' : 'queued'
  const position = run.inbox + 1
  insertMessage(batch, message, position, outcome)
  if (outcome === 'queued') {
    db.run('update runs set inbox = ? where shard = 0 and id = ?', [position, run.id])
    return { outcome }
  }
  // A run that is due already keeps its place: whoever is written to often must not be claimed last.
  const due = run.due === null ? now : Math.min(run.due, now)
  db.run(`update runs set inbox = ?, readiness = 'ready', due = ? where shard = 0 and id = ?`, [position, due, run.id])
  batch.ready(run.type)
  return { outcome }
}

/** What the sender of this message was told the first time. */
function knownOutcome({ db }: Batch, { runId, id }: NewMessage): 'delivered' | 'queued' | undefined {
  const row = db.get('select outcome from messages where shard = 0 and run_id = ? and id = ?', [runId, id])
  return row?.['outcome'] as 'delivered' | 'queued' | undefined
}

function insertMessage({ db, now }: Batch, message: NewMessage, position: number, outcome: string): void {
  const { runId, id, name, data } = message
  db.run(
    `insert into messages (shard, run_id, position, id, name, data, at, outcome) values (0, ?, ?, ?, ?, ?, ?, ?)`,
    [runId, position, id, name, data, now, outcome],
  )
}
