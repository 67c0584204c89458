// How a call finds, locks and changes others: candidates without locks, then the locks (runs by id, topics by name), then the
// look on which the rules rely, then everything that they decided. The rules run twice. The first time nothing is locked and
// nothing is written: whom they ask for is whom the second time will need. The runs that a call is about are waited for; of the
// others, whom a stranger has locked is passed over, and the rules go on without it.

import type { LockedUnitOfWork, TouchedRows } from './unit-of-work.ts'
import type { Execution } from '../database/call.ts'
import type { Lent } from './locked-rows.ts'
import { byId, goneTopics, waitText, type RunRow, type TopicRow } from '../database/tables.ts'
import type { LockOptions, Query, Transaction } from '../database/transaction.ts'

export interface ExchangeTask<Answer, Work extends LockedUnitOfWork> {
  readonly method: keyof typeof statements
  /** The runs that it is about. */
  readonly ids: readonly string[]
  /** Others that it cannot do without. @default none */
  readonly needs?: readonly string[]
  /** Whether it is worth while to look for others before anything is locked. */
  readonly mayTouch: boolean
  /** Whether it looks after the locks even if it has not looked before them. */
  readonly mustLook: boolean
  /** How it takes its runs and those that it may reach. @default in order, and waits for each, but for strangers */
  readonly lock?: (
    tx: Transaction,
    ids: readonly string[],
    options: LockOptions<RunRow>,
  ) => Promise<readonly RunRow[]> | readonly RunRow[]
  /** A planted error: others are used without being locked. */
  readonly leavesOthersUnlocked?: boolean
  /** A planted error: a topic is looked at before it is locked, when it is written. */
  readonly leavesTopicsUnlocked?: boolean
  /** What the rules of this method read and write. */
  readonly lend: (x: Execution, lent: Lent) => Work
  /** Decides by the rules. It is called again when others were in the way, and must begin from nothing. */
  readonly decide: (unitOfWork: Work) => Promise<Answer>
}

const statements = {
  commit: { write: 'commit.write', put: 'commit.put' },
  deliver: { write: 'deliver.bump', put: 'deliver.insert' },
  control: { write: 'control.write', put: 'control.put' },
  rescue: { write: 'rescue.write', put: 'rescue.put' },
  release: { write: 'release.write', put: 'release.put' },
  chore: { write: 'chore.write', put: 'chore.put' },
} as const

const nobody: TouchedRows = { runs: new Set(), topics: new Set() }

export async function exchange<Answer, Work extends LockedUnitOfWork>(
  x: Execution,
  how: ExchangeTask<Answer, Work>,
): Promise<Answer> {
  const { method, ids, decide } = how
  const isSought = how.mayTouch || x.isOvertaken
  const found = isSought ? await x.run(`${method}.candidates`, (tx) => candidates(x, tx, how)) : nobody
  const others = how.leavesOthersUnlocked === true ? nobody : found
  const met = how.leavesOthersUnlocked === true ? [] : x.met
  const wanted = [...new Set([...ids, ...others.runs, ...met])]
  const inOrder: Query<RunRow> = { at: ['id', wanted], order: byId }
  const own = new Set([...ids, ...(how.needs ?? [])])
  const options: LockOptions<RunRow> = x.is('end-behind-a-watcher') ? {} : { passesStrangers: ({ id }) => !own.has(id) }
  const runs = await x.run(
    `${method}.lock`,
    (tx) => how.lock?.(tx, wanted, options) ?? tx.lock(x.tables.runs, inOrder, options),
  )
  const notGot = new Set([...others.runs, ...met])
  for (const { id } of runs) notGot.delete(id)
  const isTopicUnlocked = how.leavesTopicsUnlocked === true
  const topics =
    others.topics.size === 0 || isTopicUnlocked
      ? new Map<string, TopicRow>()
      : await lockTopics(x, method, others.topics)
  const view = isSought || how.mustLook ? await x.run(`${method}.look`, (tx) => tx.view()) : null
  const isUnlocked = how.leavesOthersUnlocked === true || isTopicUnlocked || x.is('no-begin-again')
  const unitOfWork = how.lend(x, { runs, notGot, topics, view, isUnlocked, isDry: false })
  const answer = await decide(unitOfWork)
  await write(x, method, unitOfWork)
  return answer
}

