// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at.

import { uniqueText } from '../../src/core/model/key.ts'
import { holds, isTerminal } from '../../src/core/model/run.ts'
import { control, type ControlResult, type ControlCommand } from '../../src/core/rules/control.ts'
import { giveBack } from '../../src/core/rules/takeover.ts'
import type { ReleasedLease } from '../../src/store.ts'
import { concludeIfParted, lendBooks, type LockedUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { runOf, type RunRow } from './database/tables.ts'

export function controlRuns(x: Execution, requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
  const ids = requests.map(({ runId }) => runId)
  return exchange(x, {
    method: 'control',
    ids,
    mayTouch: requests.some(({ kind }) => kind === 'cancel'),
    mustLook: true,
    lend: lendBooks,
    decide: async (unitOfWork) => {
      const { applied, holders } = look(x, unitOfWork, requests)
      return requests.map((request) => applyControl(unitOfWork, request, applied, holders))
    },
  })
}

interface Seen {
  /** Requests that took effect before, by run and id. */
  readonly applied: Set<string>
  /** Whoever has a key that a run of this batch would need. */
  readonly holders: readonly RunRow[]
}

function look({ tables }: Execution, unitOfWork: LockedUnitOfWork, requests: readonly ControlCommand[]): Seen {
  const { runs, journal } = tables
  const ids = requests.map(({ runId }) => runId)
  const keys = requests.flatMap(({ kind, runId }) => (kind === 'retry' ? (keyOf(unitOfWork.row(runId)) ?? []) : []))
  const asked = new Set(requests.map(({ runId, id }) => `${runId} ${id}`))
  const entries = unitOfWork.view.select(journal, {
    at: ['run', ids],
    where: ({ runId, entry }) => asked.has(`${runId} ${entry.transition}`),
  })
  return {
    applied: new Set(entries.map(({ runId, entry }) => `${runId} ${entry.transition}`)),
    holders: unitOfWork.view.select(runs, { at: ['key', keys] }),
  }
}

function applyControl(
  unitOfWork: LockedUnitOfWork,
  request: ControlCommand,
  applied: Set<string>,
  holders: readonly RunRow[],
): ControlResult {
  const row = unitOfWork.row(request.runId)
  if (row === undefined) return { outcome: 'not-found' }
  const mark = `${row.id} ${request.id}`
  if (applied.has(mark)) return { outcome: 'done', run: runOf(row) }
  const holder = request.kind === 'retry' ? keyHolder(unitOfWork, row, holders) : null
  const { answer, write } = control(runOf(row), request, unitOfWork.now, holder)
  if (write !== null) {
    unitOfWork.rewrites.write(row, write, request.id)
    if (write.append.length > 0) applied.add(mark)
    concludeIfParted(unitOfWork, row)
  }
  return structuredClone(answer)
}

/** Who has the key of this run: of those that this batch has changed, as they are by now. */
function keyHolder(unitOfWork: LockedUnitOfWork, row: RunRow, holders: readonly RunRow[]): string | null {
  const key = uniqueText(row)
  if (key === null) return null
  const rivals = [...holders.map((one) => unitOfWork.rewrites.get(one.id) ?? one), ...unitOfWork.rewrites.all()]
  return rivals.find((one) => one.id !== row.id && isLive(one) && uniqueText(one) === key)?.id ?? null
}

/** Gives leases back; lost ones are passed over. */
export function releaseRuns(x: Execution, leases: readonly ReleasedLease[]): Promise<readonly never[]> {
  return exchange(x, {
    method: 'release',
    ids: leases.map(({ runId }) => runId),
    mayTouch: false,
    mustLook: false,
    lend: lendBooks,
    async decide(unitOfWork) {
      for (const lease of leases) {
        const row = unitOfWork.rewrites.get(lease.runId) ?? (x.isOvertaken ? unitOfWork.row(lease.runId) : undefined)
        if (row === undefined || !holds(row, lease)) continue
        unitOfWork.rewrites.write(row, giveBack(runOf(row), unitOfWork.now, lease.crashes), null)
        concludeIfParted(unitOfWork, row)
      }
      return []
    },
  })
}

function keyOf(row: RunRow | undefined): string | null {
  return row === undefined ? null : uniqueText(row)
}

function isLive({ status, deletedAt }: RunRow): boolean {
  return deletedAt === null && !isTerminal(status)
}
