// Mailboxes. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement. So a run
// that is being parked is either found asleep and woken, or its holder finds the counter moved.

import { isTerminal } from '../../../core/run.ts'
import type { Delivered, NewMessage } from '../../../store.ts'
import type { Execution } from './execution.ts'
import { byId, type MessageRow, type RunRow } from './tables.ts'

export async function deliverMessages(x: Execution, messages: readonly NewMessage[]): Promise<readonly Delivered[]> {
  const { runs, messages: mailbox } = x.tables
  const query = { at: ['id', messages.map(({ runId }) => runId)], order: byId } as const
  const locked = await x.run('deliver.lock', (tx) =>
    x.is('no-lock-on-deliver') ? tx.select(runs, query) : tx.lock(runs, query),
  )
  const now = x.now()
  const rows = new Map(locked.map((row) => [row.id, row]))
  const stored = await x.run('deliver.look', (tx) =>
    tx.select(mailbox, { at: ['id', messages.map(({ runId, id }) => `${runId} ${id}`)] }),
  )
  const known = new Map(stored.map(({ runId, id, outcome }) => [`${runId} ${id}`, outcome]))
  const fresh: MessageRow[] = []
  const answers = messages.map((message): Delivered => {
    const { id, runId, name, data } = message
    const row = rows.get(runId)
    if (row === undefined) return { outcome: 'target-not-found' }
    const before = known.get(`${runId} ${id}`)
    if (before !== undefined) return { outcome: before }
    if (row.deletedAt !== null) return { outcome: 'target-not-found' }
    if (isTerminal(row.status)) return { outcome: 'target-terminated', status: row.status }
    const woken = row.status === 'waiting'
    const outcome = woken ? 'delivered' : 'queued'
    const position = row.inbox + 1
    rows.set(runId, { ...row, inbox: position, ...(woken ? wokenAt(row, now) : {}) })
    known.set(`${runId} ${id}`, outcome)
    fresh.push({ id, runId, name, data, position, at: now, outcome, takenBy: null })
    if (woken) x.hints.push({ kind: 'ready', type: row.type })
    return { outcome }
  })
  if (fresh.length === 0) return answers
  const bumped = [...new Set(fresh.map(({ runId }) => runId))]
  await x.run('deliver.bump', (tx) =>
    tx.update(runs, { at: ['id', bumped], order: byId }, (row) => bump(row, rows.get(row.id) ?? row)),
  )
  await x.run('deliver.insert', (tx) => tx.insert(mailbox, fresh))
  return answers
}

/** A run that is due already keeps its place: whoever is written to often must not be claimed last. */
function wokenAt({ due }: RunRow, now: number): Pick<RunRow, 'readiness' | 'due'> {
  return { readiness: 'ready', due: Math.min(due ?? now, now) }
}

/** Sets the columns that a message changes, and no others. */
function bump(row: RunRow, { inbox, readiness, due, status }: RunRow): RunRow {
  return status === 'waiting' ? { ...row, inbox, readiness, due } : { ...row, inbox }
}
