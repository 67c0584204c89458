// Handing out what is due. What is picked is picked without locks and may be gone a moment later; the update that leases it
// judges every row anew, and passes over those that somebody else is just taking.

import type { Claimed, ClaimRequest, ClaimSelector } from '../../../store.ts'
import type { Execution } from './execution.ts'
import { isOver } from './rescuing.ts'
import { hasEnded } from './sessions.ts'
import { byId, queueText, runOf, type RunRow } from './tables.ts'

export async function claimRuns(x: Execution, { session, selectors, limit }: ClaimRequest): Promise<Claimed> {
  const { runs } = x.tables
  const ended = await x.run('claim.session', (tx) => hasEnded(x, tx, session))
  const allowed = ended ? 0 : limit
  const timed = selectors.map((one) => queueText('timed', one))
  await x.run('claim.promote', (tx) => {
    const now = x.now()
    const query = { at: ['queue', timed], where: ({ due }: RunRow) => due !== null && due <= now, order: byId } as const
    return tx.update(runs, query, (row): RunRow => ({ ...row, readiness: 'ready' }), { skipLocked: true })
  })
  const now = x.now()
  const isReady = (row: RunRow): boolean => row.readiness === 'ready' && !isOver(row, now)
  const ready = selectors.map((one) => queueText('ready', one))
  // One more than is allowed, to know whether some are left.
  const found = await x.run('claim.pick', (tx) =>
    tx.select(runs, { at: ['queue', ready], where: isReady, order: claimOrder, limit: allowed + 1 }),
  )
  const picked = found.slice(0, allowed).map(({ id }) => id)
  const leased = picked.length === 0 ? [] : await lease(x, picked, isReady, session, selectors, now)
  const nextDue = await x.run('claim.next', (tx) => {
    const [next] = tx.select(runs, { at: ['queue', timed], order: dueOrder, limit: 1 })
    return next?.due ?? null
  })
  const places = new Map(picked.map((id, place) => [id, place]))
  const inOrder = leased.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
  // Others were quicker with some of them: there may be more behind those.
  const more = found.length > allowed || leased.length < picked.length
  return { runs: inOrder.map(runOf), more, nextDue, now }
}

function lease(
  x: Execution,
  picked: readonly string[],
  isReady: (row: RunRow) => boolean,
  session: string,
  selectors: readonly ClaimSelector[],
  now: number,
): Promise<readonly RunRow[]> {
  const blindly = x.is('no-recheck-on-claim')
  const query = { at: ['id', picked], order: byId } as const
  return x.run('claim.lease', (tx) =>
    tx.update(
      x.tables.runs,
      blindly ? query : { ...query, where: isReady },
      (row) => {
        const leaseMs = selectors.find((one) => one.type === row.type && one.version === row.version)?.leaseMs ?? null
        return {
          ...row,
          status: row.status === 'cancelling' ? 'cancelling' : 'running',
          readiness: 'leased',
          due: null,
          session,
          token: row.token + 1,
          crashes: row.crashes + 1,
          deadline: leaseMs === null ? null : now + leaseMs,
          expiresAt: null,
        }
      },
      { skipLocked: !blindly },
    ),
  )
}

/** Higher priority first, then longer due, then the lower id. */
function claimOrder(a: RunRow, b: RunRow): number {
  return b.priority - a.priority || dueOrder(a, b)
}

function dueOrder(a: RunRow, b: RunRow): number {
  return (a.due ?? 0) - (b.due ?? 0) || byId(a, b)
}
