// The rules between runs, on books that are plain maps: who is told, who gets what, and what becomes of what nobody read.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../src/core/broadcasting.ts'
import { bindChild, conclude, doChore, giveUp, refuseChild, unwatch, watch } from '../../../src/core/exchange.ts'
import type { Sent } from '../../../src/core/books.ts'
import type { Watched } from '../../../src/core/watched.ts'
import type { MessageKind } from '../../../src/core/message.ts'
import { mailPlace, messagePlace } from '../../../src/core/place.ts'
import type { MessagePolicy } from '../../../src/core/topic.ts'
import { rememberedMs, type Broadcast, type TopicRules } from '../../../src/core/topic.ts'
import { PlainBooks } from './books.ts'

const succeeded = { kind: 'succeeded', meta: null, data: '"out"' } as const
const cancelled = { kind: 'cancelled', meta: { reason: 'enough', notUndone: [] }, data: null } as const

const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 100 }
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

const endOf = (runId: string): Watched => ({ kind: 'run', runId })
const on = (topic: TopicRules): Watched => ({ kind: 'topic', ...topic })

/** Books with these runs. */
function booksOf(...ids: readonly string[]): PlainBooks {
  const books = new PlainBooks()
  for (const id of ids) books.add(id)
  return books
}

function send(books: PlainBooks, topic: TopicRules, id: string, changes: Partial<Broadcast> = {}): Sent {
  return broadcast(books, topic, { id, data: '1', policy: null, expiresAt: null, ...changes })
}

describe('a run that watches another one', () => {
  it('is told once of its end, with what it came to, and waits no more', () => {
    const books = booksOf('a', 'b')
    watch(books, books.known('a'), endOf('b'))
    expect([books.known('b').watched, books.mail]).toEqual([true, []])
    conclude(books, books.end('b', succeeded))
    expect(books.mail).toMatchObject([{ id: 'ended:b:1', runId: 'a', kind: 'ended', name: 'b', policy: null }])
    const said = { status: 'succeeded', seq: 4, data: '"out"', reason: null }
    expect(JSON.parse(books.mail[0]?.data ?? '')).toEqual(said)
    expect(books.waits).toEqual([])
  })

  it('is told why it was cancelled', () => {
    const books = booksOf('a', 'b')
    watch(books, books.known('a'), endOf('b'))
    conclude(books, books.end('b', cancelled))
    const said = { status: 'cancelled', seq: 4, data: null, reason: 'enough' }
    expect(JSON.parse(books.mail[0]?.data ?? '')).toEqual(said)
  })

  it('is told at once if it is over, or if there is none, and does not wait', () => {
    const books = booksOf('a', 'b')
    books.end('b', succeeded)
    watch(books, books.known('a'), endOf('b'))
    watch(books, books.known('a'), endOf('nobody'))
    expect(books.mailOf('a')).toEqual(['ended b', 'ended nobody'])
    expect(JSON.parse(books.mail[1]?.data ?? '')).toEqual({ status: 'not-found' })
    expect([books.waits, books.known('b').watched]).toEqual([[], false])
  })

  it('is told twice under two ids if it watches twice', () => {
    const books = booksOf('a', 'b')
    books.end('b', succeeded)
    watch(books, books.known('a'), endOf('b'))
    watch(books, books.known('a'), endOf('b'))
    expect(books.mail.map(({ id }) => id)).toEqual(['ended:b:1', 'ended:b:2'])
  })

  it('is not told if it stopped, or is over itself', () => {
    const books = booksOf('a', 'b', 'c')
    for (const id of ['a', 'c']) watch(books, books.known(id), endOf('b'))
    unwatch(books, books.known('a'), endOf('b'))
    books.end('c', succeeded)
    conclude(books, books.end('b', succeeded))
    expect(books.mail).toEqual([])
  })

  it('that stops watching a run keeps what binds it to that run as its child', () => {
    const books = booksOf('parent', 'child')
    bindChild(books, books.known('parent'), books.known('child'), { awaited: false, onParentEnd: 'cancel' })
    unwatch(books, books.known('child'), endOf('parent'))
    conclude(books, books.end('parent', succeeded))
    expect(books.known('child').status).toBe('cancelling')
  })
})

