// The rules between runs, on a unit of work that is plain maps: who is notified, who gets what, and what becomes of what nobody read.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../../../src/core/rules/messages/broadcast.ts'
import {
  bindChild,
  conclude,
  doChore,
  refuseChild,
  unwatch,
  watch,
} from '../../../../../src/core/rules/messages/exchange.ts'
import { settleUnread } from '../../../../../src/core/rules/messages/settle.ts'
import type { BroadcastResult } from '../../../../../src/core/rules/messages/unit-of-work.ts'
import type { WaitTarget } from '../../../../../src/core/model/wait-target.ts'
import type { MessageKind } from '../../../../../src/core/model/message.ts'
import { messagePlaceOf, messagePlace } from '../../../../../src/core/payload/place.ts'
import type { MessagePolicy } from '../../../../../src/core/model/topic.ts'
import { rememberedMs, type Broadcast, type TopicRules } from '../../../../../src/core/model/topic.ts'
import { PlainUnitOfWork } from '../unit-of-work.ts'

const succeeded = { kind: 'succeeded', meta: null, data: '"out"' } as const
const cancelled = { kind: 'cancelled', meta: { reason: 'enough', notUndone: [] }, data: null } as const

const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 100 }
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

const endOf = (runId: string): WaitTarget => ({ kind: 'run', runId })
const on = (topic: TopicRules): WaitTarget => ({ kind: 'topic', ...topic })

/** A unit of work with these runs. */
function unitOfWorkOf(...ids: readonly string[]): PlainUnitOfWork {
  const unit = new PlainUnitOfWork()
  for (const id of ids) unit.add(id)
  return unit
}

function send(unit: PlainUnitOfWork, topic: TopicRules, id: string, changes: Partial<Broadcast> = {}): BroadcastResult {
  return broadcast(unit, topic, { id, data: '1', policy: null, expiresAt: null, ...changes })
}

describe('a run that watches another one', () => {
  it('is notified once of its end, with what it came to, and waits no more', () => {
    const unit = unitOfWorkOf('a', 'b')
    watch(unit, unit.known('a'), endOf('b'))
    expect([unit.known('b').watched, unit.messages]).toEqual([true, []])
    conclude(unit, unit.end('b', succeeded))
    expect(unit.messages).toMatchObject([{ id: 'ended:b:1', runId: 'a', kind: 'ended', name: 'b', policy: null }])
    const said = { status: 'succeeded', seq: 4, data: '"out"', reason: null }
    expect(JSON.parse(unit.messages[0]?.data ?? '')).toEqual(said)
    expect(unit.waits).toEqual([])
  })

  it('learns why it was cancelled', () => {
    const unit = unitOfWorkOf('a', 'b')
    watch(unit, unit.known('a'), endOf('b'))
    conclude(unit, unit.end('b', cancelled))
    const said = { status: 'cancelled', seq: 4, data: null, reason: 'enough' }
    expect(JSON.parse(unit.messages[0]?.data ?? '')).toEqual(said)
  })

  it('is notified at once if it is over, or if there is none, and does not wait', () => {
    const unit = unitOfWorkOf('a', 'b')
    unit.end('b', succeeded)
    watch(unit, unit.known('a'), endOf('b'))
    watch(unit, unit.known('a'), endOf('nobody'))
    expect(unit.messageNameOf('a')).toEqual(['ended b', 'ended nobody'])
    expect(JSON.parse(unit.messages[1]?.data ?? '')).toEqual({ status: 'not-found' })
    expect([unit.waits, unit.known('b').watched]).toEqual([[], false])
  })

  it('is notified twice under two ids if it watches twice', () => {
    const unit = unitOfWorkOf('a', 'b')
    unit.end('b', succeeded)
    watch(unit, unit.known('a'), endOf('b'))
    watch(unit, unit.known('a'), endOf('b'))
    expect(unit.messages.map(({ id }) => id)).toEqual(['ended:b:1', 'ended:b:2'])
  })

  it('is not notified if it stopped, or is over itself', () => {
    const unit = unitOfWorkOf('a', 'b', 'c')
    for (const id of ['a', 'c']) watch(unit, unit.known(id), endOf('b'))
    unwatch(unit, unit.known('a'), endOf('b'))
    unit.end('c', succeeded)
    conclude(unit, unit.end('b', succeeded))
    expect(unit.messages).toEqual([])
  })

  it('that stops watching a run keeps what binds it to that run as its child', () => {
    const unit = unitOfWorkOf('parent', 'child')
    bindChild(unit, unit.known('parent'), unit.known('child'), { awaited: false, onParentEnd: 'cancel' })
    unwatch(unit, unit.known('child'), endOf('parent'))
    conclude(unit, unit.end('parent', succeeded))
    expect(unit.known('child').status).toBe('cancelling')
  })
})

