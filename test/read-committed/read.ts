// Reads. Each statement sees one state; two of them may see two.

import type { ExchangeState } from '../../src/core/invariants/exchange.ts'
import type { RunState } from '../../src/core/invariants/invariant.ts'
import type { Fate } from '../../src/core/model/message.ts'
import type { Run } from '../../src/core/model/run.ts'
import {
  messagesAtOnce,
  type DeadLetter,
  type DeadLetterFilter,
  type Loaded,
  type LoadRequest,
  type MailboxRequest,
  type Page,
  type RunFilter,
} from '../../src/store.ts'
import { bytesOf, cutBy, loadBudgets, type LoadBudget } from '../../src/stores/load-budget.ts'
import { matching } from '../../src/stores/memory/find.ts'
import type { Execution } from './database/call.ts'
import { entryOf, messageOf, runOf, type EntryRow, type MessageRow } from './database/tables.ts'

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
  const asking = requests.filter(({ mail }) => mail === undefined || mail.names.length > 0).map(({ runId }) => runId)
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
    const page = pageOf(
      entries.filter(({ runId }) => runId === request.runId),
      request,
      bounds.entries,
    )
    const mail = messageNameOf(
      kept.filter(({ runId }) => runId === request.runId),
      request.mail,
    )
    const taken = bounds.messages.take(mail, bytesOf)
    return { entries: page.map(entryOf), messages: taken.map(messageOf), ...cutBy(bounds) }
  })
}

function pageOf(
  entries: readonly EntryRow[],
  { after, limit, latest }: LoadRequest,
  bound: LoadBudget,
): readonly EntryRow[] {
  if (latest === undefined) {
    const page = entries.filter(({ entry }) => entry.seq > after).slice(0, limit)
    return bound.take(page, ({ entry }) => bytesOf(entry))
  }
  const last = entries.findLast(({ entry }) => entry.kind === latest.kind && entry.name === latest.name)
  return last === undefined ? [] : [last]
}

function messageNameOf(messages: readonly MessageRow[], mail: MailboxRequest | undefined): readonly MessageRow[] {
  if (mail === undefined) return messages.slice(0, messagesAtOnce)
  const left = new Map(mail.names.map((name) => [name, mail.limit]))
  return messages.filter(({ name }) => {
    const more = left.get(name) ?? 0
    left.set(name, more - 1)
    return more > 0
  })
}

export async function readDeadLetters(
  x: Execution,
  { name, runId }: DeadLetterFilter,
  { limit, after }: Page,
): Promise<readonly DeadLetter[]> {
  const { runs, messages } = x.tables
  return x.run('dead.read', (tx) => {
    const isMeant = (row: MessageRow): boolean =>
      (name === undefined || row.name === name) && (runId === undefined || row.runId === runId)
    // Where the page before ended may be dead no more.
    const [last] = after === undefined ? [] : tx.select(messages, { at: ['id', [after]] })
    const found = tx.select(messages, {
      at: ['fate', ['dead']],
      where: (row) => isMeant(row) && (last === undefined || newestFirst(last, row) < 0),
      order: newestFirst,
      limit,
    })
    return found.flatMap((row) => {
      const [run] = tx.select(runs, { at: ['id', [row.runId]] })
      return run === undefined ? [] : [{ ...messageOf(row), status: run.status, endedAt: run.endedAt }]
    })
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

function newestFirst(a: MessageRow, b: MessageRow): number {
  return b.at - a.at || descending(a.runId, b.runId) || descending(a.id, b.id)
}

function descending(a: string, b: string): number {
  return a < b ? 1 : a > b ? -1 : 0
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
