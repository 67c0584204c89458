// The runs that time, or the death of a holder, can take: which rows are held, which have a bound on their time, and which of
// them a rescue must look at now. A row that is over, or that no session holds and no time bounds, is not in here.

import { isOrphaned, isOverdue, nextRescue } from '../../../core/rules/claims/rescue.ts'
import { Sessions } from './sessions.ts'
import type { Row } from './row.ts'

export class Bounds {
  readonly sessions = new Sessions()
  /** Rows that a session holds. */
  private readonly held = new Set<Row>()
  /** Rows that time will end, by their timeout or their expiry. */
  private readonly timed = new Set<Row>()

  /** A row has changed hands or come to its end. */
  note(row: Row): void {
    if (row.session === null) this.held.delete(row)
    else this.held.add(row)
    if (row.endedAt === null && (row.timeoutAt !== null || row.expiresAt !== null)) this.timed.add(row)
    else this.timed.delete(row)
  }

  /** Rows whose holder is dead or past its deadline. */
  orphans(now: number): readonly Row[] {
    const isAlive = (session: string): boolean => this.sessions.isAlive(session)
    return byId(this.held, (row) => isOrphaned(row, isAlive, now))
  }

  /** Rows whose time is over and that no session holds. */
  over(now: number): readonly Row[] {
    return byId(this.timed, (row) => isOverdue(row, now))
  }

  /** Rows that this session holds. */
  heldBy(session: string): readonly Row[] {
    return byId(this.held, (row) => row.session === session)
  }

  /** When the next session, deadline or timeout runs out. */
  next(): number | null {
    return nextRescue([...this.held, ...this.timed], this.sessions.expiries())
  }
}

/** Every rescue takes runs in the same order, so that none is skipped for ever. */
function byId(rows: Iterable<Row>, chosen: (row: Row) => boolean): readonly Row[] {
  return Array.from(rows)
    .filter(chosen)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}
