// Who is alive. A session's row is written by its own beats and by whoever finds that they stopped; both are one statement
// on one row, so one of them comes first.

import { holds } from '../../../core/run.ts'
import type { Beat, BeatRequest, HeldClaim } from '../../../store.ts'
import type { Execution } from './execution.ts'
import { isOver } from './rescuing.ts'
import { byId, runOf, type RunRow } from './tables.ts'
import type { Transaction } from './transaction.ts'

/** What is left over is told with the next beat. */
const straysAtOnce = 100

export async function beat(x: Execution, { session, leaseMs, held = [], end = false }: BeatRequest): Promise<Beat> {
  const { runs, sessions } = x.tables
  const { endedAt } = await x.run('beat.session', (tx) => {
    const now = x.now()
    const fresh = { id: session, aliveUntil: end ? now : now + leaseMs, endedAt: end ? now : null }
    return tx.upsert(sessions, fresh, (row) => (row.endedAt === null ? { ...fresh } : row))
  })
  const alive = endedAt === null
  const extended = held.filter(({ extendMs }) => extendMs !== null)
  if (alive && extended.length > 0) {
    const of = (row: RunRow): HeldClaim | undefined =>
      extended.findLast(({ runId, token }) => runId === row.id && holds(row, { session, token }))
    const query = {
      at: ['id', extended.map(({ runId }) => runId)],
      where: (row: RunRow) => of(row) !== undefined,
    } as const
    // The holder is judged in the statement that writes: what a look before it found may be gone.
    await x.run('beat.extend', (tx) =>
      tx.update(runs, { ...query, order: byId }, (row) => ({ ...row, deadline: x.now() + (of(row)?.extendMs ?? 0) })),
    )
  }
  return x.run('beat.look', (tx) => {
    const now = x.now()
    const mine = tx.select(runs, { where: (row) => row.session === session, order: byId }).map(runOf)
    const known = new Set(held.map(({ runId }) => runId))
    const byRun = new Map(mine.map((run) => [run.id, run]))
    const isLost = ({ runId, token }: HeldClaim): boolean => {
      const run = byRun.get(runId)
      return !alive || run === undefined || !holds(run, { session, token })
    }
    return {
      alive,
      lost: held.filter(isLost).map(({ runId }) => runId),
      strays: mine
        .filter((run) => holds(run, { session, token: run.token }) && !known.has(run.id))
        .slice(0, straysAtOnce)
        .map(({ id, token }) => ({ runId: id, token })),
      wished: mine.flatMap(({ id, wish }) => (wish === null ? [] : [{ runId: id, wish }])),
      mail: held.flatMap((claim) => {
        const row = byRun.get(claim.runId)
        const isNews = claim.inbox !== undefined && row !== undefined && row.inbox > claim.inbox && !isLost(claim)
        return isNews ? [{ runId: row.id, inbox: row.inbox }] : []
      }),
      timedOut: mine
        .filter((run) => run.status === 'running' && run.deletedAt === null && isOver(run, now))
        .map(({ id }) => id),
      now,
    }
  })
}

/** Whether a session has ended, as far as a statement sees. One that never beat has not. */
export function hasEnded({ tables }: Execution, tx: Transaction, session: string): boolean {
  return tx.select(tables.sessions, { at: ['id', [session]] }).some(({ endedAt }) => endedAt !== null)
}
