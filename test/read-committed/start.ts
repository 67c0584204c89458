// Inserting runs. Who has all of its keys is inserted; who has not, or has a twin, is looked up in the next statement, because an
// insert may have been kept from inserting by a row that its own snapshot does not show.

import type { NewRun, RunStart, Started } from '../../src/store.ts'
import { sends, type Transition } from '../../src/core/model/transition.ts'
import { advanced, left } from '../../src/core/rules/advance.ts'
import { Appends, type Appended } from './exchange/append.ts'
import { uniqueText } from '../../src/core/model/key.ts'
import { foremost } from '../../src/core/rules/insert-order.ts'
import { newRow } from '../../src/core/rules/new-row.ts'
import { obstacleTo, startInRounds, type ObstacleWork } from '../../src/core/rules/start.ts'
import type { LockedUnitOfWork } from './exchange/unit-of-work.ts'
import type { Execution } from './database/call.ts'
import { followStarts } from './commit.ts'
import { freeKeys, hint } from './rewrite.ts'
import { hasEnded } from './sessions.ts'
import {
  keysOf,
  keyText,
  newMessage,
  placeText,
  runOf,
  type KeyRow,
  type MessageRow,
  type RunRow,
} from './database/tables.ts'
import type { StatementName } from './statement-plan.ts'
import type { Transaction } from './database/transaction.ts'

export async function startRuns(x: Execution, runs: readonly RunStart[]): Promise<readonly Started[]> {
  const dead = await deadSessions(x, runs)
  return startAll(x, runs, dead, insertRows.bind(null, x), (some, answers) => follow(x, some, answers))
}

/** What follows from the first inputs of those that were created. */
async function follow(x: Execution, runs: readonly RunStart[], answers: Map<RunStart, Started>): Promise<void> {
  const created = runs.filter((run) => followsApart(run) && answers.get(run)?.created === true)
  if (created.length === 0) return
  const decided = created.map((run) => run.decided as Transition)
  for (const [index, followed] of (await followStarts(x, decided)).entries()) {
    answers.set(created[index] as RunStart, { created: true, taken: null, ...followed })
  }
}

/** More than entries and a time follow from its first input. */
function followsApart({ decided = null, messages = [] }: RunStart): boolean {
  if (decided === null) return false
  if (sends(decided)) return true
  const { status, outbound = null, base = null } = decided
  return status !== 'waiting' || outbound !== null || base !== null || messages.length > 0
}

/** Starts a run for another one, in the transaction of that; the rest of its transaction writes its journal and mailbox. */
export async function startChild(x: Execution, unitOfWork: LockedUnitOfWork, given: NewRun): Promise<Started> {
  if (unitOfWork.isDry) {
    const row = rowOf(given, unitOfWork.now, given.lease !== null)
    unitOfWork.rewrites.add(row)
    return { created: true, taken: null, run: runOf(row) }
  }
  const dead = await deadSessions(x, [given], 'commit.start')
  const [started] = await startAll(x, [given], dead, async (runs, rows) => {
    const taken = await takeKeys(x, rows, ['commit.start', 'commit.start'])
    const own = rows.filter((row) => taken.isWhole(row))
    const inserted = new Set(
      own.length === 0 ? [] : await x.run('commit.start', (tx) => tx.insertNew(x.tables.runs, own)),
    )
    await freeInVain(x, 'commit.start', taken, inserted)
    for (const row of inserted) {
      unitOfWork.rewrites.add(row)
      unitOfWork.rewrites.appends.add(firstOf(given, row))
      unitOfWork.putFirst(row.id, given.messages ?? [])
    }
    if (inserted.size > 0) return { inserted, obstacles: new Map() }
    return { inserted, obstacles: await x.run('commit.start', (tx) => look(x, tx, runs, taken)) }
  })
  return started as Started
}

/** What came of taking keys. */
interface Taken {
  isWhole(row: RunRow): boolean
  readonly fresh: readonly KeyRow[]
  /** The run that has a key, by its text. */
  readonly holders: ReadonlyMap<string, string>
}

/** Takes the keys of rows of which no two want the same, as far as they are free. */
async function takeKeys(
  x: Execution,
  rows: readonly RunRow[],
  [taking, looking]: readonly [StatementName, StatementName],
): Promise<Taken> {
  const { keys } = x.tables
  const wanted = rows.flatMap(keysOf).toSorted((a, b) => (keyText(a) < keyText(b) ? -1 : 1))
  if (wanted.length === 0) return { fresh: [], holders: new Map(), isWhole: () => true }
  if (x.is('insert-and-look-in-one')) return x.run(taking, (tx) => takeAndLook(x, tx, wanted))
  const fresh = await x.run(taking, (tx) => tx.insertNew(keys, wanted))
  const isFresh = new Set(fresh.map(keyText))
  const rest = wanted.map(keyText).filter((text) => !isFresh.has(text))
  const held = rest.length === 0 ? [] : await x.run(looking, (tx) => tx.select(keys, { at: ['key', rest] }))
  return takenOf(fresh, held)
}

