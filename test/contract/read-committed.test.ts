// The plan of statements keeps the contract: when each call goes on as soon as it can, and when the statements of concurrent
// calls come in between each other in orders that seeds decide. All the while every call keeps to its plan.

import { describe, expect, it } from 'vitest'
import type { MessagePolicy } from '../../src/core/model/topic.ts'
import { statementPlan } from '../read-committed/statement-plan.ts'
import { waiting } from '../../src/testing/contract/drafts.ts'
import { endPaths } from '../../src/testing/contract/end-paths.ts'
import { parkWatching, outbound } from '../../src/testing/contract/exchanges.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { createContractBench } from '../../src/testing/contract/index.ts'
import { Interleaver } from '../support/interleaver.ts'
import { createPlannedStore } from '../support/planned-store.ts'
import { runContract } from './run-contract.ts'

const executed = new Set<string>()
const methods = new Set<string>()

function open(schedule: (statement: string) => Promise<void>) {
  const clock = createVirtualClock()
  const store = createPlannedStore({ clock, schedule }, (method, statements) => {
    methods.add(method)
    for (const statement of statements) executed.add(statement)
  })
  return { store, clock }
}

runContract('the read-committed store, as fast as it goes', async () => open(async () => undefined))

for (const seed of [1, 2, 3]) {
  runContract(`the read-committed store, its statements in the order of seed ${seed}`, async () =>
    open(new Interleaver(seed).schedule),
  )
}

const unread: MessagePolicy = { onUnread: 'broadcast', delivery: 'all', retainMs: 0 }
const topic = { name: 'news', delivery: 'all', retainMs: 0 } as const

// The contract looks at one consequence of an end at a time. Together they are the longest way through every plan.
describe('whatever ends a run, in one transaction', () => {
  it.for(endPaths.map((way) => [way.name, way] as const))(
    'who watches it is notified, its child is cancelled, and what it has not read goes on, if it %s',
    async ([, way]) => {
      const subject = open(new Interleaver(1).schedule)
      const bench = createContractBench(subject)
      const { store, hold, newRun, commit, deliver, message, run, mailbox } = bench
      const parent = await hold(way.changes)
      const child = newRun({ parentId: parent.runId })
      const starts = [{ run: child, awaited: true, onParentEnd: 'cancel' as const }]
      await commit(parent, { append: [waiting()], outbound: outbound({ starts }) })
      await deliver(message(parent.runId, { id: 'left', kind: 'topic-signal', name: 'news', policy: unread }))
      const watcher = await parkWatching(bench, [{ kind: 'run', runId: parent.runId }])
      const reader = await parkWatching(bench, [{ kind: 'topic', ...topic }])
      await store.beat({ session: watcher.lease.session, leaseMs: 1_000_000 })
      await way.end(bench, parent)
      expect((await run(parent.runId)).status).toBe(way.status)
      expect((await mailbox(watcher.runId)).map(({ kind, name }) => [kind, name])).toEqual([['ended', parent.runId]])
      expect((await mailbox(reader.runId)).map(({ kind, name }) => [kind, name])).toEqual([['broadcast', 'news']])
      expect((await run(child.id)).status).toBe('cancelling')
      expect(await mailbox(parent.runId)).toEqual([])
      expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
    },
  )
})

describe('a letter to a run that is over', () => {
  it('is kept for people, who settle it once', async () => {
    const bench = createContractBench(open(new Interleaver(1).schedule))
    const { store, start, control, deliver, message, unique } = bench
    const id = unique('run')
    const policy = { onUnread: 'dead-letter' } as const
    await start({ id, messages: [message(id, { id: 'first', policy })] })
    await control(id, { kind: 'cancel', mode: 'now', reason: null })
    await deliver(message(id, { id: 'late', policy }))
    expect((await store.deadLetters({}, { limit: 9 })).map((letter) => letter.id)).toEqual(['late', 'first'])
    const [one, other] = await Promise.all(
      [1, 2].map(() => store.settleDeadLetter({ runId: id, id: 'late' }, 'retried')),
    )
    expect([one, other].filter(Boolean)).toHaveLength(1)
    expect((await store.deadLetters({}, { limit: 9 })).map((letter) => letter.id)).toEqual(['first'])
    expect((await store.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})

describe('the statement plan', () => {
  it('is executed in all its parts by the contract, so that no statement is planned in vain', () => {
    const planned = Object.values(statementPlan).flatMap((plan) => plan.map(({ name }) => name))
    expect([...executed].toSorted()).toEqual(planned.toSorted())
    expect([...methods].toSorted()).toEqual(Object.keys(statementPlan).toSorted())
  })
})
