// Reads. Each statement sees one state; two of them may see two.

import type { ExchangeState } from '../../src/core/invariants/exchange.ts'
import type { RunState } from '../../src/core/invariants/invariant.ts'
import type { Fate } from '../../src/core/model/message.ts'
import type { Run } from '../../src/core/model/run.ts'
import { deadLetterPage } from '../../src/core/rules/messages/dead-letters.ts'
import { matching } from '../../src/core/rules/find.ts'
import { loadPage } from '../../src/core/rules/claims/load.ts'
import { loadBudgets } from '../../src/core/rules/claims/load-budget.ts'
import type { DeadLetter, DeadLetterFilter, Loaded, LoadRequest, Page, RunFilter } from '../../src/store.ts'
import type { Execution } from './database/call.ts'
import { entryOf, messageOf, runOf, type MessageRow } from './database/tables.ts'

export async function readRuns(x: Execution, ids: readonly string[]): Promise<readonly (Run | undefined)[]> {
  const rows = await x.run('get.read', (tx) => tx.select(x.tables.runs, { at: ['id', ids] }))
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => {
    const row = byId.get(id)
    return row === undefined ? undefined : runOf(row)
  })
}

export async function load(
  x: Execution,
  requests: readonly LoadRequest[],
  mostBytes: number | undefined,
): Promise<readonly Loaded[]> {
  const { journal, messages } = x.tables
  const bounds = loadBudgets(mostBytes)
  const wanted = requests.filter(({ limit, latest }) => limit > 0 || latest !== undefined).map(({ runId }) => runId)
  const entries =
    wanted.length === 0
      ? []
      : await x.run('load.entries', (tx) =>
          tx.select(journal, { at: ['run', wanted], order: (a, b) => a.entry.seq - b.entry.seq }),
        )
  const asking = requests
    .filter(({ messages }) => messages === undefined || messages.names.length > 0)
    .map(({ runId }) => runId)
  const kept =
    asking.length === 0
      ? []
      : await x.run('load.messages', (tx) =>
          tx.select(messages, {
            at: ['run', asking],
            where: ({ takenBy }) => takenBy === null,
            order: (a, b) => a.position - b.position,
          }),
        )
  return requests.map((request) => {
    const journal = entries.filter(({ runId }) => runId === request.runId).map(entryOf)
    const unread = kept.filter(({ runId }) => runId === request.runId).map(messageOf)
    return loadPage(journal, unread, request, bounds)
  })
}

export async function readDeadLetters(
  x: Execution,
  filter: DeadLetterFilter,
  page: Page,
): Promise<readonly DeadLetter[]> {
  const { runs, messages } = x.tables
  return x.run('dead.read', (tx) => {
    const [last] = page.after === undefined ? [] : tx.select(messages, { at: ['id', [page.after]] })
    const letters = tx.select(messages, { at: ['fate', ['dead']] }).flatMap((row) => {
      const [run] = tx.select(runs, { at: ['id', [row.runId]] })
      return run === undefined ? [] : [{ ...messageOf(row), status: run.status, endedAt: run.endedAt }]
    })
    return deadLetterPage(letters, filter, page, last)
  })
}

export async function settleDead(
  x: Execution,
  { runId, id }: { readonly runId: string; readonly id: string },
  fate: Fate,
): Promise<boolean> {
  const isDead = (row: MessageRow): boolean => row.fate === 'dead'
  const settled = await x.run('dead.settle', (tx) =>
    tx.update(x.tables.messages, { at: ['id', [`${runId} ${id}`]], where: isDead }, (row) => ({ ...row, fate })),
  )
  return settled.length > 0
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

/** Every run, whole, and all that passes between them, as one statement sees it. */
export async function readStates(
  x: Execution,
): Promise<{ readonly states: readonly RunState[]; readonly exchange: ExchangeState }> {
  const { runs, journal, messages, waits, broadcasts, chores } = x.tables
  return x.run('doctor.read', (tx) => {
    const entries = tx.select(journal, { order: (a, b) => a.entry.seq - b.entry.seq })
    const kept = tx.select(messages, { order: (a, b) => a.position - b.position })
    const states = tx.select(runs, {}).map((row): RunState => {
      const mine = kept.filter(({ runId }) => runId === row.id)
      return {
        run: runOf(row),
        entries: entries.filter(({ runId }) => runId === row.id).map(entryOf),
        messages: mine.filter(({ takenBy }) => takenBy === null).map(messageOf),
        taken: mine.flatMap(({ id, position, takenBy }) => (takenBy === null ? [] : [{ id, position, takenBy }])),
      }
    })
    const between = {
      waits: tx.select(waits, {}),
      broadcasts: tx.select(broadcasts, {}),
      chores: tx.select(chores, {}),
    }
    return { states, exchange: between }
  })
}
