// Where a run stands while nobody holds it. A run in two places is performed twice, one in no place never.

import { describe, expect, it } from 'vitest'
import { newRow } from '../../../../../src/core/rules/new-row.ts'
import { nextDue, Queues, ReadyTurns } from '../../../../../src/stores/memory/tables/queues.ts'
import { Row } from '../../../../../src/stores/memory/tables/row.ts'

function rowOf(id: string, priority = 0, type = 'a', version = 1): Row {
  const first = { kind: 'started', name: null, meta: null, data: '' } as const
  const rest = {
    shard: 0,
    key: null,
    keyScope: 'workflow' as const,
    idempotencyKey: null,
    parentId: null,
    tags: [],
    metadata: null,
    feed: false,
    due: null,
    timeoutMs: null,
    expiresInMs: null,
    lease: null,
    leaseMs: null,
    transition: 't',
    first,
  }
  return new Row(newRow({ id, type, version, priority, ...rest }, 0, false))
}

const a = [{ type: 'a', version: 1 }]

function claimAll(queues: Queues, now: number, selectors = a): string[] {
  const turns = new ReadyTurns(queues.select(selectors, now), selectors)
  const ids: string[] = []
  for (let row = turns.first(); row !== undefined; row = turns.first()) {
    turns.take(row)
    queues.remove(row, 'leased')
    ids.push(row.id)
  }
  return ids
}

describe('Queues', () => {
  it('a run that is timed anew leaves its old place, in whichever heap that was', () => {
    const queues = new Queues()
    const row = rowOf('1')
    queues.enqueue(row, 10, 0)
    expect([row.readiness, row.due]).toEqual(['timed', 10])
    queues.enqueue(row, 0, 0)
    expect([row.readiness, row.due]).toEqual(['ready', 0])
    queues.enqueue(row, 50, 0)
    queues.enqueue(row, 20, 0)
    expect(claimAll(queues, 19)).toEqual([])
    expect(claimAll(queues, 20)).toEqual(['1'])
    expect(claimAll(queues, 100)).toEqual([])
  })

  it('a run that is leased or idle stands nowhere and is not due', () => {
    const queues = new Queues()
    const [ready, timed] = [rowOf('1'), rowOf('2')]
    queues.enqueue(ready, 0, 0)
    queues.enqueue(timed, 10, 0)
    queues.remove(ready, 'leased')
    queues.remove(timed, 'idle')
    expect([ready.readiness, ready.due, timed.readiness, timed.due]).toEqual(['leased', null, 'idle', null])
    expect(nextDue(queues.select(a, 5))).toBeNull()
    expect(claimAll(queues, 100)).toEqual([])
  })

  it('runs that come due in one look are claimed by priority first, whatever their time', () => {
    const queues = new Queues()
    queues.enqueue(rowOf('1', 0), 10, 0)
    queues.enqueue(rowOf('2', 1), 20, 0)
    queues.enqueue(rowOf('3', 1), 15, 0)
    expect(claimAll(queues, 30)).toEqual(['3', '2', '1'])
  })

  it('types take turns in the order of their names in the claim, anew at each priority, and versions share a turn', () => {
    const queues = new Queues()
    for (const id of ['a1', 'a2', 'a3', 'a4']) queues.enqueue(rowOf(id, 0, 'a', id === 'a2' ? 2 : 1), 0, 0)
    for (const id of ['b1', 'b2']) queues.enqueue(rowOf(id, 0, 'b'), 10, 0)
    for (const id of ['a5', 'a6']) queues.enqueue(rowOf(id, 1, 'a'), 0, 0)
    queues.enqueue(rowOf('c1', 1, 'c'), 0, 0)
    const selectors = ['c', 'b', 'a'].flatMap((type) => [1, 2].map((version) => ({ type, version })))
    expect(claimAll(queues, 10, selectors)).toEqual(['c1', 'a5', 'a6', 'b1', 'a1', 'b2', 'a2', 'a3', 'a4'])
  })

  it('finds the next due time of those selected and of nobody else', () => {
    const queues = new Queues()
    queues.enqueue(rowOf('1', 0, 'a', 1), 30, 0)
    queues.enqueue(rowOf('2', 0, 'a', 2), 20, 0)
    queues.enqueue(rowOf('3', 0, 'b', 1), 10, 0)
    const due = (...selectors: [string, number][]): number | null =>
      nextDue(
        queues.select(
          selectors.map(([type, version]) => ({ type, version })),
          0,
        ),
      )
    expect(due(['a', 1])).toBe(30)
    expect(due(['a', 1], ['a', 2])).toBe(20)
    expect(due(['c', 1])).toBeNull()
    expect(due()).toBeNull()
  })
})
