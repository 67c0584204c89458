// What the rules of the exchange are lent: never an answer from what was not locked and looked at, and one row, message or
// wait for everything that was decided about it.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../../../src/core/rules/messages/broadcast.ts'
import { conclude, unwatch, watch } from '../../../../../src/core/rules/messages/exchange.ts'
import type { WaitRow } from '../../../../../src/core/rules/messages/unit-of-work.ts'
import type { Run } from '../../../../../src/core/model/run.ts'
import type { Broadcast } from '../../../../../src/core/model/topic.ts'
import { PostgresUnitOfWork } from '../../../../../src/stores/postgres/exchange/unit-of-work.ts'
import type { LockedRows } from '../../../../../src/stores/postgres/exchange/locked-rows.ts'
import { Missing, LockRequest } from '../../../../../src/stores/postgres/exchange/lock-request.ts'

const run = (id: string, changes: Partial<Run> = {}): Run =>
  ({
    id,
    status: 'waiting',
    readiness: 'idle',
    due: null,
    seq: 3,
    inbox: 0,
    wakeNames: null,
    session: null,
    deletedAt: null,
    ...changes,
  }) as Run

function lockedRows(changes: Partial<LockedRows> = {}): LockedRows {
  const runs = changes.runs ?? new Map<string, Run>()
  return {
    requested: new Set(runs.keys()),
    lockedOut: new Set(),
    lockedOutTopics: new Set(),
    runs,
    lasts: new Map(),
    unread: new Map(),
    cutUnread: new Set(),
    waits: new Map(),
    cutWaits: new Set(),
    topics: new Map(),
    broadcasts: new Map(),
    backlogs: new Map(),
    cutBacklogs: new Set(),
    messages: new Map(),
    chores: new Map([
      ['topic jobs', undefined],
      ['late jobs', undefined],
    ]),
    kept: new Map(),
    depths: new Map(),
    keptRead: [],
    sentEntries: [],
    crowds: new Map(),
    passedOn: [],
    ...changes,
  }
}

const wait = (runId: string, openedAt = 1): WaitRow => ({
  kind: 'topic',
  target: 'jobs',
  runId,
  effect: 'notify',
  delivery: 'one',
  openedAt,
  since: 0,
  missed: null,
})

const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const
const sent = { id: 'b', data: '1', policy: null, expiresAt: null }

/** What is wanted once the rules had to stop. */
function missing(work: () => unknown, lockRequest = new LockRequest()): LockRequest {
  try {
    work()
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    error.add(lockRequest)
    return lockRequest
  }
  throw new Error('Nothing is missing.')
}

describe('what was not looked at', () => {
  it('is asked for, and never made up', () => {
    const unitOfWork = new PostgresUnitOfWork(lockedRows({ runs: new Map([['a', run('a')]]) }), 5)
    expect([...missing(() => unitOfWork.run('b')).runs]).toEqual(['b'])
    expect([...missing(() => unitOfWork.lastEntry(run('a'))).targets]).toEqual(['a'])
    expect([...missing(() => unitOfWork.topicPosition('jobs')).topics]).toEqual(['jobs'])
    expect([...missing(() => unitOfWork.broadcast('jobs', 'x')).broadcastIds]).toEqual([['jobs', new Set(['x'])]])
    expect([...missing(() => unitOfWork.hasMessage('a', 'm')).messageIds]).toEqual([['a', new Set(['m'])]])
    expect([...missing(() => unitOfWork.backlog('jobs', 'one')).backlogs.keys()]).toEqual(['one jobs'])
  })

  it('of a run that ends is asked for together with all others that may end', () => {
    const runs = [run('a', { watched: true, status: 'failed' }), run('b', { inbox: 2 }), run('c')]
    const unitOfWork = new PostgresUnitOfWork(lockedRows({ runs: new Map(runs.map((one) => [one.id, one])) }), 5)
    expect([...missing(() => conclude(unitOfWork, runs[0] as Run)).ends]).toEqual(['a', 'b'])
  })

  it('of those who wait on a queue is asked for when all that were looked at are over', () => {
    const lockRequest = new LockRequest()
    lockRequest.broadcast(jobs, 'b', 1)
    const unitOfWork = new PostgresUnitOfWork(
      lockedRows({
        runs: new Map([['a', run('a', { status: 'cancelled' })]]),
        topics: new Map([['jobs', 4]]),
        broadcasts: new Map([['jobs b', undefined]]),
        waits: new Map([['one jobs', [wait('a')]]]),
        cutWaits: new Set(['one jobs']),
      }),
      5,
    )
    const before = lockRequest.waiters.get('one jobs')?.most ?? 0
    missing(() => broadcast(unitOfWork, jobs, sent), lockRequest)
    expect(lockRequest.waiters.get('one jobs')?.most).toBe(2 * before)
  })
})