describe('an end with more who wait than one transaction may answer', () => {
  const waiting = ['a', 'b', 'c', 'd', 'e']

  /** One is answered with the end, and two by each page. */
  function crowd(): PlainUnitOfWork {
    const unit = unitOfWorkOf('x', ...waiting)
    unit.pages = { ...unit.pages, withEnd: 1, watchers: 2 }
    for (const id of waiting) watch(unit, unit.known(id), endOf('x'))
    return unit
  }

  function goOn(unit: PlainUnitOfWork): void {
    const chore = unit.chore('end', 'x')
    if (chore !== undefined) doChore(unit, chore)
  }

  const addresseesOf = (unit: PlainUnitOfWork): readonly string[] => unit.messages.map(({ runId }) => runId)

  it('notifies the first with its commit and the others page by page, each once and in their order', () => {
    const unit = crowd()
    conclude(unit, unit.end('x', succeeded))
    expect(addresseesOf(unit)).toEqual(['a'])
    const first = unit.chore('end', 'x')
    expect(first).toEqual({ kind: 'end', target: 'x', position: 0, after: { openedAt: unit.now, runId: 'a' } })
    goOn(unit)
    expect(addresseesOf(unit)).toEqual(['a', 'b', 'c'])
    if (first !== undefined) doChore(unit, first)
    expect(addresseesOf(unit), 'another process has gone on with it').toEqual(['a', 'b', 'c'])
    goOn(unit)
    expect([addresseesOf(unit), unit.waits, unit.chores.size]).toEqual([waiting, [], 0])
  })

  it('passes over who is locked, notifies all others, and comes back to those when some time has passed', () => {
    const unit = crowd()
    for (const id of ['a', 'b', 'd']) unit.locked.add(id)
    conclude(unit, unit.end('x', succeeded))
    expect([addresseesOf(unit), unit.chore('end', 'x')?.position]).toEqual([[], 1])
    goOn(unit)
    goOn(unit)
    expect(addresseesOf(unit)).toEqual(['c', 'e'])
    expect(unit.chore('end', 'x')).toEqual({ kind: 'end', target: 'x', position: 0, after: null })
    expect(unit.dues.get('end x')).toBeGreaterThan(unit.now)
    unit.locked.delete('b')
    unit.locked.delete('d')
    goOn(unit)
    goOn(unit)
    expect(addresseesOf(unit)).toEqual(['c', 'e', 'b', 'd'])
    unit.locked.clear()
    goOn(unit)
    goOn(unit)
    expect([addresseesOf(unit), unit.waits, unit.chores.size]).toEqual([['c', 'e', 'b', 'd', 'a'], [], 0])
  })

  it('comes back ever less often to who stays locked', () => {
    const unit = crowd()
    for (const id of waiting) unit.locked.add(id)
    conclude(unit, unit.end('x', succeeded))
    const pauses: number[] = []
    for (let page = 0; page < 200; page += 1) {
      goOn(unit)
      const pause = (unit.dues.get('end x') ?? 0) - unit.now
      if (pause > 0) pauses.push(pause)
      unit.now += Math.max(0, pause)
    }
    expect([pauses[0], pauses.at(-1)]).toEqual([200, 60_000])
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b))
  })

  it('leaves those who were not notified before the run was retried to its next end', () => {
    const unit = crowd()
    conclude(unit, unit.end('x', { kind: 'failed', meta: null, data: '"no"' }))
    unit.add('x', { ...unit.known('x'), status: 'pending', endedAt: null })
    goOn(unit)
    expect([addresseesOf(unit), unit.chores.size, unit.waits.length]).toEqual([['a'], 0, 4])
    conclude(unit, unit.end('x', succeeded))
    goOn(unit)
    goOn(unit)
    expect([addresseesOf(unit), unit.waits, unit.chores.size]).toEqual([waiting, [], 0])
    expect(unit.messages.map(({ data }) => (JSON.parse(data) as { status: string }).status)).toEqual([
      'failed',
      ...waiting.slice(1).map(() => 'succeeded'),
    ])
  })

  it('is reported as it stands to those that wait for a removed run', () => {
    const unit = crowd()
    conclude(unit, unit.add('x', { ...unit.known('x'), deletedAt: unit.now }))
    goOn(unit)
    goOn(unit)
    expect(addresseesOf(unit)).toEqual(waiting)
    expect(unit.messages.every(({ data }) => data === '{"status":"not-found"}')).toBe(true)
  })

  it('notifies and cancels a child that waits for its parent, also if a page ends between the two', () => {
    const unit = unitOfWorkOf('x', 'a')
    unit.pages = { ...unit.pages, withEnd: 1 }
    bindChild(unit, unit.known('x'), unit.known('a'), { awaited: false, onParentEnd: 'cancel' })
    watch(unit, unit.known('a'), endOf('x'))
    conclude(unit, unit.end('x', succeeded))
    expect([unit.known('a').status, addresseesOf(unit)]).toEqual(['cancelling', []])
    goOn(unit)
    expect([addresseesOf(unit), unit.waits, unit.chores.size]).toEqual([['a'], [], 0])
  })
})

