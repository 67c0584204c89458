// Takeover. What may have to be taken is picked without locks; then the rows are taken, and each is judged anew by what is
// true of the row itself: the same holder under the same token, or still none. A session that is dead stays dead, so that
// is enough; a session that was not there when a statement began may be one that opened since.
//
// What others have locked is passed over: the next look finds it. Who would only hear of an end is left to a chore then.

import {
  isOrphaned,
  isOverdue,
  nextRescue,
  rescuedTogether,
  rescueOrder,
  rescueRun,
  type RescuedRuns,
} from '../../src/core/rules/claims/rescue.ts'
import type { Rescued, RescueRequest } from '../../src/store.ts'
import { lendUnitOfWork } from './exchange/unit-of-work.ts'
import { reading, transaction, type Execution, type Parts } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { byId, type RunRow } from './database/tables.ts'
import { forgetSessions } from './sessions.ts'
import type { Query, Snapshot, Transaction } from './database/transaction.ts'

export async function rescue(parts: Parts, request: RescueRequest): Promise<Rescued> {
  const ended = await transaction(parts, 'rescue.sessions-commit', endExpired)
  if (ended > 0) await transaction(parts, 'rescue.forget-commit', (x) => forgetSessions(x, 'rescue'))
  const taken = await transaction(parts, 'rescue.commit', (x) => rescueRuns(x, request))
  const { next, suspects, now } = await reading(parts, outlook)
  // What others had locked is there for the next look, soon.
  const soon = taken.passedOver ? Math.min(next ?? now, now) : next
  return { ...taken.rescued, sessionsEnded: ended, suspects, next: soon, now }
}

async function endExpired(x: Execution): Promise<number> {
  const ended = await x.run('rescue.sessions', (tx) => {
    const now = x.now()
    const isExpired = {
      where: (row: { endedAt: number | null; aliveUntil: number }) => row.endedAt === null && row.aliveUntil <= now,
    }
    return tx.update(x.tables.sessions, { ...isExpired, order: byId }, (row) => ({ ...row, endedAt: now }))
  })
  return ended.length
}

interface Taken {
  readonly rescued: RescuedRuns & { readonly more: boolean }
  /** Others had some of the rows. */
  readonly passedOver: boolean
}

async function rescueRuns(x: Execution, request: RescueRequest): Promise<Taken> {
  const { picked, now } = await x.run('rescue.pick', (tx) => pick(x, tx))
  const chosen = new Map(picked.slice(0, request.limit).map((row) => [row.id, row]))
  const more = picked.length > request.limit
  if (chosen.size === 0) return { rescued: { takenOver: [], ended: [], paused: [], more }, passedOver: false }
  const mayTouch = x.isOvertaken || [...chosen.values()].some(({ watched, inbox }) => watched || inbox > 0)
  const skipLocked = !(mayTouch && x.is('rescue-behind-a-lock'))
  return exchange(x, {
    method: 'rescue',
    ids: [...chosen.keys()],
    mayTouch,
    mustLook: false,
    lend: lendUnitOfWork,
    lock: (tx, ids) => tx.lock(x.tables.runs, stillThere(x, ids, chosen, now), { skipLocked }),
    async decide(unitOfWork) {
      const rows = unitOfWork.isDry ? [...chosen.keys()].map((id) => unitOfWork.row(id)) : unitOfWork.rewrites.all()
      const isChosen = (row: RunRow | undefined): row is RunRow => row !== undefined && chosen.has(row.id)
      const taken = rows.filter(isChosen).toSorted(rescueOrder)
      const rescued = taken.map(({ id }) => rescueRun(unitOfWork, unitOfWork.run(id), request))
      return { rescued: { ...rescuedTogether(rescued), more }, passedOver: taken.length < chosen.size }
    },
  })
}

/** What seems to have lost its holder, and what seems to be over time. */
function pick(x: Execution, tx: Transaction): { readonly picked: readonly RunRow[]; readonly now: number } {
  const { runs } = x.tables
  const now = x.now()
  const isOrphan = (row: RunRow, snapshot: Snapshot): boolean => isOrphaned(row, livingIn(x, snapshot), now)
  const isLost = (row: RunRow, snapshot: Snapshot): boolean => isOrphan(row, snapshot) || isOverdue(row, now)
  return { picked: tx.select(runs, { where: isLost, order: rescueOrder }), now }
}

/** Those of the chosen that are as they were when they were picked, and the runs that may be reached. */
function stillThere(
  x: Execution,
  ids: readonly string[],
  chosen: ReadonlyMap<string, RunRow>,
  now: number,
): Query<RunRow> {
  const isStill = (row: RunRow, snapshot: Snapshot): boolean => {
    const seen = chosen.get(row.id)
    if (seen === undefined) return true
    if (seen.session === null) return isOverdue(row, now)
    if (x.is('dead-by-absence')) return isOrphaned(row, livingIn(x, snapshot), now)
    const isSame = isHeld(row) && row.session === seen.session && row.token === seen.token
    // Its deadline may be why it was picked, and may have been moved since.
    return isSame && (!isLate(seen, now) || isOrphaned(row, livingIn(x, snapshot), now))
  }
  return { at: ['id', ids], where: isStill, order: byId }
}

/** When the next session, deadline or timeout runs out, and when the next suspect is due. */
async function outlook(x: Execution): Promise<Pick<Rescued, 'next' | 'suspects' | 'now'>> {
  const { runs, sessions } = x.tables
  return x.run('rescue.next', (tx) => {
    const living = tx.select(sessions, { where: ({ endedAt }) => endedAt === null })
    const next = nextRescue(
      tx.select(runs, {}),
      living.map(({ aliveUntil }) => aliveUntil),
    )
    const suspects = tx.select(runs, { where: ({ readiness }) => readiness === 'isolated' }).map(({ due }) => due ?? 0)
    return { next, suspects: suspects.length === 0 ? null : Math.min(...suspects), now: x.now() }
  })
}

function isHeld({ session, status }: RunRow): boolean {
  return session !== null && (status === 'running' || status === 'cancelling')
}

function isLate({ deadline }: RunRow, now: number): boolean {
  return deadline !== null && deadline <= now
}

/** Which sessions live, as far as this statement sees. */
function livingIn({ tables }: Execution, snapshot: Snapshot): (session: string) => boolean {
  return (session) =>
    snapshot.select(tables.sessions, { at: ['id', [session]], where: ({ endedAt }) => endedAt === null }).length > 0
}
