// The runs that time, or the death of a holder, can take: which rows are held, which have a bound on their time, and which of
// them a rescue must look at now. A row that is over, or that no session holds and no time bounds, is not in here.

import { isOrphaned, isOverdue, nextRescue, rescueOrder } from '../../../core/rules/claims/rescue.ts'
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

  /** Rows whose holder is dead or past its deadline, and rows whose time is over and that no session holds. */
  toRescue(now: number): readonly Row[] {
    const isAlive = (session: string): boolean => this.sessions.isAlive(session)
    const orphans = Array.from(this.held).filter((row) => isOrphaned(row, isAlive, now))
    const over = Array.from(this.timed).filter((row) => isOverdue(row, now))
    return [...orphans, ...over].sort(rescueOrder)
  }

  /** Rows that this session holds, in the order of their ids. */
  heldBy(session: string): readonly Row[] {
    return Array.from(this.held)
      .filter((row) => row.session === session)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Some rows of sessions that ended long ago go, unless a row still names them. */
  forgetSessions(now: number): void {
    this.sessions.forget(now, (id) => this.heldBy(id).length > 0)
  }

  /** When the next session, deadline or timeout runs out. */
  next(): number | null {
    return nextRescue([...this.held, ...this.timed], this.sessions.expiries())
  }
}