describe('a child', () => {
  it('is reported to its parent if that awaits it, and is cancelled with it if it is bound to it', () => {
    const unit = unitOfWorkOf('parent', 'awaited', 'bound', 'free')
    const parent = unit.known('parent')
    bindChild(unit, parent, unit.known('awaited'), { awaited: true, onParentEnd: 'abandon' })
    expect(unit.known('parent').watched).toBe(false)
    bindChild(unit, parent, unit.known('bound'), { awaited: false, onParentEnd: 'cancel' })
    bindChild(unit, parent, unit.known('free'), { awaited: false, onParentEnd: 'abandon' })
    expect(['parent', 'awaited', 'bound', 'free'].map((id) => unit.known(id).watched)).toEqual([
      true,
      true,
      false,
      false,
    ])
    conclude(unit, unit.end('awaited', succeeded))
    expect(unit.messageNameOf('parent')).toEqual(['ended awaited'])
    conclude(unit, unit.end('parent', succeeded))
    expect(unit.known('bound').status).toBe('cancelling')
    expect(unit.appended.get('bound')).toMatchObject([
      { kind: 'cancelling', meta: { reason: 'Its parent parent has ended.' } },
    ])
    expect(unit.known('free').status).toBe('pending')
  })

  it('that is over, or is being cancelled, is left as it is when its parent ends', () => {
    const unit = unitOfWorkOf('parent')
    for (const [id, status] of [
      ['over', 'succeeded'],
      ['cancelling', 'cancelling'],
    ] as const) {
      unit.add(id, { status })
      bindChild(unit, unit.known('parent'), unit.known(id), { awaited: false, onParentEnd: 'cancel' })
    }
    conclude(unit, unit.end('parent', succeeded))
    expect(unit.appended.size).toBe(0)
  })

  it('that could not be started is reported as such', () => {
    const unit = unitOfWorkOf('parent')
    refuseChild(unit, unit.known('parent'), 'child', { taken: 'key', by: 'other' })
    expect(unit.messages).toMatchObject([{ id: 'refused:child', kind: 'refused', name: 'child' }])
    expect(JSON.parse(unit.messages[0]?.data ?? '')).toEqual({ taken: 'key', by: 'other' })
  })
})

