// What keeps a topic, and what goes with it, on a unit of work that is plain maps.

import { describe, expect, it } from 'vitest'
import { broadcast } from '../../../../../src/core/rules/messages/broadcast.ts'
import { watch } from '../../../../../src/core/rules/messages/exchange.ts'
import { tidyTopic } from '../../../../../src/core/rules/messages/unused-topics.ts'
import type { Broadcast, TopicRules } from '../../../../../src/core/model/topic.ts'
import { PlainUnitOfWork } from '../unit-of-work.ts'

const news: TopicRules = { name: 'news', delivery: 'all', retainMs: 5_000 }
const jobs: TopicRules = { name: 'jobs', delivery: 'one', retainMs: 0 }
const succeeded = { kind: 'succeeded', meta: null, data: '1' } as const

function setUp(): PlainUnitOfWork {
  const unit = new PlainUnitOfWork()
  unit.pages = { ...unit.pages, rememberedMs: 1_000, topicRestMs: 100, topicWaits: 2 }
  return unit
}

function send(unit: PlainUnitOfWork, topic: TopicRules, changes: Partial<Broadcast> = {}): void {
  broadcast(unit, topic, { id: 'a', data: '1', policy: null, expiresAt: null, ...changes })
}

/** What a look at it came to, so much later. */
function look(unit: PlainUnitOfWork, topic: string, later = 0): readonly string[] {
  unit.now += later
  unit.looks.length = 0
  tidyTopic(unit, topic)
  return [...unit.deletedTopics.map((name) => `${name} goes`), ...unit.looks]
}

describe('a look at a topic', () => {
  it('deletes it if nothing is left of it', () => {
    expect(look(setUp(), 'news')).toEqual(['news goes'])
  })

  it('lets it rest while a live run waits on it, whatever else is over', () => {
    const unit = setUp()
    for (const id of ['over', 'live']) watch(unit, unit.add(id), { kind: 'topic', ...news })
    unit.end('over', succeeded)
    expect(look(unit, 'news')).toEqual([`news ${unit.now + 100}`])
    expect(unit.waits.map(({ runId }) => runId)).toEqual(['live'])
  })

  it('goes on at once as long as all that it met were over', () => {
    const unit = setUp()
    for (const id of ['1', '2', '3']) {
      watch(unit, unit.add(id), { kind: 'topic', ...news })
      unit.end(id, succeeded)
    }
    expect(look(unit, 'news')).toEqual([`news ${unit.now}`])
    expect(look(unit, 'news')).toEqual(['news goes'])
    expect(unit.waits).toEqual([])
  })

  it('lets it rest while it remembers or retains something, and has that forgotten afterwards', () => {
    const unit = setUp()
    send(unit, news)
    expect(look(unit, 'news', 5_000), 'it is retained for so long').toEqual([`news ${unit.now + 100}`])
    expect(unit.forgotten.filter(([, before]) => before === unit.now - 5_000)).toEqual([])
    expect(look(unit, 'news', 1)).toEqual([`news ${unit.now}`])
    expect(unit.forgotten.at(-1)).toEqual(['news', unit.now - 5_000])
    const other = setUp()
    send(other, { ...news, retainMs: 0 })
    expect(look(other, 'news', 1_000), 'its id is remembered for so long').toEqual([`news ${other.now + 100}`])
    expect(look(other, 'news', 1)).toEqual([`news ${other.now}`])
  })

  it('never takes away what waits in a queue, unless it has expired or was taken', () => {
    const unit = setUp()
    send(unit, jobs)
    expect(look(unit, 'jobs', 1_000_000)).toEqual([`jobs ${unit.now + 100}`])
    const [sent] = unit.broadcasts
    unit.broadcasts = sent === undefined ? [] : [{ ...sent, expiresAt: unit.now }]
    expect(look(unit, 'jobs')).toEqual([`jobs ${unit.now}`])
    unit.broadcasts = sent === undefined ? [] : [{ ...sent, takenBy: 'someone' }]
    expect(look(unit, 'jobs')).toEqual([`jobs ${unit.now}`])
  })

  it('lets it rest while a chore is left of it', () => {
    const unit = setUp()
    unit.setChore({ kind: 'late', target: 'news', position: 0, after: null })
    expect(look(unit, 'news')).toEqual([`news ${unit.now + 100}`])
    expect(look(unit, 'other')).toEqual(['other goes'])
  })

  it('takes nothing of which it does not know for how long it is retained', () => {
    const unit = setUp()
    send(unit, news)
    unit.retained.clear()
    expect(look(unit, 'news', 1_000_000)).toEqual([`news ${unit.now + 100}`])
  })
})
