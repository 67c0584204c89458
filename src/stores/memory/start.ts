// The tables as the rules of a start read and write them.

import { newRow } from '../../core/rules/new-row.ts'
import type { StartWork, Twin } from '../../core/rules/start.ts'
import type { Run } from '../../core/model/run.ts'
import type { NewRun, RunStart } from '../../store.ts'
import { MemoryUnitOfWork } from './unit-of-work.ts'
import { Row } from './tables/row.ts'

export class MemoryStartWork extends MemoryUnitOfWork implements Omit<StartWork, 'follow'> {
  twin({ id }: NewRun): Twin | undefined {
    const row = this.tables.rows.get(id)
    return row === undefined ? undefined : { run: row.view(), transition: row.entries[0]?.transition }
  }

  sameStart(given: NewRun): Run | undefined {
    return this.tables.keys.sameStart(given)?.view()
  }

  keyRival(given: NewRun): Run | undefined {
    return this.tables.keys.holder(given)?.view()
  }

  hasEnded(session: string): boolean {
    return this.tables.bounds.sessions.hasEnded(session)
  }

  insert(given: RunStart, isLeased: boolean): Run {
    const { tables, now } = this
    const run = newRow(given, now, isLeased)
    const row = new Row(run)
    tables.rows.set(given.id, row)
    tables.append(row, given.transition, [given.first], now)
    tables.keys.take(row)
    tables.bounds.note(row)
    if (run.due !== null) tables.schedule(row, run.due, now)
    if (given.messages === undefined) return run
    for (const draft of given.messages) this.put(draft)
    return row.view()
  }
}
