// Committing transitions. Most are one update with the fence in its condition: holder, token, place in the journal and the
// mailbox's counter are columns of the row, so they are judged anew after a wait. What does not fit is locked, then looked
// at, and judged by the core.

import { advanced, left } from '../../src/core/rules/advance.ts'
import { uniqueText } from '../../src/core/model/key.ts'
import type { Started } from '../../src/core/model/new-run.ts'
import {
  commitInSteps,
  judge,
  type Committed,
  type CommitWork,
  type EntryMark,
  type Keyed,
} from '../../src/core/rules/commit.ts'
import { holds, isTerminal, type Run } from '../../src/core/model/run.ts'
import type { Followed } from '../../src/core/rules/start.ts'
import { fedCount } from '../../src/core/rules/feed-entries.ts'
import { assertLegal, objection, sends, type Transition } from '../../src/core/model/transition.ts'
import { targetOf } from '../../src/core/model/wait-target.ts'
import { Appends } from './exchange/append.ts'
import { LockedUnitOfWork } from './exchange/unit-of-work.ts'
import { batch, type Execution, type Parts } from './database/call.ts'
import { exchange, take } from './exchange/exchange.ts'
import { followKeys, hint } from './rewrite.ts'
import { startChild } from './start.ts'
import { byId, keyText, placeText, waitText, type RunRow } from './database/tables.ts'
import type { Snapshot } from './database/transaction.ts'

/** The usual ones in one transaction; then those that did not fit, in another: so no run is locked out of order. */
export async function commitTransitions(
  parts: Parts,
  transitions: readonly Transition[],
): Promise<readonly Committed[]> {
  const answers = new Map<string, Committed>()
  const commitAll = async (
    given: readonly Transition[],
    work: (x: Execution, items: readonly Transition[]) => Promise<readonly (Committed | null)[]>,
  ): Promise<void> => {
    const answer = await batch(parts, 'commit.commit', given, work)
    for (const [index, committed] of answer.entries()) {
      if (committed !== null) answers.set((given[index] as Transition).id, committed)
    }
  }
  const plain = firstOfEachRun(transitions.filter(mayBePlain))
  await commitAll(plain, commitPlain)
  await commitAll(
    plain.filter(({ id, guard }) => guard.lease === null && !answers.has(id)),
    lookForStale,
  )
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
  const hasFeed = transitions.some(({ feed = false }) => feed)
  const before = new Map<string, RunRow>()
  const written = await x.run('commit.update', (tx) =>
    tx.update(
      x.tables.runs,
      {
        at: ['id', [...byRun.keys()]],
        // A flush in which no transition knows of the feed has none of its statements: one that does not know is looked at.
        where: (row, snapshot) => (hasFeed || !row.feed) && isPlain(x, row, of(row), snapshot),
        order: byId,
      },
      (row) => {
        const now = x.now()
        before.set(row.id, row)
        const kept = advanced(row, of(row), now)
        return of(row).status === null ? kept : { ...left(kept, of(row), now), startedAs: row.startedAs }
      },
    ),
  )
  const answers = new Map<string, Committed>()
  const taken = new Map<string, number>()
  const closed: string[] = []
  for (const row of written) {
    const { id, guard, append, status, takes, outbound } = of(row)
    assertLegal('running', of(row))
    const fed = fedCount(row, row, append.length)
    appends.add({ runId: row.id, seq: guard.seq, drafts: append, transition: id, at: row.updatedAt, fed })
    if (status !== null) hint(x, guard.lease === null ? 'waiting' : 'running', row)
    for (const message of takes) taken.set(`${row.id} ${message}`, guard.seq + 1)
    for (const one of outbound?.unwatches ?? []) {
      closed.push(waitText({ kind: one.kind, target: targetOf(one), runId: row.id, effect: 'notify' }))
    }
    const { seq, updatedAt: at, inbox } = row
    answers.set(id, { outcome: 'committed', seq, at, inbox, released: status !== null, controlRequest: null })
  }
  await appends.append(x, 'commit.append')
  await take(x, taken)
  if (closed.length > 0) await x.run('commit.waits', (tx) => tx.delete(x.tables.waits, { at: ['whole', closed] }))
  await appends.feed(x, 'commit.feed')
  await followKeys(x, 'commit.keys', before, written)
  return transitions.map(({ id }) => answers.get(id) ?? null)
}

/** Those without a lease whose place in the journal another transition has; null for the others. */
function lookForStale(x: Execution, transitions: readonly Transition[]): Promise<readonly (Committed | null)[]> {
  return x.run('commit.stale', (tx) =>
    transitions.map(({ id, runId, guard }): Committed | null => {
      const [row] = tx.select(x.tables.runs, { at: ['id', [runId]] })
      const [entry] = tx.select(x.tables.journal, { at: ['place', [placeText(runId, guard.seq + 1)]] })
      const isWaiting = row?.status === 'waiting' && row.readiness !== 'isolated' && row.session === null
      if (!isWaiting || row.deletedAt !== null || entry === undefined || entry.entry.transition === id) return null
      return { outcome: 'refused', reason: 'stale' }
    }),
  )
}

/** One statement writes a row once. The others of its run are judged after that. */
function firstOfEachRun(transitions: readonly Transition[]): readonly Transition[] {
  const runs = new Set<string>()
  return transitions.filter(({ runId }) => !runs.has(runId) && runs.add(runId))
}

