// Committing transitions. Most are one update with the fence in its condition: holder, token, place in the journal and the
// mailbox's counter are columns of the row, so they are judged anew after a wait. What does not fit is locked, then looked
// at, and judged by the core.

import { advanced, left } from '../../../core/advance.ts'
import type { Entry } from '../../../core/entry.ts'
import { bindChild, refuseChild, unwatch, watch } from '../../../core/exchange.ts'
import { uniqueText } from '../../../core/key.ts'
import { holds, isTerminal, type Run } from '../../../core/run.ts'
import { assertLegal, endsLease, isParkedBy, objection, type Transition } from '../../../core/transition.ts'
import { toldOf } from '../../../core/told.ts'
import { targetOf } from '../../../core/watched.ts'
import type { Committed, Refusal } from '../../../store.ts'
import { Appends } from './appending.ts'
import { concludeIfParted, type LentBooks } from './books.ts'
import { batch, type Execution, type Parts } from './execution.ts'
import { reaching, take } from './reaching.ts'
import { hint } from './rewriting.ts'
import { startChild } from './starting.ts'
import { byId, placeText, runOf, waitText, type RunRow } from './tables.ts'
import type { Snapshot } from './transaction.ts'

/** The usual ones in one transaction; then those that did not fit, in another: so nobody is locked out of order. */
export async function commitTransitions(
  parts: Parts,
  transitions: readonly Transition[],
): Promise<readonly Committed[]> {
  const answers = new Map<string, Committed>()
  const commitAll = async (
    given: readonly Transition[],
    work: (x: Execution, items: readonly Transition[]) => Promise<readonly (Committed | null)[]>,
  ): Promise<void> => {
    const told = await batch(parts, 'commit.commit', given, work)
    for (const [index, committed] of told.entries()) {
      if (committed !== null) answers.set((given[index] as Transition).id, committed)
    }
  }
  await commitAll(transitions.filter(mayBePlain), commitPlain)
  await commitAll(
    transitions.filter(({ id }) => !answers.has(id)),
    commitAfterLooking,
  )
  return transitions.map(({ id }) => answers.get(id) as Committed)
}

/** Those that their fence lets through; null for the others. */
async function commitPlain(x: Execution, transitions: readonly Transition[]): Promise<readonly (Committed | null)[]> {
  const appends = new Appends()
  const byRun = new Map(transitions.map((one) => [one.runId, one]))
  const of = (row: RunRow): Transition => byRun.get(row.id) as Transition
  const tells = transitions.some(({ feed = false }) => feed)
  const written = await x.run('commit.update', (tx) =>
    tx.update(
      x.tables.runs,
      {
        at: ['id', [...byRun.keys()]],
        // A flush in which nobody knows of the feed has none of its statements: who does not know is looked at.
        where: (row, snapshot) => (tells || !row.feed) && isPlain(x, row, of(row), snapshot),
        order: byId,
      },
      (row) => {
        const now = x.now()
        const kept = advanced(row, of(row), now)
        return of(row).status === null ? kept : { ...left(kept, of(row), now), startedAs: row.startedAs }
      },
    ),
  )
  const answers = new Map<string, Committed>()
  const taken = new Map<string, number>()
  const closed: string[] = []
  for (const row of written) {
    const { id, guard, append, status, takes, reach } = of(row)
    assertLegal('running', of(row))
    const told = toldOf(row, row, append.length)
    appends.add({ runId: row.id, seq: guard.seq, drafts: append, transition: id, at: row.updatedAt, told })
    if (status !== null) hint(x, 'running', row)
    for (const message of takes) taken.set(`${row.id} ${message}`, guard.seq + 1)
    for (const one of reach?.unwatches ?? []) {
      closed.push(waitText({ kind: one.kind, target: targetOf(one), runId: row.id, effect: 'tell' }))
    }
    const { seq, updatedAt: at, inbox } = row
    answers.set(id, { outcome: 'committed', seq, at, inbox, released: status !== null, wish: null })
  }
  await appends.append(x, 'commit.append')
  await take(x, taken)
  if (closed.length > 0) await x.run('commit.waits', (tx) => tx.delete(x.tables.waits, { at: ['whole', closed] }))
  await appends.feed(x, 'commit.feed')
  return transitions.map(({ id }) => answers.get(id) ?? null)
}

/** Nothing in the transition itself speaks against the usual way. */
function mayBePlain({ undo, continues, reach, obeys = null }: Transition): boolean {
  const reachesOthers = (reach?.starts.length ?? 0) + (reach?.watches.length ?? 0) > 0
  return undo === null && continues === null && obeys === null && !reachesOthers
}

function isPlain(x: Execution, row: RunRow, transition: Transition, snapshot: Snapshot): boolean {
  const { guard, parkIf } = transition
  const isFenced = x.is('no-fence') || (row.status === 'running' && holds(row, guard.lease))
  const isUsual = row.wish === null && row.deletedAt === null
  if (!isFenced || !isUsual || row.seq !== guard.seq || !mayEndAlone(row, transition)) return false
  if (objection(row, transition, x.now()) !== null) return false
  if (parkIf === null) return true
  return parkIf.inbox === (x.is('look-and-lock-in-one') ? countMessages(x, row, snapshot) : row.inbox)
}