/** Who would be reached, as far as can be seen now. */
async function candidates<Answer, Work extends LockedUnitOfWork>(
  x: Execution,
  tx: Transaction,
  { lend, decide }: Pick<ExchangeTask<Answer, Work>, 'lend' | 'decide'>,
): Promise<TouchedRows> {
  const hints = x.hints.length
  const unitOfWork = lend(x, {
    runs: [],
    notGot: new Set(),
    topics: new Map(),
    view: tx.view(),
    isUnlocked: true,
    isDry: true,
  })
  // Whatever is wrong by what is seen here may be right under the locks, and is answered there otherwise.
  await decide(unitOfWork).catch(() => undefined)
  x.hints.length = hints
  return unitOfWork.touched
}

/**
 * A topic has a row from the time at which the first caller sends to it or waits on it. Made, and locked in a statement after that: the
 * insert may have waited for the transaction with which the topic before it went, whose position its own snapshot need not show.
 */
async function lockTopics(
  x: Execution,
  method: keyof typeof statements,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, TopicRow>> {
  const { topics } = x.tables
  const inOrder = [...names].toSorted()
  const fresh = inOrder.map((name) => ({ name, position: 0, retainMs: null, lookAt: x.now() + x.pages.topicRestMs }))
  return x.run(`${method}.lock-topics`, async (tx) => {
    const goneNow = (): number => tx.select(topics, { at: ['name', [goneTopics]] })[0]?.position ?? 0
    const goneBefore = goneNow()
    await tx.insertNew(topics, fresh)
    await tx.between()
    const gone = x.is('gone-topics-first') ? goneBefore : goneNow()
    const byName = (a: TopicRow, b: TopicRow): number => (a.name < b.name ? -1 : 1)
    const rows = await tx.lock(topics, { at: ['name', inOrder], order: byName })
    const begins = x.is('topic-begins-anew') ? 0 : gone
    return new Map(rows.map((row) => [row.name, row.position > 0 ? row : { ...row, position: begins }]))
  })
}

async function write(x: Execution, method: keyof typeof statements, unitOfWork: LockedUnitOfWork): Promise<void> {
  const { rewrites, topics } = unitOfWork
  const { put, taken, fates, opened, closed, late, left } = unitOfWork.changes()
  const { messages, waits, chores } = x.tables
  await rewrites.update(x, statements[method].write)
  // Nothing that is delivered writes a journal.
  if (method !== 'deliver') await rewrites.appends.append(x, `${method}.append`)
  await take(x, taken)
  if (put.length > 0) await x.run(statements[method].put, (tx) => tx.insert(messages, put))
  if (fates.size > 0) {
    await x.run(`${method}.settle`, (tx) =>
      tx.update(messages, { at: ['id', [...fates.keys()]] }, (row) => {
        const { fate, seq } = fates.get(`${row.runId} ${row.id}`) ?? { fate: row.fate, seq: row.takenBy }
        return { ...row, fate, takenBy: seq }
      }),
    )
  }
  if (opened.length + closed.length + late.size > 0) {
    await x.run(`${method}.waits`, async (tx) => {
      if (closed.length > 0) await tx.delete(waits, { at: ['whole', closed] })
      if (opened.length > 0) await tx.insert(waits, opened)
      const missing = { at: ['whole', [...late.keys()]] } as const
      await tx.update(waits, missing, (row) => ({ ...row, missed: late.get(waitText(row))?.missed ?? null }))
    })
  }
  await topics.write(x, `${method}.broadcasts`)
  if (method === 'chore') await topics.writeLooks(x)
  if (left.size > 0) {
    await x.run(`${method}.chores`, async (tx) => {
      for (const [text, chore] of left) {
        if (chore === null) await tx.delete(chores, { at: ['target', [text]] })
        else await tx.upsert(chores, chore, () => chore)
      }
    })
  }
  if (method === 'deliver') return
  await rewrites.appends.feed(x, `${method}.feed`)
  // A chore only asks children to end.
  await rewrites.follow(x, method === 'chore' ? 'chore.write' : `${method}.keys`)
}

/** A message that was taken stays known, so that delivering it again changes nothing. */
export async function take(x: Execution, taken: ReadonlyMap<string, number>): Promise<void> {
  if (taken.size === 0) return
  const query = {
    at: ['id', [...taken.keys()]],
    where: (row: { takenBy: number | null }) => row.takenBy === null,
  } as const
  await x.run('commit.take', (tx) =>
    tx.update(x.tables.messages, query, (row) => ({ ...row, takenBy: taken.get(`${row.runId} ${row.id}`) ?? null })),
  )
}