describe('a topic', () => {
  it('WC-W3 gives what is sent to everyone who waits, and to nobody who comes later', () => {
    const unit = unitOfWorkOf('a', 'b', 'late')
    for (const id of ['a', 'b']) watch(unit, unit.known(id), on({ ...news, retainMs: 0 }))
    expect(send(unit, news, 'x')).toEqual({ outcome: 'delivered', runs: 2 })
    watch(unit, unit.known('late'), on({ ...news, retainMs: 0 }))
    expect(['a', 'b', 'late'].map((id) => unit.messageNameOf(id).length)).toEqual([1, 1, 0])
    expect(send(unit, news, 'y')).toEqual({ outcome: 'delivered', runs: 3 })
  })

  it('gives those who come in time what it retains, each once', () => {
    const unit = unitOfWorkOf('a')
    send(unit, news, 'x')
    unit.now += 99
    watch(unit, unit.known('a'), on(news))
    watch(unit, unit.known('a'), on(news))
    expect(unit.messageNameOf('a')).toEqual(['broadcast news'])
    unit.add('b')
    unit.now += 1
    watch(unit, unit.known('b'), on(news))
    expect(unit.messageNameOf('b')).toEqual([])
  })

  it('passes over runs that are over or deleted, and forgets their waits', () => {
    const unit = unitOfWorkOf('a', 'b', 'c')
    for (const id of ['a', 'b', 'c']) watch(unit, unit.known(id), on(news))
    unit.end('a', succeeded)
    unit.add('b', { deletedAt: 1 })
    expect(send(unit, news, 'x')).toEqual({ outcome: 'delivered', runs: 1 })
    expect(unit.waits.map(({ runId }) => runId)).toEqual(['c'])
  })

  it('answers what it knows as the first time', () => {
    const unit = unitOfWorkOf('a')
    expect(send(unit, news, 'x')).toEqual({ outcome: 'queued', runs: 0 })
    watch(unit, unit.known('a'), on({ ...news, retainMs: 0 }))
    expect(send(unit, news, 'x')).toEqual({ outcome: 'queued', runs: 0, repeated: true })
    expect(unit.broadcasts).toHaveLength(1)
  })

  it('numbers what is sent, and forgets nothing that it retains or that a repetition may ask for', () => {
    const unit = unitOfWorkOf()
    for (const id of ['x', 'y', 'z']) send(unit, news, id)
    expect(unit.broadcasts.map(({ position }) => position)).toEqual([1, 2, 3])
    send(unit, { ...news, retainMs: 2 * rememberedMs }, 'w')
    const before = [unit.now - rememberedMs, unit.now - 2 * rememberedMs]
    expect([unit.forgotten[0], unit.forgotten[3]]).toEqual(before.map((time) => ['news', time]))
  })
})

describe('a queue', () => {
  it('WC-W2 gives what is sent to the one that has waited longest, who waits no more', () => {
    const unit = unitOfWorkOf('b', 'a')
    watch(unit, unit.known('b'), on(jobs))
    unit.now += 1
    watch(unit, unit.known('a'), on(jobs))
    expect(send(unit, jobs, 'x')).toEqual({ outcome: 'delivered', runs: 1 })
    expect([unit.messageNameOf('b').length, unit.messageNameOf('a').length]).toEqual([1, 0])
    send(unit, jobs, 'y')
    expect(send(unit, jobs, 'z')).toEqual({ outcome: 'queued', runs: 0 })
    expect(unit.broadcasts.map(({ takenBy }) => takenBy)).toEqual(['b', 'a', null])
  })

  it('WC-W2 keeps what nobody waits for, and gives it to those who come, one each', () => {
    const unit = unitOfWorkOf('a', 'b', 'c')
    for (const id of ['x', 'y']) send(unit, jobs, id)
    for (const id of ['a', 'b', 'c']) watch(unit, unit.known(id), on(jobs))
    expect(['a', 'b', 'c'].map((id) => unit.messageNameOf(id).length)).toEqual([1, 1, 0])
    expect(unit.waits.map(({ runId }) => runId)).toEqual(['c'])
  })

  it('does not mix with a topic of its name', () => {
    const unit = unitOfWorkOf('a')
    watch(unit, unit.known('a'), on({ ...jobs, delivery: 'all' }))
    expect(send(unit, jobs, 'x')).toEqual({ outcome: 'queued', runs: 0 })
    expect(unit.waits).toHaveLength(1)
  })
})