/** Nobody has to be told of the end, and nothing is left in the mailbox: both are columns of the row. */
function mayEndAlone({ watched, inbox }: RunRow, { status, emptyAt = 0 }: Transition): boolean {
  return status === null || !isTerminal(status) || (!watched && inbox === emptyAt)
}

/** Judged anew or not, this counts as of when the statement began. */
function countMessages({ tables }: Execution, row: RunRow, snapshot: Snapshot): number {
  return snapshot.select(tables.messages, { at: ['run', [row.id]] }).length
}

function commitAfterLooking(x: Execution, transitions: readonly Transition[]): Promise<readonly Committed[]> {
  const isWatching = transitions.some(({ reach }) => (reach?.watches.length ?? 0) > 0)
  return reaching(x, {
    method: 'commit',
    ids: transitions.map(({ runId }) => runId),
    // Whoever begins to wait for an end has to know whether that has come.
    needs: transitions.flatMap(({ reach }) =>
      (reach?.watches ?? []).flatMap((one) => (one.kind === 'run' ? [one.runId] : [])),
    ),
    mayReach: transitions.some(
      ({ reach, status }) => (reach ?? null) !== null || (status !== null && isTerminal(status)),
    ),
    mustLook: true,
    leavesOthersUnlocked: isWatching && x.is('no-lock-on-watch'),
    async decide(books) {
      const answers: Committed[] = []
      for (const transition of transitions) answers.push(await commitOne(x, books, transition))
      return answers
    },
  })
}

async function commitOne(x: Execution, books: LentBooks, transition: Transition): Promise<Committed> {
  const { id, runId, guard, append, continues, takes } = transition
  const row = books.row(runId)
  if (row === undefined) return refused('not-found')
  const told = judge(row, transition, books.now, (seq) => entryAt(x, books, runId, seq))
  if (told !== null) return told
  if (isKeyTaken(x, books, row, continues)) return refused('key-taken')
  const { now, rewrites } = books
  rewrites.write(row, { run: advanced(row, transition, now), append }, id)
  books.take(runId, takes, guard.seq + 1)
  await reachOthers(x, books, transition)
  // What it watches may be over, and says so in its mailbox by now.
  const kept = books.row(runId) as RunRow
  const released = endsLease(kept, transition, (after, names) => books.hasMail(runId, after, names))
  if (released) rewrites.set(runId, left(kept, transition, now))
  concludeIfParted(books, row)
  const { seq, inbox, wish } = runOf(books.row(runId) as RunRow)
  return { outcome: 'committed', seq, at: now, inbox, released, wish: released ? null : wish }
}

async function reachOthers(x: Execution, books: LentBooks, { runId, reach }: Transition): Promise<void> {
  if (reach === undefined || reach === null) return
  const self = (): Run => books.run(runId) as Run
  for (const one of reach.unwatches) unwatch(books, self(), one)
  for (const one of reach.watches) watch(books, self(), one)
  for (const child of reach.starts) {
    const { created, taken, run } = await startChild(x, books, child.run)
    if (created) bindChild(books, self(), run, child)
    else refuseChild(books, self(), child.run.id, { taken: taken ?? 'id', by: run.id })
  }
}

function entryAt({ tables }: Execution, books: LentBooks, runId: string, seq: number): Entry | undefined {
  return books.view.select(tables.journal, { at: ['place', [placeText(runId, seq)]] })[0]?.entry
}

/** Whether somebody else has the key that the run needs to begin anew. */
function isKeyTaken(x: Execution, books: LentBooks, row: RunRow, continues: Transition['continues']): boolean {
  const key = continues === null || row.deletedAt !== null ? null : uniqueText({ ...row, ...continues })
  if (key === null) return false
  return books.view.select(x.tables.runs, { at: ['key', [key]] }).some(({ id }) => id !== row.id)
}

/** The answer if nothing is written; null if the transition takes effect. */
function judge(
  row: RunRow,
  transition: Transition,
  now: number,
  at: (seq: number) => Entry | undefined,
): Committed | null {
  const { id, guard, append } = transition
  if (append.length > 0 && at(guard.seq + 1)?.transition === id) {
    return repeated(row, transition, at(guard.seq + append.length)?.at)
  }
  if (!holds(row, guard.lease)) {
    return isParkedBy(row, transition)
      ? { outcome: 'committed', seq: row.seq, at: row.updatedAt, inbox: row.inbox, released: true, wish: null }
      : refused('lease-lost')
  }
  if (row.seq !== guard.seq) return refused('stale')
  assertLegal(row.status, transition)
  const reason = objection(row, transition, now)
  if (reason === 'cancelling') return { outcome: 'refused', reason, wish: runOf(row).wish }
  return reason === null ? null : refused(reason)
}

function refused(reason: Exclude<Refusal, 'cancelling'>): Committed {
  return { outcome: 'refused', reason }
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(row: RunRow, { guard, append, status }: Transition, at: number | undefined): Committed {
  // A late copy of a merged transition, whose first part was committed by itself meanwhile: nobody waits for this answer.
  if (at === undefined) return refused('stale')
  const held = holds(row, guard.lease)
  const { inbox, wish } = runOf(row)
  const seq = guard.seq + append.length
  return { outcome: 'committed', seq, at, inbox, released: status !== null && !held, wish: held ? wish : null }
}
