// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at.

import { uniqueText } from '../../../core/key.ts'
import { holds, isTerminal, type Lease } from '../../../core/run.ts'
import { steer, type Steered, type SteerRequest } from '../../../core/steering.ts'
import { giveBack } from '../../../core/takeover.ts'
import { Appends } from './appending.ts'
import type { Execution } from './execution.ts'
import { Rewrites } from './rewriting.ts'
import { byId, runOf, type RunRow } from './tables.ts'

export async function steerRuns(x: Execution, requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
  const { runs, journal } = x.tables
  const ids = requests.map(({ runId }) => runId)
  const locked = await x.run('steer.lock', (tx) => tx.lock(runs, { at: ['id', ids], order: byId }))
  const now = x.now()
  const appends = new Appends()
  const rewrites = new Rewrites(locked, appends, now)
  const keys = requests.flatMap(({ kind, runId }) => (kind === 'retry' ? (keyOf(rewrites.get(runId)) ?? []) : []))
  const asked = new Set(requests.map(({ runId, id }) => `${runId} ${id}`))
  const { obeyed, holders } = await x.run('steer.look', (tx) => {
    const entries = tx.select(journal, {
      at: ['run', ids],
      where: ({ runId, entry }) => asked.has(`${runId} ${entry.transition}`),
    })
    return {
      obeyed: new Set(entries.map(({ runId, entry }) => `${runId} ${entry.transition}`)),
      holders: tx.select(runs, { at: ['key', keys] }),
    }
  })
  /** Who has the key of this run: of those that this batch has changed, as they are by now. */
  const keyHolder = (row: RunRow): string | null => {
    const key = uniqueText(row)
    if (key === null) return null
    const rivals = [...locked, ...holders].map((one) => rewrites.get(one.id) ?? one)
    return rivals.find((one) => one.id !== row.id && isLive(one) && uniqueText(one) === key)?.id ?? null
  }
  const answers = requests.map((request): Steered => {
    const row = rewrites.get(request.runId)
    if (row === undefined) return { outcome: 'not-found' }
    const mark = `${row.id} ${request.id}`
    if (obeyed.has(mark)) return { outcome: 'done', run: runOf(row) }
    const { answer, write } = steer(runOf(row), request, now, request.kind === 'retry' ? keyHolder(row) : null)
    if (write !== null) {
      rewrites.write(row, write, request.id)
      if (write.append.length > 0) obeyed.add(mark)
    }
    return structuredClone(answer)
  })
  await rewrites.update(x, 'steer.write')
  await appends.append(x, 'steer.append')
  await appends.feed(x, 'steer.feed')
  return answers
}

/** Gives leases back; lost ones are passed over. */
export async function releaseRuns(
  x: Execution,
  leases: readonly (Lease & { readonly runId: string })[],
): Promise<readonly never[]> {
  const ids = leases.map(({ runId }) => runId)
  const locked = await x.run('release.lock', (tx) => tx.lock(x.tables.runs, { at: ['id', ids], order: byId }))
  const now = x.now()
  const appends = new Appends()
  const rewrites = new Rewrites(locked, appends, now)
  for (const lease of leases) {
    const row = rewrites.get(lease.runId)
    if (row !== undefined && holds(row, lease)) rewrites.write(row, giveBack(runOf(row), now), null)
  }
  await rewrites.update(x, 'release.write')
  await appends.append(x, 'release.append')
  await appends.feed(x, 'release.feed')
  return []
}

function keyOf(row: RunRow | undefined): string | null {
  return row === undefined ? null : uniqueText(row)
}

function isLive({ status, deletedAt }: RunRow): boolean {
  return deletedAt === null && !isTerminal(status)
}