describe('what nobody read', () => {
  const toQueue: MessagePolicy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 }
  const left = (kind: MessageKind, policy: MessagePolicy | null, id = 'm') =>
    ({ id, runId: 'a', kind, name: 'jobs', data: '"job"', policy }) as const

  it('WC-W3 is discarded, dead or passed on, as its policy says, when its run ends', () => {
    const unit = unitOfWorkOf('a', 'b')
    watch(unit, unit.known('b'), on(jobs))
    unit.put(left('signal', null, 'plain'))
    unit.put(left('signal', { onUnread: 'dead-letter' }, 'dead'))
    unit.put(left('topic-signal', toQueue, 'passed'))
    conclude(unit, unit.end('a', succeeded))
    expect([...unit.fates]).toEqual([
      ['a plain', 'discarded'],
      ['a dead', 'dead'],
      ['a passed', 'broadcast'],
    ])
    expect(unit.messageNameOf('b')).toEqual(['broadcast jobs'])
    expect(unit.broadcasts).toMatchObject([{ topic: 'jobs', data: '"job"', policy: toQueue, takenBy: 'b' }])
  })

  it('is found where it was written, however often it was passed on, under ids that do not grow', () => {
    const ids = [1, 2, 3, 4].map((n) => `01b8d1a4-e000-7000-8000-00000000000${n}`) as [string, ...string[]]
    const unit = unitOfWorkOf(...ids)
    unit.put({ ...left('topic-signal', toQueue), runId: ids[0] })
    for (const [index, id] of ids.entries()) {
      const [message, ...more] = unit.unread(id, 0, 10).messages
      const place = messagePlaceOf('', { kind: 'topic-signal', runId: ids[0], name: 'jobs', id: 'm' })
      expect([message && messagePlace('', message), more]).toEqual([place, []])
      expect(message?.id.length).toBeLessThan(100)
      conclude(unit, unit.end(id, succeeded))
      const next = ids[index + 1]
      if (next !== undefined) watch(unit, unit.known(next), on(jobs))
    }
    expect(unit.backlog('jobs', 'one')).toHaveLength(1)
  })

  it('and was sent to two runs under one id is passed on by both', () => {
    const unit = unitOfWorkOf('a', 'b', 'c')
    for (const runId of ['a', 'b']) {
      unit.put({ ...left('topic-signal', toQueue), runId })
      conclude(unit, unit.end(runId, succeeded))
    }
    expect(unit.backlog('jobs', 'one')).toHaveLength(2)
  })

  it('and comes again after its topic has forgotten it is another message to a run that still has the first', () => {
    const unit = unitOfWorkOf('a')
    watch(unit, unit.known('a'), on(news))
    send(unit, news, 'x')
    unit.broadcasts = []
    // Positions go on: a topic keeps them.
    unit.topicPosition = () => 1
    send(unit, news, 'x')
    expect(new Set(unit.messages.map(({ id }) => id)).size).toBe(2)
  })

  it('and that a queue gave to the run goes back to the queue, although the queue knows its id', () => {
    const unit = unitOfWorkOf('a', 'b')
    send(unit, jobs, 'x', { policy: toQueue })
    watch(unit, unit.known('a'), on(jobs))
    conclude(unit, unit.end('a', succeeded))
    watch(unit, unit.known('b'), on(jobs))
    expect(unit.messageNameOf('b')).toEqual(['broadcast jobs'])
  })

  it('and came after the end takes the same way', () => {
    const unit = unitOfWorkOf('a')
    unit.end('a', succeeded)
    unit.put(left('signal', { onUnread: 'dead-letter' }))
    for (const message of unit.unread('a', 0, 10).messages) settleUnread(unit, message)
    expect([...unit.fates.values()]).toEqual(['dead'])
  })
})
