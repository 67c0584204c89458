// Committing transitions. Most are one update with the fence in its condition: holder, token, place in the journal and the
// mailbox's counter are columns of the row, so they are judged anew after a wait. What does not fit is locked, then looked
// at, and judged by the core.

import { advanced, left } from '../../../core/advance.ts'
import { bug } from '../../../core/error.ts'
import { uniqueText } from '../../../core/key.ts'
import { holds } from '../../../core/run.ts'
import { assertLegal, isParkedBy, receive, type Transition } from '../../../core/transition.ts'
import type { Committed, Refusal } from '../../../store.ts'
import { Appends } from './appending.ts'
import type { Execution } from './execution.ts'
import { hint, Rewrites } from './rewriting.ts'
import { byId, placeText, runOf, type EntryRow, type RunRow } from './tables.ts'
import type { Snapshot } from './transaction.ts'

export async function commitTransitions(
  x: Execution,
  transitions: readonly Transition[],
): Promise<readonly Committed[]> {
  const appends = new Appends()
  const answers = await commitPlain(x, transitions, appends)
  const left = transitions.filter(({ id }) => !answers.has(id))
  if (left.length > 0) for (const [id, answer] of await commitAfterLooking(x, left, appends)) answers.set(id, answer)
  await appends.append(x, 'commit.append')
  await take(
    x,
    transitions.filter(({ id }) => answers.get(id)?.isNew ?? false),
  )
  await appends.feed(x, 'commit.feed')
  return transitions.map(({ id }) => (answers.get(id) as Answer).committed)
}

interface Answer {
  readonly committed: Committed
  /** It was written just now. */
  readonly isNew: boolean
}

/** Those that their fence lets through. */
async function commitPlain(
  x: Execution,
  transitions: readonly Transition[],
  appends: Appends,
): Promise<Map<string, Answer>> {
  const byRun = new Map(transitions.map((one) => [one.runId, one]))
  const of = (row: RunRow): Transition => byRun.get(row.id) as Transition
  const written = await x.run('commit.update', (tx) =>
    tx.update(
      x.tables.runs,
      { at: ['id', [...byRun.keys()]], where: (row, snapshot) => isPlain(x, row, of(row), snapshot), order: byId },
      (row) => {
        const now = x.now()
        const kept = advanced(row, of(row), now)
        return of(row).status === null ? kept : { ...left(kept, of(row), now), startedAs: row.startedAs }
      },
    ),
  )
  const answers = new Map<string, Answer>()
  for (const row of written) {
    const { id, guard, append, status } = of(row)
    assertLegal('running', of(row))
    appends.add(row.id, guard.seq, append, id, row.updatedAt)
    if (status !== null) hint(x, 'running', row)
    const { seq, updatedAt: at, inbox } = row
    const committed = { outcome: 'committed', seq, at, inbox, released: status !== null, wish: null } as const
    answers.set(id, { committed, isNew: true })
  }
  return answers
}

function isPlain(x: Execution, row: RunRow, transition: Transition, snapshot: Snapshot): boolean {
  const { guard, undo, continues, parkIf } = transition
  const isFenced = x.is('no-fence') || (row.status === 'running' && holds(row, guard.lease))
  const isUsual = undo === null && continues === null && row.wish === null && row.deletedAt === null
  if (!isFenced || !isUsual || row.seq !== guard.seq) return false
  if (parkIf === null) return true
  return parkIf.inbox === (x.is('look-and-lock-in-one') ? countMessages(x, row, snapshot) : row.inbox)
}

/** Judged anew or not, this counts as of when the statement began. */
function countMessages({ tables }: Execution, row: RunRow, snapshot: Snapshot): number {
  return snapshot.select(tables.messages, { at: ['run', [row.id]] }).length
}

async function commitAfterLooking(
  x: Execution,
  transitions: readonly Transition[],
  appends: Appends,
): Promise<ReadonlyMap<string, Answer>> {
  const { runs, journal } = x.tables
  const ids = transitions.map(({ runId }) => runId)
  const locked = await x.run('commit.lock', (tx) => tx.lock(runs, { at: ['id', ids], order: byId }))
  const now = x.now()
  const rewrites = new Rewrites(locked, appends, now)
  const places = transitions.flatMap(({ runId, guard, append }) => [
    placeText(runId, guard.seq + 1),
    placeText(runId, guard.seq + append.length),
  ])
  const keys = transitions.flatMap(({ runId, continues }) => keyAnew(rewrites.get(runId), continues) ?? [])
  const { entries, holders } = await x.run('commit.look', (tx) => ({
    entries: tx.select(journal, { at: ['place', places] }),
    holders: tx.select(runs, { at: ['key', keys] }),
  }))
  const answers = new Map<string, Answer>()
  for (const transition of transitions) {
    const { id, runId, append, continues } = transition
    const row = rewrites.get(runId)
    const told = row === undefined ? refused('not-found') : judge(row, transition, entries)
    if (typeof told === 'object' || row === undefined) {
      answers.set(id, { committed: told as Committed, isNew: false })
      continue
    }
    const key = row.deletedAt === null ? keyAnew(row, continues) : null
    if (key !== null && holders.some((holder) => holder.id !== runId && uniqueText(holder) === key)) {
      answers.set(id, { committed: refused('key-taken'), isNew: false })
      continue
    }
    const released = told === 'released'
    const kept = advanced(row, transition, now)
    rewrites.write(row, { run: released ? left(kept, transition, now) : kept, append }, id)
    const { inbox, wish } = runOf(row)
    const answer = { outcome: 'committed', seq: kept.seq, at: now, inbox, released } as const
    answers.set(id, { committed: { ...answer, wish: released ? null : wish }, isNew: true })
  }
  await rewrites.update(x, 'commit.write')
  return answers
}

/** What becomes of a transition, or its answer if nothing is written. */
function judge(row: RunRow, transition: Transition, entries: readonly EntryRow[]): Committed | 'kept' | 'released' {
  const { id, runId, guard, append } = transition
  const at = (seq: number) => entries.find((one) => one.runId === runId && one.entry.seq === seq)?.entry
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
  const received = receive(row, transition)
  return received === 'refused' ? { outcome: 'refused', reason: 'cancelling', wish: runOf(row).wish } : received
}

function refused(reason: Exclude<Refusal, 'cancelling'>): Committed {
  return { outcome: 'refused', reason }
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(row: RunRow, { guard, append, status }: Transition, at: number | undefined): Committed {
  if (at === undefined) throw bug('A transition was committed in part', { runId: row.id })
  const held = holds(row, guard.lease)
  const { inbox, wish } = runOf(row)
  const seq = guard.seq + append.length
  return { outcome: 'committed', seq, at, inbox, released: status !== null && !held, wish: held ? wish : null }
}

/** A message that was taken stays known, so that delivering it again changes nothing. */
async function take(x: Execution, transitions: readonly Transition[]): Promise<void> {
  const takes = transitions.flatMap(({ runId, takes, guard }) =>
    takes.map((id) => [`${runId} ${id}`, guard.seq + 1] as const),
  )
  if (takes.length === 0) return
  const by = new Map(takes)
  await x.run('commit.take', (tx) =>
    tx.update(x.tables.messages, { at: ['id', [...by.keys()]], where: ({ takenBy }) => takenBy === null }, (row) => ({
      ...row,
      takenBy: by.get(`${row.runId} ${row.id}`) ?? null,
    })),
  )
}

/** The key that must be free for a run to begin anew. */
function keyAnew(row: RunRow | undefined, continues: Transition['continues']): string | null {
  return row === undefined || continues === null ? null : uniqueText({ ...row, ...continues })
}
