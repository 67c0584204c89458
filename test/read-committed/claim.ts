// Handing out what is due. What is picked is picked without locks and may be gone a moment later; the update that leases it
// judges every row anew, passes over those that others have locked, and ends when it has as many as are wanted.

import { dueOrder, inClaimOrder } from '../../src/core/rules/claims/claim-order.ts'
import { claimColumns, isClaimable, isClaimableByName } from '../../src/core/rules/claims/claim.ts'
import type { Claimed, ClaimRequest } from '../../src/store.ts'
import type { Execution } from './database/call.ts'
import { hasEnded } from './sessions.ts'
import { byId, queueText, runOf, type RunRow } from './database/tables.ts'
import type { Query } from './database/transaction.ts'

/** How many more than are allowed are picked: no more than the Postgres store picks once nothing had to be skipped. */
const spare = 31

export async function claimRuns(x: Execution, request: ClaimRequest): Promise<Claimed> {
  const { session, selectors, limit, isolated = false } = request
  const { runs } = x.tables
  const ended = await x.run('claim.session', (tx) => hasEnded(x, tx, session))
  const allowed = ended ? 0 : limit
  if (request.runId !== undefined) return claimByName(x, request, request.runId, allowed)
  if (isolated) return claimIsolated(x, request, allowed)
  const timed = selectors.map((one) => queueText('timed', one))
  await x.run('claim.promote', (tx) => {
    const now = x.now()
    const query = { at: ['queue', timed], where: ({ due }: RunRow) => due !== null && due <= now, order: byId } as const
    return tx.update(runs, query, (row): RunRow => ({ ...row, readiness: 'ready' }), { skipLocked: true })
  })
  const now = x.now()
  const isReady = (row: RunRow): boolean => row.readiness === 'ready' && isClaimable(row, request, now)
  const ready = selectors.map((one) => queueText('ready', one))
  const query = { at: ['queue', ready], where: isReady } as const
  const picked = await pick(x, query, request, allowed)
  const leased = await lease(x, { picked, allowed, isReady, now }, request)
  const coming = await x.run('claim.next', (tx) => tx.select(runs, { at: ['queue', timed], order: dueOrder }))
  const next = coming.find(({ due }) => due !== null && due > now)
  // What has come due and was not moved is in the hands of others. What was picked and not leased is there still, or
  // others were quicker, and there may be more behind it.
  const isLeft = coming.length > 0 && coming[0] !== next
  return { runs: leased.map(runOf), more: picked.length > leased.length || isLeft, nextDue: next?.due ?? null, now }
}

/** The same for one run. */
async function claimByName(x: Execution, request: ClaimRequest, runId: string, allowed: number): Promise<Claimed> {
  const now = x.now()
  const isReady = (row: RunRow): boolean => isClaimableByName(row, request, now)
  const picked = await pick(x, { at: ['id', [runId]], where: isReady }, request, allowed)
  const leased = await lease(x, { picked, allowed, isReady, now }, request)
  await x.run('claim.next', () => undefined)
  return { runs: leased.map(runOf), more: false, nextDue: null, now }
}

/** The same for suspects, which nothing promotes: they say themselves when they are due. */
async function claimIsolated(x: Execution, request: ClaimRequest, allowed: number): Promise<Claimed> {
  const { runs } = x.tables
  const now = x.now()
  const isReady = (row: RunRow): boolean =>
    row.readiness === 'isolated' && row.due !== null && row.due <= now && isClaimable(row, request, now)
  const suspects = request.selectors.map((one) => queueText('isolated', one))
  const query = { at: ['queue', suspects], where: isReady } as const
  const picked = await pick(x, query, request, allowed)
  const leased = await lease(x, { picked, allowed, isReady, now }, request)
  const nextDue = await x.run('claim.next', (tx) => {
    const isLater = ({ due }: RunRow): boolean => due !== null && due > now
    const [next] = tx.select(runs, { at: ['queue', suspects], where: isLater, order: dueOrder, limit: 1 })
    return next?.due ?? null
  })
  return { runs: leased.map(runOf), more: picked.length > leased.length, nextDue, now }
}

/**
 * More than are allowed: of those, some may be locked by strangers, or by others who claim. No claim is
 * kept from the next run by a run that others have.
 */
function pick(x: Execution, query: Query<RunRow>, request: ClaimRequest, allowed: number): Promise<readonly RunRow[]> {
  const limit = allowed === 0 ? 1 : x.is('limit-before-lock') ? allowed : allowed + spare
  return x.run('claim.pick', (tx) => inClaimOrder(tx.select(x.tables.runs, query), request).slice(0, limit))
}

interface Pick {
  readonly picked: readonly RunRow[]
  readonly allowed: number
  readonly isReady: (row: RunRow) => boolean
  readonly now: number
}

/** Locks and leases, in the order of the claim, until it has as many as are allowed. */
async function lease(
  x: Execution,
  { picked, allowed, isReady, now }: Pick,
  request: ClaimRequest,
): Promise<readonly RunRow[]> {
  if (picked.length === 0 || allowed === 0) return []
  const blindly = x.is('no-recheck-on-claim')
  const ids = picked.map(({ id }) => id)
  const places = new Map(ids.map((id, place) => [id, place]))
  const order = (a: RunRow, b: RunRow): number => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0)
  // Who waits for others takes the rows in the order of their ids.
  const query = blindly
    ? ({ at: ['id', ids.slice(0, allowed)], order: byId } as const)
    : ({ at: ['id', ids], where: isReady, order, limit: allowed } as const)
  const leased = await x.run('claim.lease', (tx) =>
    tx.update(x.tables.runs, query, (row): RunRow => ({ ...row, ...claimColumns(row, request, now) }), {
      skipLocked: !blindly,
    }),
  )
  return leased.toSorted(order)
}
