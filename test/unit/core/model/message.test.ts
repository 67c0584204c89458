// The ids of what passes through topics: each says where its payload was first written, and no two that differ say the same.

import { describe, expect, it } from 'vitest'
import {
  broadcastMessageId,
  isPassedOnId,
  originOf,
  passedOnId,
  retriedId,
  sentId,
  type Message,
} from '../../../../src/core/model/message.ts'

const [one, other] = [1, 2].map((n) => `01b8d1a4-e000-7000-8000-00000000000${n}`) as [string, string]

function message(changes: Partial<Message>): Message {
  const plain = { id: 'm', runId: one, kind: 'topic-signal', name: 'jobs', data: '1', policy: null } as const
  return { ...plain, position: 1, at: 5, ...changes }
}

/** The same, as a run gets it from its topic. */
function passedOnTo(runId: string, id: string): Message {
  const kind = 'broadcast'
  return message({ kind, runId, id: broadcastMessageId({ topic: 'jobs', id, position: 7 }), position: 9 })
}

describe('an id under which a message is passed on', () => {
  it('names the run that it was sent to, however often it is passed on', () => {
    const first = passedOnId(message({}))
    const second = passedOnId(passedOnTo(other, first))
    expect([first, second]).toEqual([`m@${one}/${one}.1`, `m@${one}/${other}.9`])
    expect([originOf(first), originOf(second)]).toEqual([
      { id: 'm', runId: one },
      { id: 'm', runId: one },
    ])
  })

  it('says that it was sent to the topic, if it was', () => {
    expect(originOf('m')).toEqual({ id: 'm', runId: null })
    const passed = passedOnId(passedOnTo(other, 'm'))
    expect([passed, originOf(passed)]).toEqual([`m@topic/${other}.9`, { id: 'm', runId: null }])
  })

  it('is not mistaken if the id that a user chose has an @, a slash or a line in it', () => {
    for (const id of ['a@b', `@topic/${one}`, `x@${one}.1`, 'a\nb', '']) {
      expect([originOf(id), isPassedOnId(id)]).toEqual([{ id, runId: null }, false])
      const passed = passedOnId(message({ id }))
      expect([originOf(passed), isPassedOnId(passed)]).toEqual([{ id, runId: one }, true])
      expect(sentId(passedOnTo(other, passed))).toBe(passed)
    }
  })

  it('of a dead letter that is sent again says nothing of its way, and does not grow', () => {
    const ids = [
      retriedId(message({})),
      retriedId(message({ id: `m@${other}.3` })),
      retriedId(message({ ...passedOnTo(one, `m@${other}.3@topic/${other}.4`), position: 1 })),
    ]
    expect(new Set(ids)).toEqual(new Set([`m@${one}.1`]))
    expect(originOf(ids[0] ?? '').runId).toBeNull()
  })
})
