// Who waits on a topic while a stranger has its row, on a unit of work that is plain maps.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../../../src/core/rules/messages/broadcast.ts'
import { doChore, unwatch, watch } from '../../../../../src/core/rules/messages/exchange.ts'
import type { BroadcastResult } from '../../../../../src/core/rules/messages/unit-of-work.ts'
import type { Broadcast, TopicRules } from '../../../../../src/core/model/topic.ts'
import type { WaitTarget } from '../../../../../src/core/model/wait-target.ts'
import { PlainUnitOfWork } from '../unit-of-work.ts'

const succeeded = { kind: 'succeeded', meta: null, data: '"out"' } as const

const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 100 }
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

const on = (topic: TopicRules): WaitTarget => ({ kind: 'topic', ...topic })

function unitOfWorkOf(...ids: readonly string[]): PlainUnitOfWork {
  const unit = new PlainUnitOfWork()
  for (const id of ids) unit.add(id)
  return unit
}

function send(unit: PlainUnitOfWork, topic: TopicRules, id: string, changes: Partial<Broadcast> = {}): BroadcastResult {
  return broadcast(unit, topic, { id, data: '1', policy: null, expiresAt: null, ...changes })
}

describe('a subscriber that another transaction has locked', () => {
  const said = (unit: PlainUnitOfWork, runId: string): readonly string[] =>
    unit.messages.filter((message) => message.runId === runId).map(({ data }) => data)

  function subscribed(...ids: readonly string[]): PlainUnitOfWork {
    const unit = unitOfWorkOf(...ids)
    for (const id of ids) watch(unit, unit.known(id), on(news))
    return unit
  }

  function goOn(unit: PlainUnitOfWork, kind: 'late' | 'topic' = 'late'): void {
    const chore = unit.chore(kind, 'news') ?? unit.chore(kind, 'jobs')
    if (chore !== undefined) doChore(unit, chore)
  }

  it('holds up nobody, and gets what it missed in its order once it can be had', () => {
    const unit = subscribed('a', 'b')
    unit.locked.add('a')
    for (const id of ['1', '2', '3']) {
      expect(send(unit, news, id, { data: id })).toEqual({ outcome: 'delivered', runs: 1 })
    }
    expect([said(unit, 'a'), said(unit, 'b')]).toEqual([[], ['1', '2', '3']])
    goOn(unit)
    expect(unit.dues.get('late news')).toBeGreaterThan(unit.now)
    unit.locked.clear()
    send(unit, news, '4', { data: '4' })
    expect(said(unit, 'a'), 'nothing overtakes what it missed').toEqual([])
    unit.pages = { ...unit.pages, missed: 2 }
    goOn(unit)
    expect(said(unit, 'a')).toEqual(['1', '2'])
    goOn(unit)
    expect([said(unit, 'a'), unit.chores.size]).toEqual([['1', '2', '3', '4'], 0])
    expect(unit.waits.map(({ missed }) => missed)).toEqual([null, null])
    send(unit, news, '5', { data: '5' })
    expect(said(unit, 'a')).toEqual(said(unit, 'b'))
  })

  it('keeps what it missed from being forgotten, and gets nothing that has expired', () => {
    const unit = subscribed('a')
    unit.locked.add('a')
    send(unit, news, '1', { data: '1', expiresAt: unit.now + 10 })
    send(unit, news, '2', { data: '2' })
    expect(unit.forgotten).toEqual([])
    unit.now += 20
    unit.locked.clear()
    goOn(unit)
    expect([said(unit, 'a'), unit.chores.size]).toEqual([['2'], 0])
    send(unit, news, '3')
    expect(unit.forgotten).toHaveLength(1)
  })

  it('gets nothing if it unsubscribes or ends before its turn comes', () => {
    const unit = subscribed('a', 'b')
    unit.locked.add('a').add('b')
    send(unit, news, '1')
    unit.locked.clear()
    unwatch(unit, unit.known('a'), on(news))
    unit.end('b', succeeded)
    goOn(unit)
    expect([unit.messages, unit.waits, unit.chores.size]).toEqual([[], [], 0])
  })

  it('is passed over by what is passed on in pages, and gets that as well', () => {
    const unit = subscribed('a', 'b', 'c')
    unit.pages = { ...unit.pages, subscribers: 1, late: 1 }
    unit.locked.add('b').add('c')
    send(unit, news, '1', { data: '1' })
    send(unit, news, '2', { data: '2' })
    for (let page = 0; page < 10; page += 1) goOn(unit, 'topic')
    expect([said(unit, 'a'), unit.chore('topic', 'news')]).toEqual([['1', '2'], undefined])
    unit.locked.delete('c')
    for (let page = 0; page < 5; page += 1) goOn(unit)
    expect([said(unit, 'b'), said(unit, 'c')]).toEqual([[], ['1', '2']])
    unit.locked.clear()
    for (let page = 0; page < 5; page += 1) goOn(unit)
    expect([said(unit, 'b'), unit.chores.size]).toEqual([['1', '2'], 0])
  })

  it('that is locked again behind a walk of several pages is met by the next walk', () => {
    const unit = subscribed('a', 'b')
    unit.pages = { ...unit.pages, late: 1 }
    unit.locked.add('a').add('b')
    send(unit, news, '1', { data: '1' })
    unit.locked.clear()
    goOn(unit)
    expect(said(unit, 'a')).toEqual(['1'])
    unit.locked.add('a')
    send(unit, news, '2', { data: '2' })
    unit.locked.clear()
    for (let page = 0; page < 5; page += 1) goOn(unit)
    send(unit, news, '3', { data: '3' })
    expect([said(unit, 'a'), said(unit, 'b'), unit.chores.size]).toEqual([['1', '2', '3'], ['1', '2', '3'], 0])
  })

  it('on a queue lets the next one take it; if there is none, it gets the oldest when it can be had', () => {
    const unit = unitOfWorkOf('a', 'b', 'c')
    watch(unit, unit.known('a'), on(jobs))
    watch(unit, unit.known('b'), on(jobs))
    unit.locked.add('a')
    expect(send(unit, jobs, '1', { data: '1' })).toEqual({ outcome: 'delivered', runs: 1 })
    expect(said(unit, 'b')).toEqual(['1'])
    expect(send(unit, jobs, '2', { data: '2' })).toEqual({ outcome: 'queued', runs: 0 })
    expect(send(unit, jobs, '3', { data: '3' })).toEqual({ outcome: 'queued', runs: 0 })
    watch(unit, unit.known('c'), on(jobs))
    expect(said(unit, 'c')).toEqual(['2'])
    goOn(unit)
    expect(unit.dues.get('late jobs')).toBeGreaterThan(unit.now)
    unit.locked.clear()
    goOn(unit)
    goOn(unit)
    expect([said(unit, 'a'), unit.waits, unit.chores.size]).toEqual([['3'], [], 0])
  })
})
