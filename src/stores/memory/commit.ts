// The effect of a transition on the row of a run, in place: a commit of the memory store makes no new row.

import { advanceColumns, leaveColumns } from '../../core/rules/advance.ts'
import type { Started } from '../../core/model/new-run.ts'
import {
  commit,
  judge,
  type Committed,
  type EntryMark,
  type Keyed,
  type StartingWork,
} from '../../core/rules/commit.ts'
import type { ControlWork } from '../../core/rules/control-run.ts'
import { follow, startRun, type Followed, type StartWork } from '../../core/rules/start.ts'
import { isTerminal, type Run } from '../../core/model/run.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { Row } from './tables/row.ts'
import { MemoryStartWork } from './start.ts'
import type { Tables } from './tables/tables.ts'

/** The tables as all rules read and write them. */
export class MemoryWork extends MemoryStartWork implements StartWork, StartingWork, ControlWork {
  entryAt(runId: string, seq: number): EntryMark | undefined {
    return this.row(runId).entries[seq - 1]
  }

  keyHolder(run: Keyed): string | null {
    return this.tables.keys.holder(run)?.id ?? null
  }

  hasTransition(runId: string, id: string): boolean {
    return this.row(runId).entries.some(({ transition }) => transition === id)
  }

  follow(decided: Transition): Followed {
    return follow(this, decided)
  }

  hasMessageAfter({ runId }: Transition, after: number, names: readonly string[] | null): boolean {
    return this.row(runId).hasMessageAfter(after, names)
  }

  advance({ id }: Run, transition: Transition): Run {
    const row = this.row(id)
    advance(this.tables, row, transition, this.now)
    return row
  }

  take(runId: string, ids: readonly string[], seq: number): void {
    this.row(runId).take(ids, seq)
  }

  startChildren({ outbound }: Transition): readonly Started[] {
    return (outbound?.starts ?? []).map(({ run }) => startRun(this, run))
  }

  /** The row itself, which is as it is by now. */
  present(run: Run): Run {
    return run
  }

  leave(_before: Run, kept: Run, transition: Transition, isReleased: boolean): Run {
    if (isReleased) leave(this.tables, this.row(kept.id), transition, this.now)
    return kept
  }
}

export function commitAll(unitOfWork: MemoryWork, transitions: readonly Transition[]): readonly Committed[] {
  return transitions.map((transition) => commitOne(unitOfWork, transition))
}

function commitOne(unitOfWork: MemoryWork, transition: Transition): Committed {
  const row = unitOfWork.tables.rows.get(transition.runId)
  return judge(unitOfWork, row, transition) ?? commit(unitOfWork, row as Row, transition)
}

/** Appends its entries; the lease stays. */
function advance(tables: Tables, row: Row, transition: Transition, now: number): void {
  const { id, append, undo, continues } = transition
  const columns = advanceColumns(row, transition, now)
  tables.append(row, id, append, now, columns)
  if (continues !== null) tables.keys.free(row)
  row.adoptAdvance(columns)
  if (continues !== null) tables.keys.take(row)
  if (undo === 'due') tables.bounds.note(row)
}

/** Ends the lease and leads the run to the status that the transition asks for. */
function leave(tables: Tables, row: Row, transition: Transition, now: number): void {
  // Without a lease it was parked, perhaps until a time.
  if (row.place !== -1) tables.queues.remove(row, 'idle')
  row.adoptLeave(leaveColumns(row, transition, now))
  tables.bounds.note(row)
  if (isTerminal(row.status)) tables.end(row)
  else if (row.due !== null) tables.schedule(row, row.due, now)
}