/** The clever statement: who has a key is looked up as of before the insert waited for it. */
async function takeAndLook({ tables }: Execution, tx: Transaction, wanted: readonly KeyRow[]): Promise<Taken> {
  const held = tx.select(tables.keys, { at: ['key', wanted.map(keyText)] })
  return takenOf(await tx.insertNew(tables.keys, wanted), held)
}

function takenOf(fresh: readonly KeyRow[], held: readonly KeyRow[]): Taken {
  const holders = new Map([...held, ...fresh].map((one) => [keyText(one), one.runId]))
  return { fresh, holders, isWhole: (row) => keysOf(row).every((one) => holders.get(keyText(one)) === row.id) }
}

/** Keys that were taken for runs that were not inserted. */
async function freeInVain(
  x: Execution,
  name: StatementName,
  { fresh }: Taken,
  inserted: ReadonlySet<RunRow>,
): Promise<void> {
  const made = new Set(Array.from(inserted, ({ id }) => id))
  const inVain = fresh.filter(({ runId }) => !made.has(runId))
  if (inVain.length > 0) await x.run(name, (tx) => freeKeys(x, tx, inVain))
}

async function startAll(
  x: Execution,
  runs: readonly RunStart[],
  dead: ReadonlySet<string>,
  insert: (runs: readonly RunStart[], rows: readonly RunRow[]) => Promise<Inserted>,
  follow: (runs: readonly RunStart[], answers: Map<RunStart, Started>) => Promise<void> = async () => undefined,
): Promise<readonly Started[]> {
  const now = x.now()
  return startInRounds(runs, async (open, answers) => {
    const rows = open.map((run) => rowOf(run, now, isLeased(run, dead)))
    const { inserted, obstacles } = await insert(open, rows)
    for (const [index, run] of open.entries()) {
      const row = rows[index] as RunRow
      const obstacle = obstacles.get(run)
      if (inserted.has(row)) {
        answers.set(run, { created: true, taken: null, run: runOf(row) })
        hint(x, undefined, row)
      } else if (obstacle !== undefined) answers.set(run, obstacle)
    }
    await follow(
      open.filter((run) => answers.has(run)),
      answers,
    )
  })
}

function rowOf(run: RunStart, now: number, isLeased: boolean): RunRow {
  const { decided = null } = run
  const row = { ...newRow(run, now, isLeased), inbox: run.messages?.length ?? 0, startedAs: run.type }
  return decided === null || followsApart(run) ? row : left(advanced(row, decided, now), decided, now)
}

function isLeased({ lease, decided = null }: RunStart, dead: ReadonlySet<string>): boolean {
  return lease !== null && decided === null && !dead.has(lease.session)
}

interface Inserted {
  readonly inserted: ReadonlySet<RunRow>
  readonly obstacles: ReadonlyMap<NewRun, Started>
}

async function insertRows(x: Execution, runs: readonly RunStart[], rows: readonly RunRow[]): Promise<Inserted> {
  const { tables } = x
  if (x.is('look-then-insert')) {
    const wanted = rows.flatMap(keysOf)
    const held = await x.run('start.holders', (tx) => tx.select(tables.keys, { at: ['key', wanted.map(keyText)] }))
    const holders = new Map(held.map((one) => [keyText(one), one.runId]))
    const taken: Taken = { fresh: [], holders, isWhole: (row) => !keysOf(row).some((one) => holders.has(keyText(one))) }
    const free = rows.filter((row) => taken.isWhole(row))
    await x.run('start.keys', (tx) => tx.insertNew(tables.keys, free.flatMap(keysOf)))
    const inserted = new Set(await x.run('start.insert', (tx) => tx.insertNew(tables.runs, free)))
    await append(x, runs, rows, inserted)
    return lookForRest(x, runs, rows, { inserted, taken })
  }
  // In the one order in which all insert; of two rivals the second is looked at when the first is done.
  const rowOfRun = new Map(runs.map((run, index) => [run, rows[index] as RunRow]))
  const chosen = foremost(runs).map((run) => rowOfRun.get(run) as RunRow)
  const taken = await takeKeys(x, chosen, ['start.keys', 'start.holders'])
  const whole = chosen.filter((row) => taken.isWhole(row))
  const inserted = new Set(
    whole.length === 0 ? [] : await x.run('start.insert', (tx) => tx.insertNew(tables.runs, whole)),
  )
  await append(x, runs, rows, inserted)
  await freeInVain(x, 'start.free', taken, inserted)
  const known = foremost(runs)
  return lookForRest(x, known, chosen, { inserted, taken })
}