describe('an end with more who wait than one transaction may answer', () => {
  const waiting = ['a', 'b', 'c', 'd', 'e']

  /** One is answered with the end, and two by each page. */
  function crowd(): PlainBooks {
    const books = booksOf('x', ...waiting)
    books.pages = { ...books.pages, withEnd: 1, watchers: 2 }
    for (const id of waiting) watch(books, books.known(id), endOf('x'))
    return books
  }

  function goOn(books: PlainBooks): void {
    const chore = books.chore('end', 'x')
    if (chore !== undefined) doChore(books, chore)
  }

  const toldBy = (books: PlainBooks): readonly string[] => books.mail.map(({ runId }) => runId)

  it('tells the first with its commit and the others page by page, each once and in their order', () => {
    const books = crowd()
    conclude(books, books.end('x', succeeded))
    expect(toldBy(books)).toEqual(['a'])
    const first = books.chore('end', 'x')
    expect(first).toEqual({ kind: 'end', target: 'x', position: 0, after: { openedAt: books.now, runId: 'a' } })
    goOn(books)
    expect(toldBy(books)).toEqual(['a', 'b', 'c'])
    if (first !== undefined) doChore(books, first)
    expect(toldBy(books), 'somebody else has gone on with it').toEqual(['a', 'b', 'c'])
    goOn(books)
    expect([toldBy(books), books.waits, books.chores.size]).toEqual([waiting, [], 0])
  })

  it('passes over who is locked, tells all others, and comes back to those when some time has passed', () => {
    const books = crowd()
    for (const id of ['a', 'b', 'd']) books.locked.add(id)
    conclude(books, books.end('x', succeeded))
    expect([toldBy(books), books.chore('end', 'x')?.position]).toEqual([[], 1])
    goOn(books)
    goOn(books)
    expect(toldBy(books)).toEqual(['c', 'e'])
    expect(books.chore('end', 'x')).toEqual({ kind: 'end', target: 'x', position: 0, after: null })
    expect(books.dues.get('end x')).toBeGreaterThan(books.now)
    books.locked.delete('b')
    books.locked.delete('d')
    goOn(books)
    goOn(books)
    expect(toldBy(books)).toEqual(['c', 'e', 'b', 'd'])
    books.locked.clear()
    goOn(books)
    goOn(books)
    expect([toldBy(books), books.waits, books.chores.size]).toEqual([['c', 'e', 'b', 'd', 'a'], [], 0])
  })

  it('comes back ever less often to who stays locked', () => {
    const books = crowd()
    for (const id of waiting) books.locked.add(id)
    conclude(books, books.end('x', succeeded))
    const pauses: number[] = []
    for (let page = 0; page < 200; page += 1) {
      goOn(books)
      const pause = (books.dues.get('end x') ?? 0) - books.now
      if (pause > 0) pauses.push(pause)
      books.now += Math.max(0, pause)
    }
    expect([pauses[0], pauses.at(-1)]).toEqual([200, 60_000])
    expect(pauses).toEqual(pauses.toSorted((a, b) => a - b))
  })

  it('leaves those who were not told before somebody retried the run to its next end', () => {
    const books = crowd()
    conclude(books, books.end('x', { kind: 'failed', meta: null, data: '"no"' }))
    books.add('x', { ...books.known('x'), status: 'pending', endedAt: null })
    goOn(books)
    expect([toldBy(books), books.chores.size, books.waits.length]).toEqual([['a'], 0, 4])
    conclude(books, books.end('x', succeeded))
    goOn(books)
    goOn(books)
    expect([toldBy(books), books.waits, books.chores.size]).toEqual([waiting, [], 0])
    expect(books.mail.map(({ data }) => (JSON.parse(data) as { status: string }).status)).toEqual([
      'failed',
      ...waiting.slice(1).map(() => 'succeeded'),
    ])
  })

  it('is told as it stands to those who wait for a removed run', () => {
    const books = crowd()
    conclude(books, books.add('x', { ...books.known('x'), deletedAt: books.now }))
    goOn(books)
    goOn(books)
    expect(toldBy(books)).toEqual(waiting)
    expect(books.mail.every(({ data }) => data === '{"status":"not-found"}')).toBe(true)
  })

  it('tells and cancels a child that waits for its parent, also if a page ends between the two', () => {
    const books = booksOf('x', 'a')
    books.pages = { ...books.pages, withEnd: 1 }
    bindChild(books, books.known('x'), books.known('a'), { awaited: false, onParentEnd: 'cancel' })
    watch(books, books.known('a'), endOf('x'))
    conclude(books, books.end('x', succeeded))
    expect([books.known('a').status, toldBy(books)]).toEqual(['cancelling', []])
    goOn(books)
    expect([toldBy(books), books.waits, books.chores.size]).toEqual([['a'], [], 0])
  })
})

