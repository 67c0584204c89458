// Going on with what an end or a broadcast left to do. A chore is taken in a transaction of its own; its page locks, looks and
// writes like everything that reaches others, and finds out under the locks whether another process was faster.

import { choreOrder, choreTakenMs, nextChoreInMs, type Chore, partiesOf } from '../../src/core/model/chore.ts'
import { doChore } from '../../src/core/rules/messages/exchange.ts'
import { tidyTopic } from '../../src/core/rules/messages/unused-topics.ts'
import type { ChoresDone } from '../../src/store.ts'
import { lendUnitOfWork } from './exchange/unit-of-work.ts'
import { reading, transaction, type Execution, type Parts } from './database/call.ts'
import type { TopicRow } from './database/tables.ts'
import { exchange } from './exchange/exchange.ts'

export async function doChores(parts: Parts): Promise<ChoresDone> {
  const chore = await transaction(parts, 'chore.pick-commit', takeChore)
  const topic = chore === undefined ? await transaction(parts, 'chore.topic-commit', takeTopic) : undefined
  if (topic !== undefined) {
    await transaction(parts, 'chore.commit', (x) => lookAtTopic(x, topic))
    return { worked: true, nextInMs: null }
  }
  if (chore === undefined) return { worked: false, nextInMs: await reading(parts, nextInMs) }
  await transaction(parts, 'chore.commit', (x) =>
    exchange(x, {
      method: 'chore',
      ids: ownRuns(chore),
      mayTouch: true,
      mustLook: true,
      lend: lendUnitOfWork,
      decide: async (unitOfWork) => doChore(unitOfWork, chore),
    }),
  )
  return { worked: true, nextInMs: null }
}

/** The runs that it cannot do without. */
function ownRuns({ kind, target }: Chore): readonly string[] {
  if (kind === 'send') return [partiesOf(target).senderId]
  return kind === 'end' || kind === 'messages' ? [target] : []
}

async function takeChore(x: Execution): Promise<Chore | undefined> {
  const [taken] = await x.run('chore.pick', (tx) => {
    const now = x.now()
    const query = { where: ({ due }: { due: number }) => due <= now, order: choreOrder, limit: 1 }
    return tx.update(x.tables.chores, query, (row) => ({ ...row, due: now + choreTakenMs }), { skipLocked: true })
  })
  return taken
}

/** The name of one that is to be looked at. */
async function takeTopic(x: Execution): Promise<string | undefined> {
  const [taken] = await x.run('chore.topic', (tx) => {
    const now = x.now()
    const first = (a: TopicRow, b: TopicRow): number => (a.lookAt ?? 0) - (b.lookAt ?? 0) || (a.name < b.name ? -1 : 1)
    const isDue = ({ lookAt }: TopicRow): boolean => lookAt !== null && lookAt <= now
    const query = { where: isDue, order: first, limit: 1 }
    return tx.update(x.tables.topics, query, (row) => ({ ...row, lookAt: now + choreTakenMs }), { skipLocked: true })
  })
  return taken?.name
}

/** Nobody begins to wait on it, and nothing is sent to it, between the look and the commit: all of these lock it first. */
function lookAtTopic(x: Execution, topic: string): Promise<void> {
  return exchange(x, {
    method: 'chore',
    ids: [],
    mayTouch: true,
    mustLook: true,
    leavesTopicsUnlocked: x.is('no-lock-on-unused-topic'),
    lend: lendUnitOfWork,
    decide: async (unitOfWork) => tidyTopic(unitOfWork, topic),
  })
}

/** When another process must have done one that it has taken. */
async function nextInMs(x: Execution): Promise<number | null> {
  const dues = await x.run('chore.next', (tx) => tx.select(x.tables.chores, {}).map(({ due }) => due))
  return nextChoreInMs(dues, x.now())
}