/** Nothing in the transition itself speaks against the usual way. */
function mayBePlain(transition: Transition): boolean {
  const { guard, undo, continues, outbound, status, applies = null, base = null, settles = null } = transition
  if (sends(transition)) return false
  const hasOutbound = (outbound?.starts.length ?? 0) + (outbound?.watches.length ?? 0) > 0
  if (settles !== null || (guard.lease === null ? status !== 'waiting' : base !== null)) return false
  return undo === null && continues === null && applies === null && !hasOutbound
}

function isPlain(x: Execution, row: RunRow, transition: Transition, snapshot: Snapshot): boolean {
  const { guard, parkIf } = transition
  if (guard.lease === null) return isPlainUnheld(x, row, transition, snapshot)
  const isFenced = x.is('no-fence') || (row.status === 'running' && holds(row, guard.lease))
  const isUsual = row.controlRequest === null && row.deletedAt === null
  if (!isFenced || !isUsual || row.seq !== guard.seq || !mayEndAlone(row, transition)) return false
  if (objection(row, transition, x.now()) !== null) return false
  if (parkIf === null) return true
  return parkIf.inbox === (x.is('look-and-lock-in-one') ? countMessages(x, row, snapshot) : row.inbox)
}

/** Whether nothing has woken it is a column of the row as well: a message makes it ready. */
function isPlainUnheld(x: Execution, row: RunRow, { guard }: Transition, snapshot: Snapshot): boolean {
  if (row.status !== 'waiting' || row.deletedAt !== null || row.seq !== guard.seq) return false
  if (x.is('woken-by-messages')) return countMessages(x, row, snapshot) === 0
  const isAsleep = row.readiness === 'idle' || row.readiness === 'timed'
  return isAsleep && (row.due === null || row.due > x.now())
}

/** No other run has to be notified of the end, and nothing is left in the mailbox: both are columns of the row. */
function mayEndAlone({ watched, inbox }: RunRow, { status, emptyAt = 0 }: Transition): boolean {
  return status === null || !isTerminal(status) || (!watched && inbox === emptyAt)
}

/** Judged anew or not, this counts as of when the statement began. */
function countMessages({ tables }: Execution, row: RunRow, snapshot: Snapshot): number {
  return snapshot.select(tables.messages, { at: ['run', [row.id]] }).length
}

function commitAfterLooking(x: Execution, transitions: readonly Transition[]): Promise<readonly Committed[]> {
  return afterLooking(x, transitions, (unitOfWork, transition) => commitOne(x, unitOfWork, transition))
}

function afterLooking<Answer>(
  x: Execution,
  transitions: readonly Transition[],
  decide: (unitOfWork: LockedCommitWork, transition: Transition) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const isWatching = transitions.some(({ outbound }) => (outbound?.watches.length ?? 0) > 0)
  return exchange(x, {
    method: 'commit',
    ids: transitions.map(({ runId }) => runId),
    // A run that begins to wait for an end has to know whether that has come.
    needs: transitions.flatMap(({ outbound }) =>
      (outbound?.watches ?? []).flatMap((one) => (one.kind === 'run' ? [one.runId] : [])),
    ),
    mayTouch: transitions.some(
      (one) => (one.outbound ?? null) !== null || (one.status !== null && isTerminal(one.status)) || sends(one),
    ),
    mustLook: true,
    leavesOthersUnlocked: isWatching && x.is('no-lock-on-watch'),
    lend: (execution, lent) => new LockedCommitWork(execution, lent),
    async decide(unitOfWork) {
      const answers: Answer[] = []
      for (const transition of transitions) answers.push(await decide(unitOfWork, transition))
      return answers
    },
  })
}

async function commitOne(x: Execution, unitOfWork: LockedCommitWork, transition: Transition): Promise<Committed> {
  const row = unitOfWork.row(transition.runId)
  const answer = judge(unitOfWork, row, transition)
  if (answer !== null || row === undefined) return answer as Committed
  return commitInSteps(unitOfWork, row, transition, async ({ outbound }) => {
    const started: Started[] = []
    for (const { run } of outbound?.starts ?? []) started.push(await startChild(x, unitOfWork, run))
    return started
  })
}

/** What follows from the first inputs of runs that this transaction has started, or an earlier one. */
export function followStarts(x: Execution, decided: readonly Transition[]): Promise<readonly Followed[]> {
  return afterLooking(x, decided, async (unitOfWork, transition) => {
    const { runId } = transition
    const answer = await commitOne(x, unitOfWork, transition)
    const run = unitOfWork.run(runId)
    if (answer.outcome !== 'committed' || run === undefined) throw new TypeError(`What follows is refused: ${runId}`)
    const { leased } = answer
    return { run, ...(leased === undefined ? {} : { leased }) }
  })
}

/** The unit of work of transitions. */
class LockedCommitWork extends LockedUnitOfWork implements CommitWork {
  entryAt(runId: string, seq: number): EntryMark | undefined {
    return this.view.select(this.x.tables.journal, { at: ['place', [placeText(runId, seq)]] })[0]?.entry
  }

  keyHolder(run: Keyed): string | null {
    const key = uniqueText(run)
    if (key === null) return null
    const held = this.view.select(this.x.tables.keys, { at: ['key', [keyText({ type: '', key })]] })
    return held.find(({ runId }) => runId !== run.id)?.runId ?? null
  }

  advance(run: Run, transition: Transition): Run {
    const { id, append } = transition
    this.rewrites.write(run, { run: advanced(run, transition, this.now), append }, id)
    return this.present(run)
  }

  present({ id }: Run): Run {
    return this.row(id) as RunRow
  }

  leave(_before: Run, kept: Run, transition: Transition, isReleased: boolean): Run {
    if (isReleased) this.rewrites.set(kept.id, left(kept, transition, this.now))
    return this.present(kept)
  }
}