describe('a child', () => {
  it('is told of to its parent if that awaits it, and is cancelled with it if it is bound to it', () => {
    const books = booksOf('parent', 'awaited', 'bound', 'free')
    const parent = books.known('parent')
    bindChild(books, parent, books.known('awaited'), { awaited: true, onParentEnd: 'abandon' })
    expect(books.known('parent').watched).toBe(false)
    bindChild(books, parent, books.known('bound'), { awaited: false, onParentEnd: 'cancel' })
    bindChild(books, parent, books.known('free'), { awaited: false, onParentEnd: 'abandon' })
    expect(['parent', 'awaited', 'bound', 'free'].map((id) => books.known(id).watched)).toEqual([
      true,
      true,
      false,
      false,
    ])
    conclude(books, books.end('awaited', succeeded))
    expect(books.mailOf('parent')).toEqual(['ended awaited'])
    conclude(books, books.end('parent', succeeded))
    expect(books.known('bound').status).toBe('cancelling')
    expect(books.appended.get('bound')).toMatchObject([
      { kind: 'cancelling', meta: { reason: 'Its parent parent has ended.' } },
    ])
    expect(books.known('free').status).toBe('pending')
  })

  it('that is over, or is being cancelled, is left as it is when its parent ends', () => {
    const books = booksOf('parent')
    for (const [id, status] of [
      ['over', 'succeeded'],
      ['cancelling', 'cancelling'],
    ] as const) {
      books.add(id, { status })
      bindChild(books, books.known('parent'), books.known(id), { awaited: false, onParentEnd: 'cancel' })
    }
    conclude(books, books.end('parent', succeeded))
    expect(books.appended.size).toBe(0)
  })

  it('that could not be started is told of as such', () => {
    const books = booksOf('parent')
    refuseChild(books, books.known('parent'), 'child', { taken: 'key', by: 'other' })
    expect(books.mail).toMatchObject([{ id: 'refused:child', kind: 'refused', name: 'child' }])
    expect(JSON.parse(books.mail[0]?.data ?? '')).toEqual({ taken: 'key', by: 'other' })
  })
})

describe('a topic', () => {
  it('WC-W3 gives what is sent to everyone who waits, and to nobody who comes later', () => {
    const books = booksOf('a', 'b', 'late')
    for (const id of ['a', 'b']) watch(books, books.known(id), on({ ...news, retainMs: 0 }))
    expect(send(books, news, 'x')).toEqual({ outcome: 'delivered', runs: 2 })
    watch(books, books.known('late'), on({ ...news, retainMs: 0 }))
    expect(['a', 'b', 'late'].map((id) => books.mailOf(id).length)).toEqual([1, 1, 0])
    expect(send(books, news, 'y')).toEqual({ outcome: 'delivered', runs: 3 })
  })

  it('gives those who come in time what it retains, each once', () => {
    const books = booksOf('a')
    send(books, news, 'x')
    books.now += 99
    watch(books, books.known('a'), on(news))
    watch(books, books.known('a'), on(news))
    expect(books.mailOf('a')).toEqual(['broadcast news'])
    books.add('b')
    books.now += 1
    watch(books, books.known('b'), on(news))
    expect(books.mailOf('b')).toEqual([])
  })

  it('passes over runs that are over or deleted, and forgets their waits', () => {
    const books = booksOf('a', 'b', 'c')
    for (const id of ['a', 'b', 'c']) watch(books, books.known(id), on(news))
    books.end('a', succeeded)
    books.add('b', { deletedAt: 1 })
    expect(send(books, news, 'x')).toEqual({ outcome: 'delivered', runs: 1 })
    expect(books.waits.map(({ runId }) => runId)).toEqual(['c'])
  })

  it('answers what it knows as the first time', () => {
    const books = booksOf('a')
    expect(send(books, news, 'x')).toEqual({ outcome: 'queued', runs: 0 })
    watch(books, books.known('a'), on({ ...news, retainMs: 0 }))
    expect(send(books, news, 'x')).toEqual({ outcome: 'queued', runs: 0, repeated: true })
    expect(books.broadcasts).toHaveLength(1)
  })

  it('numbers what is sent, and forgets nothing that it retains or that a repetition may ask for', () => {
    const books = booksOf()
    for (const id of ['x', 'y', 'z']) send(books, news, id)
    expect(books.broadcasts.map(({ position }) => position)).toEqual([1, 2, 3])
    send(books, { ...news, retainMs: 2 * rememberedMs }, 'w')
    const before = [books.now - rememberedMs, books.now - 2 * rememberedMs]
    expect([books.forgotten[0], books.forgotten[3]]).toEqual(before.map((time) => ['news', time]))
  })
})