async function lookForRest(
  x: Execution,
  runs: readonly NewRun[],
  rows: readonly RunRow[],
  { inserted, taken }: { readonly inserted: ReadonlySet<RunRow>; readonly taken: Taken },
): Promise<Inserted> {
  const left = runs.filter((_, index) => !inserted.has(rows[index] as RunRow))
  if (left.length === 0) return { inserted, obstacles: new Map() }
  return { inserted, obstacles: await x.run('start.look', (tx) => look(x, tx, left, taken)) }
}

/** The entries behind the first one, of a run whose first input is decided. */
function followingOf(run: RunStart, { createdAt: at }: RunRow): readonly Appended[] {
  const { id: runId, feed, decided = null } = run
  if (decided === null || followsApart(run)) return []
  const { id: transition, append: drafts } = decided
  return [{ runId, seq: 1, drafts, transition, at, fed: feed ? drafts.length : 0 }]
}

/** The first entry of a run. */
function firstOf({ id: runId, first, transition, feed }: NewRun, { createdAt: at }: RunRow): Appended {
  return { runId, seq: 0, drafts: [first], transition, at, fed: feed ? 1 : 0 }
}

/** The first entries of what was inserted, and what lies in their mailboxes. */
async function append(
  x: Execution,
  runs: readonly RunStart[],
  rows: readonly RunRow[],
  inserted: ReadonlySet<RunRow>,
): Promise<void> {
  const appends = new Appends()
  const messages: MessageRow[] = []
  for (const [index, run] of runs.entries()) {
    const row = rows[index] as RunRow
    if (!inserted.has(row)) continue
    appends.add(firstOf(run, row))
    for (const following of followingOf(run, row)) appends.add(following)
    messages.push(
      ...(run.messages ?? []).map((draft, place) => newMessage(row, draft, place + 1, row.createdAt, 'queued')),
    )
  }
  await appends.append(x, 'start.append')
  if (messages.length > 0) await x.run('start.messages', (tx) => tx.insert(x.tables.messages, messages))
  await appends.feed(x, 'start.feed')
}

/** What is in the way of each, in the order in which that is reported. */
function look(
  x: Execution,
  tx: Pick<Transaction, 'select'>,
  runs: readonly NewRun[],
  { holders }: Taken,
): ReadonlyMap<NewRun, Started> {
  const { tables } = x
  const ids = tx.select(tables.runs, { at: ['id', runs.map(({ id }) => id)] })
  const firsts = tx.select(tables.journal, { at: ['place', runs.map(({ id }) => placeText(id, 1))] })
  const rivals = tx.select(tables.runs, { at: ['id', [...holders.values()]] })
  const holderOf = (type: string, key: string): RunRow | undefined => {
    const holder = holders.get(keyText({ type, key }))
    return rivals.find(({ id }) => id === holder)
  }
  const work: ObstacleWork = {
    twin: ({ id }) => {
      const row = ids.find((one) => one.id === id)
      return row && { run: runOf(row), transition: firsts.find(({ runId }) => runId === id)?.entry.transition }
    },
    sameStart: ({ type, idempotencyKey }) => {
      const row = holderOf(type, idempotencyKey ?? '')
      return row && runOf(row)
    },
    keyRival: (given) => {
      const row = holderOf('', uniqueText(given) ?? '')
      return row?.endedAt === null ? runOf(row) : undefined
    },
  }
  // There must be a first one, or the clever statement would be tried again.
  const unseen = (given: NewRun): Started | null =>
    x.is('insert-and-look-in-one') ? { created: false, taken: 'key', run: runOf(rowOf(given, x.now(), false)) } : null
  const found = runs.map((run) => [run, obstacleTo(work, run) ?? unseen(run)] as const)
  return new Map(found.flatMap(([run, obstacle]) => (obstacle === null ? [] : [[run, obstacle]])))
}

async function deadSessions(
  x: Execution,
  runs: readonly NewRun[],
  name: 'start.session' | 'commit.start' = 'start.session',
): Promise<ReadonlySet<string>> {
  const wanted = runs.flatMap(({ lease }) => (lease === null ? [] : [lease.session]))
  if (wanted.length === 0) return new Set()
  return x.run(name, (tx) => new Set(wanted.filter((session) => hasEnded(x, tx, session))))
}
