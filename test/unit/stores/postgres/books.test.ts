// What the rules of the exchange are lent: never an answer from what was not locked and looked at, and one row, message or
// wait for everything that was decided about it.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../../src/core/broadcasting.ts'
import { conclude, unwatch, watch } from '../../../../src/core/exchange.ts'
import type { WaitRow } from '../../../../src/core/books.ts'
import type { Run } from '../../../../src/core/run.ts'
import type { Broadcast } from '../../../../src/core/topic.ts'
import { PostgresBooks } from '../../../../src/stores/postgres/books.ts'
import type { Found } from '../../../../src/stores/postgres/found.ts'
import { Missing, Wants } from '../../../../src/stores/postgres/wants.ts'

const run = (id: string, changes: Partial<Run> = {}): Run =>
  ({
    id,
    status: 'waiting',
    readiness: 'idle',
    due: null,
    seq: 3,
    inbox: 0,
    wants: null,
    session: null,
    deletedAt: null,
    ...changes,
  }) as Run

function found(changes: Partial<Found> = {}): Found {
  const runs = changes.runs ?? new Map<string, Run>()
  return {
    asked: new Set(runs.keys()),
    lockedOut: new Set(),
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
    crowds: new Map(),
    passedOn: [],
    ...changes,
  }
}

const wait = (runId: string, openedAt = 1): WaitRow => ({
  kind: 'topic',
  target: 'jobs',
  runId,
  effect: 'tell',
  delivery: 'one',
  openedAt,
  since: 0,
  missed: null,
})

const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const
const sent = { id: 'b', data: '1', policy: null, expiresAt: null }

/** What is wanted once the rules had to stop. */
function missing(work: () => unknown, wants = new Wants()): Wants {
  try {
    work()
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    error.add(wants)
    return wants
  }
  throw new Error('Nothing is missing.')
}

describe('what was not looked at', () => {
  it('is asked for, and never made up', () => {
    const books = new PostgresBooks(found({ runs: new Map([['a', run('a')]]) }), 5)
    expect([...missing(() => books.run('b')).runs]).toEqual(['b'])
    expect([...missing(() => books.lastEntry(run('a'))).targets]).toEqual(['a'])
    expect([...missing(() => books.topicPosition('jobs')).topics]).toEqual(['jobs'])
    expect([...missing(() => books.broadcast('jobs', 'x')).broadcastIds]).toEqual([['jobs', new Set(['x'])]])
    expect([...missing(() => books.hasMessage('a', 'm')).messageIds]).toEqual([['a', new Set(['m'])]])
    expect([...missing(() => books.backlog('jobs', 'one')).backlogs.keys()]).toEqual(['one jobs'])
  })

  it('of a run that ends is asked for together with all others that may end', () => {
    const runs = [run('a', { watched: true, status: 'failed' }), run('b', { inbox: 2 }), run('c')]
    const books = new PostgresBooks(found({ runs: new Map(runs.map((one) => [one.id, one])) }), 5)
    expect([...missing(() => conclude(books, runs[0] as Run)).ends]).toEqual(['a', 'b'])
  })

  it('of those who wait on a queue is asked for when all that were looked at are over', () => {
    const wants = new Wants()
    wants.broadcast(jobs, 'b', 1)
    const books = new PostgresBooks(
      found({
        runs: new Map([['a', run('a', { status: 'cancelled' })]]),
        topics: new Map([['jobs', 4]]),
        broadcasts: new Map([['jobs b', undefined]]),
        waits: new Map([['one jobs', [wait('a')]]]),
        cutWaits: new Set(['one jobs']),
      }),
      5,
    )
    const before = wants.waiters.get('one jobs')?.most ?? 0
    missing(() => broadcast(books, jobs, sent), wants)
    expect(wants.waiters.get('one jobs')?.most).toBe(2 * before)
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
    const books = new PostgresBooks(
      found({ waits: new Map([['run x', [on('a', 1), on('b', 2)]]]), cutWaits: new Set(['run x']) }),
      5,
    )
    books.addWait(on('new', 5))
    books.deleteWait(on('a', 1))
    expect(books.waitsOnRun('x', null, 10)).toEqual({ waits: [on('b', 2)], more: true })
    books.deleteWait(on('b', 2))
    expect(books.waitsOnRun('x', null, 10)).toEqual({ waits: [], more: true })
  })

  it('are all there if all were looked at, those who have come with this transaction among them', () => {
    const books = new PostgresBooks(found({ waits: new Map([['run x', [on('a', 1), on('b', 2)]]]) }), 5)
    books.addWait(on('new', 5))
    const from = { openedAt: 2, runId: 'b' }
    expect(books.waitsOnRun('x', from, 10)).toEqual({ waits: [on('b', 2), on('new', 5)], more: false })
    expect(books.waitsOnRun('x', from, 1)).toEqual({ waits: [on('b', 2)], more: true })
  })
})

describe('what was decided', () => {
  it('about a wait that is given up and begun again is both, in this order', () => {
    const books = new PostgresBooks(
      found({
        runs: new Map([['a', run('a')]]),
        topics: new Map([['jobs', 0]]),
        waits: new Map([['one jobs', [wait('a')]]]),
        backlogs: new Map([['one jobs', []]]),
      }),
      5,
    )
    unwatch(books, run('a'), { kind: 'topic', ...jobs })
    watch(books, run('a'), { kind: 'topic', ...jobs })
    expect([...books.deletedWaits.values()]).toMatchObject([{ target: 'jobs', runId: 'a', effect: 'tell' }])
    expect([...books.addedWaits.values()]).toEqual([wait('a', 5)])
  })

  it('about something that is sent and taken in the same transaction is one row', () => {
    const books = new PostgresBooks(
      found({
        runs: new Map([['a', run('a', { status: 'running', session: 's' })]]),
        topics: new Map([['jobs', 0]]),
        broadcasts: new Map([['jobs b', undefined]]),
        waits: new Map([['one jobs', []]]),
        backlogs: new Map([['one jobs', []]]),
      }),
      5,
    )
    expect(broadcast(books, jobs, sent)).toEqual({ outcome: 'queued', runs: 0 })
    watch(books, run('a'), { kind: 'topic', ...jobs })
    expect(books.broadcasts).toMatchObject([{ id: 'b', position: 1, takenBy: 'a' } satisfies Partial<Broadcast>])
    expect(books.takenBroadcasts).toEqual([])
    expect([...books.puts.keys()]).toEqual(['a broadcast:1:4:jobs:b'])
    expect([...books.mailed]).toEqual(['a'])
    expect(books.addedWaits.size).toBe(0)
  })

  it('about a deleted run that waits counts its mail and wakes nobody', () => {
    const books = new PostgresBooks(found({ runs: new Map([['a', run('a', { deletedAt: 2 })]]) }), 5)
    books.put({ id: 'm', runId: 'a', kind: 'signal', name: 'go', data: '1', policy: null })
    expect(books.run('a')).toMatchObject({ inbox: 1, readiness: 'idle', due: null })
  })
})