describe('a queue', () => {
  it('WC-W2 gives what is sent to the one that has waited longest, who waits no more', () => {
    const books = booksOf('b', 'a')
    watch(books, books.known('b'), on(jobs))
    books.now += 1
    watch(books, books.known('a'), on(jobs))
    expect(send(books, jobs, 'x')).toEqual({ outcome: 'delivered', runs: 1 })
    expect([books.mailOf('b').length, books.mailOf('a').length]).toEqual([1, 0])
    send(books, jobs, 'y')
    expect(send(books, jobs, 'z')).toEqual({ outcome: 'queued', runs: 0 })
    expect(books.broadcasts.map(({ takenBy }) => takenBy)).toEqual(['b', 'a', null])
  })

  it('WC-W2 keeps what nobody waits for, and gives it to those who come, one each', () => {
    const books = booksOf('a', 'b', 'c')
    for (const id of ['x', 'y']) send(books, jobs, id)
    for (const id of ['a', 'b', 'c']) watch(books, books.known(id), on(jobs))
    expect(['a', 'b', 'c'].map((id) => books.mailOf(id).length)).toEqual([1, 1, 0])
    expect(books.waits.map(({ runId }) => runId)).toEqual(['c'])
  })

  it('does not mix with a topic of its name', () => {
    const books = booksOf('a')
    watch(books, books.known('a'), on({ ...jobs, delivery: 'all' }))
    expect(send(books, jobs, 'x')).toEqual({ outcome: 'queued', runs: 0 })
    expect(books.waits).toHaveLength(1)
  })
})

describe('what nobody read', () => {
  const toQueue: MessagePolicy = { onUnread: 'broadcast', delivery: 'one', retainMs: 0 }
  const left = (kind: MessageKind, policy: MessagePolicy | null, id = 'm') =>
    ({ id, runId: 'a', kind, name: 'jobs', data: '"job"', policy }) as const

  it('WC-W3 is discarded, dead or passed on, as its policy says, when its run ends', () => {
    const books = booksOf('a', 'b')
    watch(books, books.known('b'), on(jobs))
    books.put(left('signal', null, 'plain'))
    books.put(left('signal', { onUnread: 'dead-letter' }, 'dead'))
    books.put(left('topic-signal', toQueue, 'passed'))
    conclude(books, books.end('a', succeeded))
    expect([...books.fates]).toEqual([
      ['a plain', 'discarded'],
      ['a dead', 'dead'],
      ['a passed', 'broadcast'],
    ])
    expect(books.mailOf('b')).toEqual(['broadcast jobs'])
    expect(books.broadcasts).toMatchObject([{ topic: 'jobs', data: '"job"', policy: toQueue, takenBy: 'b' }])
  })

  it('is found where it was written, however often it was passed on, under ids that do not grow', () => {
    const ids = [1, 2, 3, 4].map((n) => `01b8d1a4-e000-7000-8000-00000000000${n}`) as [string, ...string[]]
    const books = booksOf(...ids)
    books.put({ ...left('topic-signal', toQueue), runId: ids[0] })
    for (const [index, id] of ids.entries()) {
      const [message, ...more] = books.unread(id, 0, 10).messages
      const place = mailPlace('', { kind: 'topic-signal', runId: ids[0], name: 'jobs', id: 'm' })
      expect([message && messagePlace('', message), more]).toEqual([place, []])
      expect(message?.id.length).toBeLessThan(100)
      conclude(books, books.end(id, succeeded))
      const next = ids[index + 1]
      if (next !== undefined) watch(books, books.known(next), on(jobs))
    }
    expect(books.backlog('jobs', 'one')).toHaveLength(1)
  })

  it('and was sent to two runs under one id is passed on by both', () => {
    const books = booksOf('a', 'b', 'c')
    for (const runId of ['a', 'b']) {
      books.put({ ...left('topic-signal', toQueue), runId })
      conclude(books, books.end(runId, succeeded))
    }
    expect(books.backlog('jobs', 'one')).toHaveLength(2)
  })

  it('and comes again after its topic has forgotten it is another message to a run that still has the first', () => {
    const books = booksOf('a')
    watch(books, books.known('a'), on(news))
    send(books, news, 'x')
    books.broadcasts = []
    // Positions go on: a topic keeps them.
    books.topicPosition = () => 1
    send(books, news, 'x')
    expect(new Set(books.mail.map(({ id }) => id)).size).toBe(2)
  })

  it('and that a queue gave to the run goes back to the queue, although the queue knows its id', () => {
    const books = booksOf('a', 'b')
    send(books, jobs, 'x', { policy: toQueue })
    watch(books, books.known('a'), on(jobs))
    conclude(books, books.end('a', succeeded))
    watch(books, books.known('b'), on(jobs))
    expect(books.mailOf('b')).toEqual(['broadcast jobs'])
  })

  it('and came after the end takes the same way', () => {
    const books = booksOf('a')
    books.end('a', succeeded)
    books.put(left('signal', { onUnread: 'dead-letter' }))
    for (const message of books.unread('a', 0, 10).messages) giveUp(books, message)
    expect([...books.fates.values()]).toEqual(['dead'])
  })
})