describe('those who wait on a run', () => {
  const on = (runId: string, openedAt: number): WaitRow => ({
    ...wait(runId, openedAt),
    kind: 'run',
    target: 'x',
    delivery: null,
  })

  it('are never taken from behind some that were not looked at', () => {
    const unitOfWork = new PostgresUnitOfWork(
      lockedRows({ waits: new Map([['run x', [on('a', 1), on('b', 2)]]]), cutWaits: new Set(['run x']) }),
      5,
    )
    unitOfWork.addWait(on('new', 5))
    unitOfWork.deleteWait(on('a', 1))
    expect(unitOfWork.waitsOnRun('x', null, 10)).toEqual({ waits: [on('b', 2)], more: true })
    unitOfWork.deleteWait(on('b', 2))
    expect(unitOfWork.waitsOnRun('x', null, 10)).toEqual({ waits: [], more: true })
  })

  it('are all there if all were looked at, those who have come with this transaction among them', () => {
    const unitOfWork = new PostgresUnitOfWork(lockedRows({ waits: new Map([['run x', [on('a', 1), on('b', 2)]]]) }), 5)
    unitOfWork.addWait(on('new', 5))
    const from = { openedAt: 2, runId: 'b' }
    expect(unitOfWork.waitsOnRun('x', from, 10)).toEqual({ waits: [on('b', 2), on('new', 5)], more: false })
    expect(unitOfWork.waitsOnRun('x', from, 1)).toEqual({ waits: [on('b', 2)], more: true })
  })
})

describe('what was decided', () => {
  it('about a wait that is given up and begun again is both, in this order', () => {
    const unitOfWork = new PostgresUnitOfWork(
      lockedRows({
        runs: new Map([['a', run('a')]]),
        topics: new Map([['jobs', 0]]),
        waits: new Map([['one jobs', [wait('a')]]]),
        backlogs: new Map([['one jobs', []]]),
      }),
      5,
    )
    unwatch(unitOfWork, run('a'), { kind: 'topic', ...jobs })
    watch(unitOfWork, run('a'), { kind: 'topic', ...jobs })
    expect([...unitOfWork.deletedWaits.values()]).toMatchObject([{ target: 'jobs', runId: 'a', effect: 'notify' }])
    expect([...unitOfWork.addedWaits.values()]).toEqual([wait('a', 5)])
  })

  it('about something that is sent and taken in the same transaction is one row', () => {
    const unitOfWork = new PostgresUnitOfWork(
      lockedRows({
        runs: new Map([['a', run('a', { status: 'running', session: 's' })]]),
        topics: new Map([['jobs', 0]]),
        broadcasts: new Map([['jobs b', undefined]]),
        waits: new Map([['one jobs', []]]),
        backlogs: new Map([['one jobs', []]]),
      }),
      5,
    )
    expect(broadcast(unitOfWork, jobs, sent)).toEqual({ outcome: 'queued', runs: 0 })
    watch(unitOfWork, run('a'), { kind: 'topic', ...jobs })
    expect(unitOfWork.broadcasts).toMatchObject([{ id: 'b', position: 1, takenBy: 'a' } satisfies Partial<Broadcast>])
    expect(unitOfWork.takenBroadcasts).toEqual([])
    expect([...unitOfWork.puts.keys()]).toEqual(['a broadcast:1:4:jobs:b'])
    expect([...unitOfWork.messageArrived]).toEqual(['a'])
    expect(unitOfWork.addedWaits.size).toBe(0)
  })

  it('about a deleted run that waits counts its messages and wakes nobody', () => {
    const unitOfWork = new PostgresUnitOfWork(lockedRows({ runs: new Map([['a', run('a', { deletedAt: 2 })]]) }), 5)
    unitOfWork.put({ id: 'm', runId: 'a', kind: 'signal', name: 'go', data: '1', policy: null })
    expect(unitOfWork.run('a')).toMatchObject({ inbox: 1, readiness: 'idle', due: null })
  })
})
