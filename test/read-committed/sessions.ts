// Who is alive. A session's row is written by its own beats and by a rescue that finds that they stopped; both are one statement
// on one row, so one of them comes first. It is committed before anything else is asked, whatever others have locked.

import { endedSessionKeptMs, sessionsForgottenAtOnce } from '../../src/core/model/heartbeat.ts'
import { holds, type Run } from '../../src/core/model/run.ts'
import { beatAnswer, extended } from '../../src/core/rules/claims/heartbeat.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../src/store.ts'
import { reading, transaction, type Execution, type Parts } from './database/call.ts'
import { byId, runOf, type RunRow, type SessionRow } from './database/tables.ts'
import type { Transaction } from './database/transaction.ts'

export async function beat(parts: Parts, request: BeatRequest): Promise<Beat> {
  const { held = [], seeksUnknownLeases = true } = request
  // A planted error: all of it in the transaction that keeps the session, behind a stranger who has locked a row.
  const isOne = parts.mutations.has('beat-behind-a-lock')
  const [alive, movedWithin] = await transaction(parts, 'beat.commit', async (x) => {
    const isAlive = await keep(x, request)
    return [isAlive, isOne && isAlive ? await extend(x, request, false) : null] as const
  })
  if (request.end === true) await transaction(parts, 'beat.forget-commit', (x) => forgetSessions(x, 'beat'))
  const moving = held.filter(({ extendMs, begun }) => alive && (extendMs !== null || begun !== undefined))
  const moved =
    movedWithin ??
    (moving.length === 0
      ? new Set<string>()
      : await transaction(parts, 'beat.extend-commit', (x) => extend(x, request, true)))
  return reading(parts, async (x) => {
    const { now, mine } = held.length === 0 ? { now: x.now(), mine: [] } : await look(x, request)
    const unlisted = seeksUnknownLeases ? await lookForUnknownLeases(x, request) : []
    const answer = beatAnswer(request, alive, [...mine, ...unlisted].sort(byId), now)
    const lost = new Set(answer.lost)
    const locked = moving.filter(({ runId }) => !lost.has(runId) && !moved.has(runId)).map(({ runId }) => runId)
    return locked.length === 0 ? answer : { ...answer, busy: [...new Set(locked)] }
  })
}

async function keep(x: Execution, { session, leaseMs, opens = true, end = false }: BeatRequest): Promise<boolean> {
  return x.run('beat.session', async (tx) => {
    const now = x.now()
    const fresh = { id: session, aliveUntil: end ? now : now + leaseMs, endedAt: end ? now : null }
    const { sessions } = x.tables
    if (opens || end) {
      const row = await tx.upsert(sessions, fresh, (known) => (known.endedAt === null ? { ...fresh } : known))
      return row.endedAt === null
    }
    // Without its row the session has ended: nothing is inserted.
    const query = { at: ['id', [session]], where: ({ endedAt }: SessionRow) => endedAt === null, order: byId } as const
    return (await tx.update(sessions, query, () => fresh)).length > 0
  })
}

/** Sessions have just ended: rows of others go instead, those that ended first, unless a run still names them. */
export async function forgetSessions(x: Execution, method: 'beat' | 'rescue'): Promise<void> {
  const { runs, sessions } = x.tables
  const first = (a: SessionRow, b: SessionRow): number => (a.endedAt ?? 0) - (b.endedAt ?? 0) || byId(a, b)
  const left: string[] = []
  let last: SessionRow | undefined
  do {
    const after: SessionRow | undefined = last
    const old = await x.run(`${method}.old`, (tx) => {
      const until = x.now() - endedSessionKeptMs
      const isOld = (row: SessionRow): boolean =>
        row.endedAt !== null && row.endedAt <= until && (after === undefined || first(after, row) < 0)
      return tx.select(sessions, { where: isOld, order: first }).slice(0, sessionsForgottenAtOnce)
    })
    if (old.length === 0) break
    const ids = new Set(old.map(({ id }) => id))
    const named = await x.run(`${method}.named`, (tx) => {
      const isNamed = ({ session, status }: RunRow): boolean =>
        session !== null && ids.has(session) && (status === 'running' || status === 'cancelling')
      return new Set(tx.select(runs, { where: isNamed }).map(({ session }) => session))
    })
    left.push(...[...ids].filter((id) => !named.has(id)))
    last = old.length < sessionsForgottenAtOnce ? undefined : old.at(-1)
  } while (last !== undefined && left.length < sessionsForgottenAtOnce)
  left.splice(sessionsForgottenAtOnce)
  if (left.length === 0) return
  const query = { at: ['id', left], where: ({ endedAt }: SessionRow) => endedAt !== null, order: byId } as const
  await x.run(`${method}.forget`, (tx) => tx.delete(sessions, query))
}

/** Moves the deadlines of those that are held, and answers which. */
async function extend(x: Execution, request: BeatRequest, skipLocked: boolean): Promise<ReadonlySet<string>> {
  const { session, held = [] } = request
  const moving = held.filter(({ extendMs, begun }) => extendMs !== null || begun !== undefined)
  if (moving.length === 0) return new Set()
  const of = (row: RunRow): HeldClaim | undefined =>
    moving.findLast(({ runId, token }) => runId === row.id && holds(row, { session, token }))
  const query = {
    at: ['id', moving.map(({ runId }) => runId)],
    where: (row: RunRow) => of(row) !== undefined,
    order: byId,
  } as const
  // The holder is judged in the statement that writes: what a look before it found may be gone.
  const change = (row: RunRow): RunRow => {
    const claim = of(row)
    return claim === undefined ? row : { ...row, ...extended(row, claim, x.now()) }
  }
  const rows = await x.run('beat.extend', (tx) => tx.update(x.tables.runs, query, change, { skipLocked }))
  return new Set(rows.map(({ id }) => id))
}

/** What the session holds of what it listed. */
function look(
  x: Execution,
  { session, held = [] }: BeatRequest,
): Promise<{ readonly now: number; readonly mine: readonly Run[] }> {
  const query = {
    at: ['id', [...new Set(held.map(({ runId }) => runId))]],
    where: (row: RunRow) => row.session === session,
    order: byId,
  } as const
  return x.run('beat.look', (tx) => ({ now: x.now(), mine: tx.select(x.tables.runs, query).map(runOf) }))
}

function lookForUnknownLeases(x: Execution, { session, held = [] }: BeatRequest): Promise<readonly Run[]> {
  const listed = new Set(held.map(({ runId }) => runId))
  const where = (row: RunRow): boolean => row.session === session && !listed.has(row.id)
  return x.run('beat.unknown', (tx) => tx.select(x.tables.runs, { where, order: byId }).map(runOf))
}

/** Whether a session has ended, as far as a statement sees. One that never beat has not. */
export function hasEnded({ tables }: Execution, tx: Transaction, session: string): boolean {
  return tx.select(tables.sessions, { at: ['id', [session]] }).some(({ endedAt }) => endedAt !== null)
}
