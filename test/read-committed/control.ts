// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at.

import { uniqueText } from '../../src/core/model/key.ts'
import { isTerminal } from '../../src/core/model/run.ts'
import type { Keyed } from '../../src/core/rules/commit.ts'
import { controlRun, type ControlWork } from '../../src/core/rules/control-run.ts'
import type { ControlResult, ControlCommand } from '../../src/core/rules/control.ts'
import { releaseRun } from '../../src/core/rules/claims/rescue.ts'
import type { ReleasedLease } from '../../src/store.ts'
import { lendUnitOfWork, LockedUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { exchange } from './exchange/exchange.ts'
import { keyText, runOf, type RunRow } from './database/tables.ts'

export function controlRuns(x: Execution, requests: readonly ControlCommand[]): Promise<readonly ControlResult[]> {
  const ids = requests.map(({ runId }) => runId)
  return exchange(x, {
    method: 'control',
    ids,
    mayTouch: requests.some(({ kind }) => kind === 'cancel'),
    mustLook: true,
    lend: (execution, lent) => new LockedControlWork(execution, lent),
    decide: async (unitOfWork) => {
      unitOfWork.look(requests)
      return requests.map((request) => structuredClone(controlRun(unitOfWork, unitOfWork.run(request.runId), request)))
    },
  })
}

class LockedControlWork extends LockedUnitOfWork implements ControlWork {
  /** Requests that took effect before, by run and id. */
  private applied: ReadonlySet<string> = new Set()
  /** Runs that have a key which a run of this batch would need. */
  private holders: readonly RunRow[] = []

  look(requests: readonly ControlCommand[]): void {
    const { runs, journal } = this.x.tables
    const ids = requests.map(({ runId }) => runId)
    const keys = requests.flatMap(({ kind, runId }) => (kind === 'retry' ? (keyOf(this.row(runId)) ?? []) : []))
    const asked = new Set(requests.map(({ runId, id }) => `${runId} ${id}`))
    const entries = this.view.select(journal, {
      at: ['run', ids],
      where: ({ runId, entry }) => asked.has(`${runId} ${entry.transition}`),
    })
    this.applied = new Set(entries.map(({ runId, entry }) => `${runId} ${entry.transition}`))
    const held = this.view.select(this.x.tables.keys, { at: ['key', keys.map((key) => keyText({ type: '', key }))] })
    this.holders = this.view.select(runs, { at: ['id', held.map(({ runId }) => runId)] })
  }

  hasTransition(runId: string, id: string): boolean {
    return this.applied.has(`${runId} ${id}`) || this.rewrites.appends.has(runId, id)
  }

  /** Of runs that this batch has changed, as they are by now. */
  keyHolder(run: Keyed): string | null {
    const key = uniqueText(run)
    if (key === null) return null
    const rivals = [...this.holders.map((one) => this.rewrites.get(one.id) ?? one), ...this.rewrites.all()]
    return rivals.find((one) => one.id !== run.id && isLive(one) && uniqueText(one) === key)?.id ?? null
  }
}

/** Gives leases back; lost ones are passed over. */
export function releaseRuns(x: Execution, leases: readonly ReleasedLease[]): Promise<readonly never[]> {
  return exchange(x, {
    method: 'release',
    ids: leases.map(({ runId }) => runId),
    mayTouch: false,
    mustLook: false,
    lend: lendUnitOfWork,
    async decide(unitOfWork) {
      for (const lease of leases) {
        const row = unitOfWork.rewrites.get(lease.runId) ?? (x.isOvertaken ? unitOfWork.row(lease.runId) : undefined)
        releaseRun(unitOfWork, row === undefined ? undefined : runOf(row), lease)
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
