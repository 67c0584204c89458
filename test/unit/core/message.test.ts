// Where the payload of a message stands: whoever reads it must find the place for which it was written.

import { describe, expect, it } from 'vitest'
import {
  broadcastMessageId,
  messagePlace,
  placeOf,
  topicPlace,
  type Ended,
  type Message,
} from '../../../src/core/message.ts'

function message(changes: Partial<Message>): Message {
  const plain = { id: 'm', runId: 'run', kind: 'signal', name: 'ok', data: '1', policy: null } as const
  return { ...plain, position: 1, at: 5, ...changes }
}

const ended = (data: Ended): string => JSON.stringify(data)

describe('placeOf', () => {
  it('finds a signal where it was written for its run', () => {
    expect(placeOf(message({}))).toEqual(messagePlace('run', 'm'))
    expect(placeOf(message({ kind: 'refused' }))).toEqual(messagePlace('run', 'm'))
  })

  it('finds a signal in the name of a topic where the topic has it, so that it may be passed on', () => {
    expect(placeOf(message({ kind: 'topic-signal', name: 'jobs' }))).toEqual(topicPlace('jobs', 'm'))
  })

  it('finds a broadcast at one place, whoever got it', () => {
    const id = broadcastMessageId({ topic: 'jobs', id: 'b', position: 3 })
    for (const runId of ['one', 'other']) {
      expect(placeOf(message({ kind: 'broadcast', name: 'jobs', id, runId }))).toEqual(topicPlace('jobs', 'b'))
    }
  })

  it('finds what a run came to in the journal of that run', () => {
    const data = ended({ status: 'succeeded', seq: 7, data: '1', reason: null })
    expect(placeOf(message({ kind: 'ended', name: 'child', data }))).toEqual({ runId: 'child', seq: 7, name: null })
    const none = ended({ status: 'not-found' })
    expect(placeOf(message({ kind: 'ended', name: 'child', data: none })).seq).toBe(0)
  })
})
