// Who waits on a topic while a stranger has its row, on books that are plain maps.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../src/core/broadcasting.ts'
import { doChore, unwatch, watch } from '../../../src/core/exchange.ts'
import type { Sent } from '../../../src/core/books.ts'
import type { Broadcast, TopicRules } from '../../../src/core/topic.ts'
import type { Watched } from '../../../src/core/watched.ts'
import { PlainBooks } from './books.ts'

const succeeded = { kind: 'succeeded', meta: null, data: '"out"' } as const

const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 100 }
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }

const on = (topic: TopicRules): Watched => ({ kind: 'topic', ...topic })

function booksOf(...ids: readonly string[]): PlainBooks {
  const books = new PlainBooks()
  for (const id of ids) books.add(id)
  return books
}

function send(books: PlainBooks, topic: TopicRules, id: string, changes: Partial<Broadcast> = {}): Sent {
  return broadcast(books, topic, { id, data: '1', policy: null, expiresAt: null, ...changes })
}

describe('a subscriber that somebody else has locked', () => {
  const said = (books: PlainBooks, runId: string): readonly string[] =>
    books.mail.filter((message) => message.runId === runId).map(({ data }) => data)

  function subscribed(...ids: readonly string[]): PlainBooks {
    const books = booksOf(...ids)
    for (const id of ids) watch(books, books.known(id), on(news))
    return books
  }

  function goOn(books: PlainBooks, kind: 'late' | 'topic' = 'late'): void {
    const chore = books.chore(kind, 'news') ?? books.chore(kind, 'jobs')
    if (chore !== undefined) doChore(books, chore)
  }

  it('holds up nobody, and gets what it missed in its order once it can be had', () => {
    const books = subscribed('a', 'b')
    books.locked.add('a')
    for (const id of ['1', '2', '3']) {
      expect(send(books, news, id, { data: id })).toEqual({ outcome: 'delivered', runs: 1 })
    }
    expect([said(books, 'a'), said(books, 'b')]).toEqual([[], ['1', '2', '3']])
    goOn(books)
    expect(books.dues.get('late news')).toBeGreaterThan(books.now)
    books.locked.clear()
    send(books, news, '4', { data: '4' })
    expect(said(books, 'a'), 'nothing overtakes what it missed').toEqual([])
    books.pages = { ...books.pages, missed: 2 }
    goOn(books)
    expect(said(books, 'a')).toEqual(['1', '2'])
    goOn(books)
    expect([said(books, 'a'), books.chores.size]).toEqual([['1', '2', '3', '4'], 0])
    expect(books.waits.map(({ missed }) => missed)).toEqual([null, null])
    send(books, news, '5', { data: '5' })
    expect(said(books, 'a')).toEqual(said(books, 'b'))
  })

  it('keeps what it missed from being forgotten, and gets nothing that has expired', () => {
    const books = subscribed('a')
    books.locked.add('a')
    send(books, news, '1', { data: '1', expiresAt: books.now + 10 })
    send(books, news, '2', { data: '2' })
    expect(books.forgotten).toEqual([])
    books.now += 20
    books.locked.clear()
    goOn(books)
    expect([said(books, 'a'), books.chores.size]).toEqual([['2'], 0])
    send(books, news, '3')
    expect(books.forgotten).toHaveLength(1)
  })

  it('gets nothing if it unsubscribes or ends before its turn comes', () => {
    const books = subscribed('a', 'b')
    books.locked.add('a').add('b')
    send(books, news, '1')
    books.locked.clear()
    unwatch(books, books.known('a'), on(news))
    books.end('b', succeeded)
    goOn(books)
    expect([books.mail, books.waits, books.chores.size]).toEqual([[], [], 0])
  })

  it('is passed over by what is passed on in pages, and gets that as well', () => {
    const books = subscribed('a', 'b', 'c')
    books.pages = { ...books.pages, subscribers: 1, late: 1 }
    books.locked.add('b').add('c')
    send(books, news, '1', { data: '1' })
    send(books, news, '2', { data: '2' })
    for (let page = 0; page < 10; page += 1) goOn(books, 'topic')
    expect([said(books, 'a'), books.chore('topic', 'news')]).toEqual([['1', '2'], undefined])
    books.locked.delete('c')
    for (let page = 0; page < 5; page += 1) goOn(books)
    expect([said(books, 'b'), said(books, 'c')]).toEqual([[], ['1', '2']])
    books.locked.clear()
    for (let page = 0; page < 5; page += 1) goOn(books)
    expect([said(books, 'b'), books.chores.size]).toEqual([['1', '2'], 0])
  })

  it('that is locked again behind a walk of several pages is met by the next walk', () => {
    const books = subscribed('a', 'b')
    books.pages = { ...books.pages, late: 1 }
    books.locked.add('a').add('b')
    send(books, news, '1', { data: '1' })
    books.locked.clear()
    goOn(books)
    expect(said(books, 'a')).toEqual(['1'])
    books.locked.add('a')
    send(books, news, '2', { data: '2' })
    books.locked.clear()
    for (let page = 0; page < 5; page += 1) goOn(books)
    send(books, news, '3', { data: '3' })
    expect([said(books, 'a'), said(books, 'b'), books.chores.size]).toEqual([['1', '2', '3'], ['1', '2', '3'], 0])
  })

  it('on a queue lets the next one take it; if there is none, it gets the oldest when it can be had', () => {
    const books = booksOf('a', 'b', 'c')
    watch(books, books.known('a'), on(jobs))
    watch(books, books.known('b'), on(jobs))
    books.locked.add('a')
    expect(send(books, jobs, '1', { data: '1' })).toEqual({ outcome: 'delivered', runs: 1 })
    expect(said(books, 'b')).toEqual(['1'])
    expect(send(books, jobs, '2', { data: '2' })).toEqual({ outcome: 'queued', runs: 0 })
    expect(send(books, jobs, '3', { data: '3' })).toEqual({ outcome: 'queued', runs: 0 })
    watch(books, books.known('c'), on(jobs))
    expect(said(books, 'c')).toEqual(['2'])
    goOn(books)
    expect(books.dues.get('late jobs')).toBeGreaterThan(books.now)
    books.locked.clear()
    goOn(books)
    goOn(books)
    expect([said(books, 'a'), books.waits, books.chores.size]).toEqual([['3'], [], 0])
  })
})
