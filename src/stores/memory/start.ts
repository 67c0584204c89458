// Starting runs. What a new run must have for itself is decided before anything of it exists.

import { dueAt } from '../../core/model/due.ts'
import type { NewRun, Started } from '../../store.ts'
import type { MemoryUnitOfWork } from './unit-of-work.ts'
import { Row } from './tables/row.ts'

export function startOne(unitOfWork: MemoryUnitOfWork, run: NewRun): Started {
  const { tables, now } = unitOfWork
  const existing = tables.rows.get(run.id)
  if (existing !== undefined) {
    // Our own insert whose answer was lost carries our transition id; any other run of that id is somebody else's.
    const created = existing.entries[0]?.transition === run.transition
    return { created, taken: created ? null : 'id', run: existing.view() }
  }
  const obstacle = tables.keys.obstacle(run)
  if (obstacle !== null) return { created: false, taken: obstacle.taken, run: obstacle.row.view() }
  const row = new Row(run, now)
  tables.rows.set(run.id, row)
  tables.append(row, run.transition, [run.first], now)
  tables.keys.take(row)
  tables.bounds.note(row)
  if (run.lease !== null && !tables.bounds.sessions.hasEnded(run.lease.session)) {
    tables.lease(row, run.lease, run.leaseMs, now)
  } else tables.schedule(row, dueAt(run.due, now) ?? now, now)
  for (const draft of run.mail ?? []) unitOfWork.put(draft)
  return { created: true, taken: null, run: row.view() }
}
