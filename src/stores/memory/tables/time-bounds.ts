// What time, or the death of a holder, can take from a run: which rows are held, which have a bound on their time, and
// which of them a rescue must look at now. A row that is over, or that nobody holds and no time bounds, is not in here.

import { isBoundByTime } from '../../../core/rules/deadline.ts'
import type { Beat } from '../../../store.ts'
import { Sessions } from './sessions.ts'
import type { Row } from './row.ts'

/** What is left over is told with the next beat. */
const unknownLeasesAtOnce = 100

export class Bounds {
  readonly sessions = new Sessions()
  /** Rows that somebody holds. */
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
    return byId(this.held, ({ status, session, deadline }) => {
      const late = deadline !== null && deadline <= now
      return (
        (status === 'running' || status === 'cancelling') &&
        (late || (session !== null && !this.sessions.isAlive(session)))
      )
    })
  }

  /** Rows whose time is over and that nobody holds. */
  over(now: number): readonly Row[] {
    return byId(this.timed, (row) => isBoundByTime(row) && isOver(row, now))
  }

  /** Rows that this session holds and does not know of. */
  unknownLeases(session: string, known: ReadonlySet<string>): Beat['unknownLeases'] {
    const rows = byId(this.held, (row) => row.session === session && !known.has(row.id))
    return rows.slice(0, unknownLeasesAtOnce).map(({ id, token }) => ({ runId: id, token }))
  }

  /** Rows that this session holds although the time for the whole run is over. */
  timedOut(session: string, now: number): readonly Row[] {
    const isHeldBySession = (row: Row): boolean =>
      row.session === session && row.status === 'running' && row.deletedAt === null && isOver(row, now)
    return byId(this.timed, isHeldBySession)
  }

  /** Rows that this session holds and of which somebody wants something. */
  controlRequests(session: string): readonly Row[] {
    return byId(this.held, (row) => row.session === session && row.controlRequest !== null)
  }

  /** When the next session, deadline or timeout runs out. */
  next(): number | null {
    let next = this.sessions.nextExpiry()
    const consider = (time: number | null): void => {
      if (time !== null && (next === null || time < next)) next = time
    }
    for (const { deadline } of this.held) consider(deadline)
    for (const row of this.timed) {
      if (!isBoundByTime(row)) continue
      consider(row.timeoutAt)
      consider(row.expiresAt)
    }
    return next
  }
}

/** The time for it is over: to begin it, or for the whole run. */
export function isOver({ timeoutAt, expiresAt }: Row, now: number): boolean {
  return (timeoutAt !== null && timeoutAt <= now) || (expiresAt !== null && expiresAt <= now)
}

/** Everyone takes runs in the same order, so that none is passed over for ever. */
function byId(rows: Iterable<Row>, chosen: (row: Row) => boolean): readonly Row[] {
  return Array.from(rows)
    .filter(chosen)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}
