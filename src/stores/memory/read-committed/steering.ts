// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at.

import { uniqueText } from '../../../core/key.ts'
import { holds, isTerminal } from '../../../core/run.ts'
import { steer, type Steered, type SteerRequest } from '../../../core/steering.ts'
import { giveBack } from '../../../core/takeover.ts'
import type { GivenBack } from '../../../store.ts'
import { concludeIfParted, lendBooks, type LentBooks } from './books.ts'
import type { Execution } from './execution.ts'
import { reaching } from './reaching.ts'
import { runOf, type RunRow } from './tables.ts'

export function steerRuns(x: Execution, requests: readonly SteerRequest[]): Promise<readonly Steered[]> {
  const ids = requests.map(({ runId }) => runId)
  return reaching(x, {
    method: 'steer',
    ids,
    mayReach: requests.some(({ kind }) => kind === 'cancel'),
    mustLook: true,
    lend: lendBooks,
    decide: async (books) => {
      const { obeyed, holders } = look(x, books, requests)
      return requests.map((request) => obey(books, request, obeyed, holders))
    },
  })
}

interface Seen {
  /** Requests that took effect before, by run and id. */
  readonly obeyed: Set<string>
  /** Whoever has a key that a run of this batch would need. */
  readonly holders: readonly RunRow[]
}

function look({ tables }: Execution, books: LentBooks, requests: readonly SteerRequest[]): Seen {
  const { runs, journal } = tables
  const ids = requests.map(({ runId }) => runId)
  const keys = requests.flatMap(({ kind, runId }) => (kind === 'retry' ? (keyOf(books.row(runId)) ?? []) : []))
  const asked = new Set(requests.map(({ runId, id }) => `${runId} ${id}`))
  const entries = books.view.select(journal, {
    at: ['run', ids],
    where: ({ runId, entry }) => asked.has(`${runId} ${entry.transition}`),
  })
  return {
    obeyed: new Set(entries.map(({ runId, entry }) => `${runId} ${entry.transition}`)),
    holders: books.view.select(runs, { at: ['key', keys] }),
  }
}

function obey(books: LentBooks, request: SteerRequest, obeyed: Set<string>, holders: readonly RunRow[]): Steered {
  const row = books.row(request.runId)
  if (row === undefined) return { outcome: 'not-found' }
  const mark = `${row.id} ${request.id}`
  if (obeyed.has(mark)) return { outcome: 'done', run: runOf(row) }
  const holder = request.kind === 'retry' ? keyHolder(books, row, holders) : null
  const { answer, write } = steer(runOf(row), request, books.now, holder)
  if (write !== null) {
    books.rewrites.write(row, write, request.id)
    if (write.append.length > 0) obeyed.add(mark)
    concludeIfParted(books, row)
  }
  return structuredClone(answer)
}

/** Who has the key of this run: of those that this batch has changed, as they are by now. */
function keyHolder(books: LentBooks, row: RunRow, holders: readonly RunRow[]): string | null {
  const key = uniqueText(row)
  if (key === null) return null
  const rivals = [...holders.map((one) => books.rewrites.get(one.id) ?? one), ...books.rewrites.all()]
  return rivals.find((one) => one.id !== row.id && isLive(one) && uniqueText(one) === key)?.id ?? null
}

/** Gives leases back; lost ones are passed over. */
export function releaseRuns(x: Execution, leases: readonly GivenBack[]): Promise<readonly never[]> {
  return reaching(x, {
    method: 'release',
    ids: leases.map(({ runId }) => runId),
    mayReach: false,
    mustLook: false,
    lend: lendBooks,
    async decide(books) {
      for (const lease of leases) {
        const row = books.rewrites.get(lease.runId) ?? (x.isOvertaken ? books.row(lease.runId) : undefined)
        if (row === undefined || !holds(row, lease)) continue
        books.rewrites.write(row, giveBack(runOf(row), books.now, lease.crashes), null)
        concludeIfParted(books, row)
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
