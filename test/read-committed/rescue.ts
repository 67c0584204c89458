// Takeover. What may have to be taken is picked without locks; then the rows are taken, and each is judged anew by what is
// true of the row itself: the same holder under the same token, or still nobody. A session that is dead stays dead, so that
// is enough; a session that was not there when a statement began may be one that opened since.
//
// What somebody else has locked is passed over: the next look finds it. Who would only hear of an end is left to a chore then.

import { isBoundByTime } from '../../src/core/rules/deadline.ts'
import type { Run } from '../../src/core/model/run.ts'
import { takeOver, timeOut } from '../../src/core/rules/takeover.ts'
import type { Rescued, RescueRequest } from '../../src/store.ts'
import { concludeIfParted, lendBooks, type LockedUnitOfWork } from './exchange/unit-of-work.ts'
import { reading, transaction, type Execution, type Parts } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { byId, runOf, type RunRow } from './database/tables.ts'
import type { Query, Snapshot, Transaction } from './database/transaction.ts'

export async function rescue(parts: Parts, request: RescueRequest): Promise<Rescued> {
  const ended = await transaction(parts, 'rescue.sessions-commit', endExpired)
  const taken = await transaction(parts, 'rescue.commit', (x) => rescueRuns(x, request))
  const { next, suspects, now } = await reading(parts, outlook)
  // What somebody had locked is there for the next look, soon.
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
  readonly rescued: Pick<Rescued, 'takenOver' | 'ended' | 'paused' | 'more'>
  /** Somebody else had some of the rows. */
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
    lend: lendBooks,
    lock: (tx, ids) => tx.lock(x.tables.runs, stillThere(x, ids, chosen, now), { skipLocked }),
    async decide(unitOfWork) {
      const rows = unitOfWork.isDry ? [...chosen.keys()].map((id) => unitOfWork.row(id)) : unitOfWork.rewrites.all()
      const taken = rows.filter((row) => row !== undefined && chosen.has(row.id)) as RunRow[]
      const lists: Lists = { takenOver: [], ended: [], paused: [] }
      for (const { id } of taken) take(unitOfWork, id, request, lists)
      return { rescued: { ...lists, more }, passedOver: taken.length < chosen.size }
    },
  })
}

/** What was taken, while it is being gathered. */
interface Lists {
  readonly takenOver: Rescued['takenOver'][number][]
  readonly ended: Rescued['ended'][number][]
  readonly paused: string[]
}

function take(
  unitOfWork: LockedUnitOfWork,
  runId: string,
  request: RescueRequest,
  { takenOver, ended, paused }: Lists,
): void {
  const row = unitOfWork.row(runId) as RunRow
  const run = runOf(row)
  const { type, session } = run
  // What ended before it may have cancelled it: then its time is over no more.
  if (session === null && !(isBoundByTime(row) && isOver(row, unitOfWork.now))) return
  const taken = session === null ? timeOut(run, request, unitOfWork.now) : takeOver(run, request, unitOfWork.now)
  unitOfWork.rewrites.write(row, taken, null)
  concludeIfParted(unitOfWork, row)
  if (taken.isConvicted) paused.push(runId)
  const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
  if (reason !== null) ended.push({ runId, type, reason })
  else if (session !== null) takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
}

/** What seems to have lost its holder, then what seems to be over time, each by id. */
function pick(x: Execution, tx: Transaction): { readonly picked: readonly RunRow[]; readonly now: number } {
  const { runs } = x.tables
  const now = x.now()
  const isOrphan = (row: RunRow, snapshot: Snapshot): boolean =>
    isHeld(row) && (isLate(row, now) || isDead(x, row, snapshot))
  const orphans = tx.select(runs, { where: isOrphan, order: byId })
  const over = tx.select(runs, { where: (row) => isBoundByTime(row) && isOver(row, now), order: byId })
  return { picked: [...orphans, ...over], now }
}

/** Those of the chosen that are as they were when they were picked, and whoever may be reached. */
function stillThere(
  x: Execution,
  ids: readonly string[],
  chosen: ReadonlyMap<string, RunRow>,
  now: number,
): Query<RunRow> {
  const isStill = (row: RunRow, snapshot: Snapshot): boolean => {
    const seen = chosen.get(row.id)
    if (seen === undefined) return true
    if (seen.session === null) return isBoundByTime(row) && isOver(row, now)
    if (x.is('dead-by-absence')) return isHeld(row) && (isLate(row, now) || isDead(x, row, snapshot))
    const isSame = isHeld(row) && row.session === seen.session && row.token === seen.token
    // Its deadline may be why it was picked, and may have been moved since.
    return isSame && (!isLate(seen, now) || isLate(row, now) || isDead(x, row, snapshot))
  }
  return { at: ['id', ids], where: isStill, order: byId }
}

/** When the next session, deadline or timeout runs out, and when the next suspect is due. */
async function outlook(x: Execution): Promise<Pick<Rescued, 'next' | 'suspects' | 'now'>> {
  const { runs, sessions } = x.tables
  return x.run('rescue.next', (tx) => {
    const times = [
      ...tx.select(sessions, { where: ({ endedAt }) => endedAt === null }).map(({ aliveUntil }) => aliveUntil),
      ...tx.select(runs, { where: isHeld }).map(({ deadline }) => deadline),
      ...tx.select(runs, { where: isBoundByTime }).flatMap(({ timeoutAt, expiresAt }) => [timeoutAt, expiresAt]),
    ].filter((time) => time !== null)
    const suspects = tx.select(runs, { where: ({ readiness }) => readiness === 'isolated' }).map(({ due }) => due ?? 0)
    return { next: earliest(times), suspects: earliest(suspects), now: x.now() }
  })
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time))
}

function isHeld({ session, status }: RunRow): boolean {
  return session !== null && (status === 'running' || status === 'cancelling')
}

function isLate({ deadline }: RunRow, now: number): boolean {
  return deadline !== null && deadline <= now
}

/** As far as this statement sees, nobody keeps that session alive. */
function isDead({ tables }: Execution, { session }: RunRow, snapshot: Snapshot): boolean {
  const living = snapshot.select(tables.sessions, {
    at: ['id', [session ?? '']],
    where: ({ endedAt }) => endedAt === null,
  })
  return living.length === 0
}

/** The time for it is over: to begin it, or for the whole run. */
export function isOver({ timeoutAt, expiresAt }: Pick<Run, 'timeoutAt' | 'expiresAt'>, now: number): boolean {
  return (timeoutAt !== null && timeoutAt <= now) || (expiresAt !== null && expiresAt <= now)
}
