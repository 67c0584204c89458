// Reads. Each statement sees one state; two of them may see two.

import type { RunState } from '../../../core/invariants/invariant.ts'
import type { Run } from '../../../core/run.ts'
import type { Loaded, LoadRequest, Page, RunFilter } from '../../../store.ts'
import { matching } from '../finding.ts'
import type { Execution } from './execution.ts'
import { entryOf, messageOf, runOf } from './tables.ts'

export async function readRuns(x: Execution, ids: readonly string[]): Promise<readonly (Run | undefined)[]> {
  const rows = await x.run('get.read', (tx) => tx.select(x.tables.runs, { at: ['id', ids] }))
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => {
    const row = byId.get(id)
    return row === undefined ? undefined : runOf(row)
  })
}

export async function load(x: Execution, requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
  const { journal, messages } = x.tables
  const wanted = requests.filter(({ limit }) => limit > 0).map(({ runId }) => runId)
  const entries =
    wanted.length === 0
      ? []
      : await x.run('load.entries', (tx) =>
          tx.select(journal, { at: ['run', wanted], order: (a, b) => a.entry.seq - b.entry.seq }),
        )
  const kept = await x.run('load.messages', (tx) =>
    tx.select(messages, {
      at: ['run', requests.map(({ runId }) => runId)],
      where: ({ takenBy }) => takenBy === null,
      order: (a, b) => a.position - b.position,
    }),
  )
  return requests.map(({ runId, after, limit }) => ({
    entries: entries
      .filter((row) => row.runId === runId && row.entry.seq > after)
      .slice(0, limit)
      .map(entryOf),
    messages: kept.filter((row) => row.runId === runId).map(messageOf),
  }))
}

export async function findRuns(x: Execution, filter: RunFilter, { limit, after }: Page): Promise<readonly Run[]> {
  const rows = await x.run('find.read', (tx) => tx.select(x.tables.runs, {}))
  const found = matching(rows, filter).filter(({ id }) => after === undefined || id < after)
  return found.slice(0, limit).map(runOf)
}

export async function countRuns(x: Execution, filter: RunFilter, atMost: number): Promise<number> {
  const rows = await x.run('count.read', (tx) => tx.select(x.tables.runs, {}))
  return Math.min(matching(rows, filter).length, atMost)
}

/** Every run, whole, as one statement sees them. */
export async function readStates(x: Execution): Promise<readonly RunState[]> {
  const { runs, journal, messages } = x.tables
  return x.run('check.read', (tx) => {
    const entries = tx.select(journal, { order: (a, b) => a.entry.seq - b.entry.seq })
    const kept = tx.select(messages, { order: (a, b) => a.position - b.position })
    return tx.select(runs, {}).map((row): RunState => {
      const mine = kept.filter(({ runId }) => runId === row.id)
      return {
        run: runOf(row),
        entries: entries.filter(({ runId }) => runId === row.id).map(entryOf),
        messages: mine.filter(({ takenBy }) => takenBy === null).map(messageOf),
        taken: mine.flatMap(({ id, position, takenBy }) => (takenBy === null ? [] : [{ id, position, takenBy }])),
      }
    })
  })
}
