// Inserting runs. The unique indexes decide who is first; who was not is looked up in the next statement, because the insert
// may have been kept from inserting by a row that its own snapshot does not show.

import { uniqueText } from '../../src/core/model/key.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { NewRun, Started } from '../../src/store.ts'
import { Appends, type Appended } from './exchange/append.ts'
import { foremost } from '../../src/core/rules/insert-order.ts'
import { newRow } from '../../src/core/rules/new-row.ts'
import { obstacleTo, startInRounds, type ObstacleWork } from '../../src/core/rules/start.ts'
import type { LockedUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { hint } from './rewrite.ts'
import { hasEnded } from './sessions.ts'
import { idempotencyText, newMessage, placeText, runOf, type MessageRow, type RunRow } from './database/tables.ts'
import type { Transaction } from './database/transaction.ts'

export async function startRuns(x: Execution, runs: readonly NewRun[]): Promise<readonly Started[]> {
  return startAll(x, runs, await deadSessions(x, runs), (open, rows) => insertRows(x, open, rows))
}

/** Starts a run for another one, in the transaction of that; the rest of its transaction writes its journal and mailbox. */
export async function startChild(x: Execution, unitOfWork: LockedUnitOfWork, given: NewRun): Promise<Started> {
  if (unitOfWork.isDry) {
    const row = rowOf(given, unitOfWork.now, false)
    unitOfWork.rewrites.add(row)
    return { created: true, taken: null, run: runOf(row) }
  }
  const [started] = await startAll(x, [given], new Set(), async (runs, rows) => {
    const inserted = new Set(await x.run('commit.start', (tx) => tx.insertNew(x.tables.runs, rows)))
    for (const row of inserted) {
      unitOfWork.rewrites.add(row)
      unitOfWork.rewrites.appends.add(firstOf(given, row))
      unitOfWork.putFirst(row.id, given.messages ?? [])
    }
    if (inserted.size > 0) return { inserted, obstacles: new Map() }
    return { inserted, obstacles: await x.run('commit.start', (tx) => look(x, tx, runs)) }
  })
  return started as Started
}

async function startAll(
  x: Execution,
  runs: readonly NewRun[],
  dead: ReadonlySet<string>,
  insert: (runs: readonly NewRun[], rows: readonly RunRow[]) => Promise<Inserted>,
): Promise<readonly Started[]> {
  const now = x.now()
  return startInRounds(runs, async (open, answers) => {
    const rows = open.map((run) => rowOf(run, now, run.lease !== null && !dead.has(run.lease.session)))
    const { inserted, obstacles } = await insert(open, rows)
    for (const [index, run] of open.entries()) {
      const row = rows[index] as RunRow
      const obstacle = obstacles.get(run)
      if (inserted.has(row)) {
        answers.set(run, { created: true, taken: null, run: runOf(row) })
        hint(x, undefined, row)
      } else if (obstacle !== undefined) answers.set(run, obstacle)
    }
  })
}

function rowOf(run: NewRun, now: number, isLeased: boolean): RunRow {
  return { ...newRow(run, now, isLeased), inbox: run.messages?.length ?? 0, startedAs: run.type }
}

interface Inserted {
  readonly inserted: ReadonlySet<RunRow>
  readonly obstacles: ReadonlyMap<NewRun, Started>
}

async function insertRows(x: Execution, runs: readonly NewRun[], rows: readonly RunRow[]): Promise<Inserted> {
  const { tables } = x
  if (x.is('look-then-insert')) {
    const obstacles = await x.run('start.look', (tx) => look(x, tx, runs))
    const free = rows.filter((_, index) => !obstacles.has(runs[index] as NewRun))
    const inserted = new Set(await x.run('start.insert', (tx) => tx.insertNew(tables.runs, free)))
    await append(x, runs, rows, inserted)
    return { obstacles, inserted }
  }
  if (x.is('insert-and-look-in-one')) {
    const both = await x.run('start.insert', (tx) => insertAndLook(x, tx, runs, rows))
    await append(x, runs, rows, both.inserted)
    return both
  }
  // In the one order in which everybody inserts; of two rivals the second is looked at when the first is done.
  const rowOfRun = new Map(runs.map((run, index) => [run, rows[index] as RunRow]))
  const chosen = foremost(runs).map((run) => rowOfRun.get(run) as RunRow)
  const inserted = new Set(await x.run('start.insert', (tx) => tx.insertNew(tables.runs, chosen)))
  await append(x, runs, rows, inserted)
  const left = runs.filter((_, index) => !inserted.has(rows[index] as RunRow))
  if (left.length === 0) return { inserted, obstacles: new Map() }
  return { inserted, obstacles: await x.run('start.look', (tx) => look(x, tx, left)) }
}

/** The first entry of a run. */
function firstOf({ id: runId, first, transition, feed }: NewRun, { createdAt: at }: RunRow): Appended {
  return { runId, seq: 0, drafts: [first], transition, at, fed: feed ? 1 : 0 }
}

/** The first entries of what was inserted, and what lies in their mailboxes. */
async function append(
  x: Execution,
  runs: readonly NewRun[],
  rows: readonly RunRow[],
  inserted: ReadonlySet<RunRow>,
): Promise<void> {
  const appends = new Appends()
  const messages: MessageRow[] = []
  for (const [index, run] of runs.entries()) {
    const row = rows[index] as RunRow
    if (!inserted.has(row)) continue
    appends.add(firstOf(run, row))
    messages.push(
      ...(run.messages ?? []).map((draft, place) => newMessage(row, draft, place + 1, row.createdAt, 'queued')),
    )
  }
  await appends.append(x, 'start.append')
  if (messages.length > 0) await x.run('start.messages', (tx) => tx.insert(x.tables.messages, messages))
  await appends.feed(x, 'start.feed')
}

/** What is in the way of each, in the order in which that is told. */
function look(
  { tables }: Execution,
  tx: Pick<Transaction, 'select'>,
  runs: readonly NewRun[],
): ReadonlyMap<NewRun, Started> {
  const ids = tx.select(tables.runs, { at: ['id', runs.map(({ id }) => id)] })
  const firsts = tx.select(tables.journal, { at: ['place', runs.map(({ id }) => placeText(id, 1))] })
  const same = tx.select(tables.runs, { at: ['idempotency', texts(runs, idempotencyOf)] })
  const holders = tx.select(tables.runs, { at: ['key', texts(runs, uniqueText)] })
  const seen = (row: RunRow | undefined): Run | undefined => (row === undefined ? undefined : runOf(row))
  const work: ObstacleWork = {
    twin: ({ id }) => {
      const run = seen(ids.find((row) => row.id === id))
      return run && { run, transition: firsts.find(({ runId }) => runId === id)?.entry.transition }
    },
    sameStart: (given) => seen(same.find((row) => idempotencyRowText(row) === idempotencyOf(given))),
    keyRival: (given) => seen(holders.find((row) => uniqueText(row) === uniqueText(given))),
  }
  const found = runs.map((run) => [run, obstacleTo(work, run)] as const)
  return new Map(found.flatMap(([run, obstacle]) => (obstacle === null ? [] : [[run, obstacle]])))
}

/** The clever statement: what was in the way is looked up as of before the insert waited for it. */
async function insertAndLook(
  x: Execution,
  tx: Transaction,
  runs: readonly NewRun[],
  rows: readonly RunRow[],
): Promise<Inserted> {
  const obstacles = new Map(look(x, tx, runs))
  const inserted = new Set(await tx.insertNew(x.tables.runs, rows))
  for (const [index, run] of runs.entries()) {
    const row = rows[index] as RunRow
    if (!inserted.has(row) && !obstacles.has(run)) obstacles.set(run, { created: false, taken: 'key', run: runOf(row) })
  }
  return { inserted, obstacles }
}

function texts(runs: readonly NewRun[], text: (run: NewRun) => string | null): readonly string[] {
  return runs.map(text).filter((one) => one !== null)
}

function idempotencyOf({ type, idempotencyKey }: NewRun): string | null {
  return idempotencyKey === null ? null : idempotencyText(type, idempotencyKey)
}

function idempotencyRowText({ startedAs, idempotencyKey }: RunRow): string {
  return idempotencyText(startedAs, idempotencyKey ?? '')
}

async function deadSessions(x: Execution, runs: readonly NewRun[]): Promise<ReadonlySet<string>> {
  const wanted = runs.flatMap(({ lease }) => (lease === null ? [] : [lease.session]))
  if (wanted.length === 0) return new Set()
  return x.run('start.session', (tx) => new Set(wanted.filter((session) => hasEnded(x, tx, session))))
}
