// Where a payload stands: a reader of one must find the place for which it was written, and nobody any other.

import { describe, expect, it } from 'vitest'
import { broadcastMessageId, passedOnId, type Message } from '../../../../src/core/model/message.ts'
import { endPlace, messagePlaceOf, messagePlace, shownPlace, topicPlace } from '../../../../src/core/payload/place.ts'

const [one, other] = [1, 2].map((n) => `01b8d1a4-e000-7000-8000-00000000000${n}`) as [string, string]

function message(changes: Partial<Message>): Message {
  const plain = { id: 'm', runId: one, kind: 'signal', name: 'ok', data: '1', policy: null } as const
  return { ...plain, position: 1, at: 5, ...changes }
}

describe('a place', () => {
  it('of a signal is that of its run, its name and its id', () => {
    const place = { namespace: 'shop', runId: one, seq: 0, kind: 'signal', name: 'ok', id: 'm' }
    expect(messagePlace('shop', message({}))).toEqual(place)
    expect(messagePlaceOf('shop', { kind: 'signal', runId: one, name: 'ok', id: 'm' })).toEqual(place)
  })

  it('of a signal in the name of a topic is that of its run, also when its topic passes it on', () => {
    const sent = message({ kind: 'topic-signal', name: 'jobs' })
    const place = { namespace: '', runId: one, seq: 0, kind: 'topic-signal', name: 'jobs', id: 'm' }
    expect(messagePlace('', sent)).toEqual(place)
    expect(topicPlace('', 'jobs', passedOnId(sent))).toEqual(place)
    const toOther = { ...sent, runId: other }
    expect(topicPlace('', 'jobs', passedOnId(toOther))).toEqual({ ...place, runId: other })
  })

  it('of a broadcast is the same for every run that gets it', () => {
    const id = broadcastMessageId({ topic: 'jobs', id: 'b', position: 3 })
    for (const runId of [one, other]) {
      const got = message({ kind: 'broadcast', name: 'jobs', id, runId })
      expect(messagePlace('', got)).toEqual(topicPlace('', 'jobs', 'b'))
      expect(topicPlace('', 'jobs', passedOnId(got))).toEqual(topicPlace('', 'jobs', 'b'))
    }
  })

  it('of a broadcast is not that of another topic whose name and id read the same together', () => {
    expect(topicPlace('', 'a', 'b:c')).not.toEqual(topicPlace('', 'a:b', 'c'))
  })

  it('of the end of a run is its last entry, and what that is', () => {
    expect(endPlace('', other, { status: 'succeeded', seq: 7 })).toEqual({
      namespace: '',
      runId: other,
      seq: 7,
      kind: 'succeeded',
      name: null,
      id: null,
    })
  })

  it('is shown in words', () => {
    const entry = { namespace: '', runId: 'r', seq: 3, kind: 'started', name: null, id: null } as const
    expect([
      shownPlace(entry),
      shownPlace({ ...entry, kind: 'step-succeeded', name: 'charge' }),
      shownPlace(messagePlaceOf('', { kind: 'signal', runId: 'r', name: 'ok', id: 'm' })),
      shownPlace(topicPlace('', 'jobs', 'b')),
    ]).toEqual([
      'entry 3 of run r',
      'entry 3 ("charge") of run r',
      'signal "m" ("ok") to run r',
      'broadcast "b" ("jobs")',
    ])
  })
})
