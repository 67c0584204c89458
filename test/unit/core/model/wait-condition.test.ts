// Who wins a race is decided from facts, and only once; these are the facts that could be read wrongly.

import { fc } from '../../../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { isWellFormed } from '../../../../src/core/model/engine-message.ts'
import type { Message, MessageKind } from '../../../../src/core/model/message.ts'
import {
  byArrival,
  dueOf,
  earliestDue,
  isAnsweredBy,
  messageNameOf,
  waitTargetOf,
  winnerOf,
  type RecordedCondition,
  type Facts,
  type Winner,
} from '../../../../src/core/model/wait-condition.ts'

const nothing: Facts = { now: 1000, registeredAt: 100, messages: [] }
const time = (tag: string, at: number): RecordedCondition => ({ tag, kind: 'time', at })
const delay = (tag: string, ms: number): RecordedCondition => ({ tag, kind: 'delay', ms })
const signal = (tag: string, name: string): RecordedCondition => ({ tag, kind: 'signal', name })
const run = (tag: string, runId: string): RecordedCondition => ({ tag, kind: 'run', runId })
const start = (tag: string, runId: string): RecordedCondition => ({ tag, kind: 'start', runId })
const jobs = { name: 'jobs', delivery: 'one', retainMs: 0 } as const

/** Messages in the order in which they came. */
function messagesOf(...given: readonly (readonly [kind: MessageKind, name: string, at: number])[]): readonly Message[] {
  return given.map(([kind, name, at], index) => {
    const position = index + 1
    return { id: `m${position}`, runId: 'me', kind, name, data: '1', policy: null, position, at }
  })
}

/** Who won, and when that came true. */
function won(conditions: readonly RecordedCondition[], facts: Facts): Omit<Winner, 'message'> | null {
  const winner = winnerOf(conditions, facts)
  return winner && { tag: winner.tag, trueAt: winner.trueAt }
}

describe('dueOf', () => {
  it('counts a delay from when the wait was registered, and knows no time for what others do', () => {
    expect(dueOf(time('a', 700), 100)).toBe(700)
    expect(dueOf(delay('a', 700), 100)).toBe(800)
    expect(dueOf(signal('a', 'x'), 100)).toBeNull()
    expect(dueOf(run('a', 'x'), 100)).toBeNull()
  })
})

describe('earliestDue', () => {
  it('is the earliest of them all, wherever it stands', () => {
    expect(earliestDue([time('a', 700), delay('b', 50), signal('c', 'x'), time('d', 300)], 100)).toBe(150)
    expect(earliestDue([delay('b', 650), time('a', 700)], 100)).toBe(700)
  })

  it('knows a time of zero, and none where there is none', () => {
    expect(earliestDue([time('a', 5), time('b', 0)], 100)).toBe(0)
    expect(earliestDue([signal('a', 'x'), run('b', 'y')], 100)).toBeNull()
    expect(earliestDue([], 100)).toBeNull()
  })
})

describe('messageNameOf and watchedBy', () => {
  it('say what could make a condition true, and what must be watched for that', () => {
    expect([time('a', 1), delay('a', 1)].map(messageNameOf)).toEqual([null, null])
    expect([signal('a', 'x'), run('a', 'r'), start('a', 'r')].map(messageNameOf)).toEqual(['x', 'r', 'r'])
    for (const one of [time('a', 1), delay('a', 1), signal('a', 'x'), start('a', 'r')]) {
      expect(waitTargetOf(one)).toBeNull()
    }
    expect(waitTargetOf(run('a', 'r'))).toEqual({ kind: 'run', runId: 'r' })
    expect(waitTargetOf({ tag: 'a', kind: 'signal', name: 'jobs', topic: jobs })).toEqual({ kind: 'topic', ...jobs })
  })
})

describe('winnerOf', () => {
  it('nobody wins before anything came true: a timer never fires early', () => {
    expect(winnerOf([time('a', 1001), delay('b', 901), signal('c', 'x'), run('d', 'y')], nothing)).toBeNull()
    expect(winnerOf([], nothing)).toBeNull()
  })

  it('a timer is true in the very millisecond in which it is due', () => {
    expect(winnerOf([time('a', 1000)], nothing)).toEqual({ tag: 'a', trueAt: 1000, message: null })
    expect(winnerOf([delay('a', 900)], nothing)).toEqual({ tag: 'a', trueAt: 1000, message: null })
  })

  it('a delay that counts from a commit to come is not true yet, and a message may be', () => {
    const facts = { ...nothing, registeredAt: null, messages: messagesOf(['signal', 'ok', 5]) }
    expect(winnerOf([delay('a', 0), start('b', 'r')], facts)).toBeNull()
    expect(won([delay('a', 0), signal('b', 'ok')], facts)).toEqual({ tag: 'b', trueAt: 5 })
    expect(won([time('a', 3), signal('b', 'ok')], facts)).toEqual({ tag: 'a', trueAt: 3 })
  })

  it('a signal that came before the timer wins, though the holder looks only when both are true', () => {
    const facts = { ...nothing, messages: messagesOf(['signal', 'ok', 499]) }
    expect(won([delay('late', 400), signal('ok', 'ok')], facts)).toEqual({ tag: 'ok', trueAt: 499 })
  })

  it('a signal that came after the timer was due loses, though it was what woke the run', () => {
    const facts = { ...nothing, messages: messagesOf(['signal', 'ok', 501]) }
    expect(winnerOf([signal('ok', 'ok'), delay('late', 400)], facts)).toEqual({
      tag: 'late',
      trueAt: 500,
      message: null,
    })
  })

  it('of two messages of one millisecond the one that arrived first wins, in whatever order they are declared', () => {
    const facts = { ...nothing, messages: messagesOf(['signal', 'ok', 500], ['ended', 'r', 500]) }
    const conditions = [run('r', 'r'), signal('ok', 'ok'), delay('late', 400), time('at', 500)]
    for (let turn = 0; turn < conditions.length; turn++) {
      const turned = [...conditions.slice(turn), ...conditions.slice(0, turn)]
      expect(winnerOf(turned, facts)?.tag).toBe('ok')
    }
  })

  it('what the same message or the same time makes true goes by declaration', () => {
    const facts = { ...nothing, messages: messagesOf(['signal', 'ok', 500]) }
    expect(winnerOf([signal('b', 'ok'), signal('a', 'ok')], facts)?.tag).toBe('b')
    expect(winnerOf([time('b', 500), delay('a', 400)], nothing)?.tag).toBe('b')
    expect(winnerOf([delay('a', 400), time('b', 500)], nothing)?.tag).toBe('a')
  })

  it('a signal buffered before the wait was registered counts from when it was accepted (WC-W1)', () => {
    const facts = { ...nothing, messages: messagesOf(['signal', 'ok', 10]) }
    expect(won([delay('late', 0), signal('ok', 'ok')], facts)).toEqual({ tag: 'ok', trueAt: 10 })
  })

  it('other signals and other runs make nothing true; of several of one name the oldest counts', () => {
    const messages = messagesOf(
      ['signal', 'other', 1],
      ['ended', 'stranger', 2],
      ['signal', 'ok', 300],
      ['signal', 'ok', 301],
      ['ended', 'child', 400],
    )
    const facts = { ...nothing, messages }
    expect(winnerOf([signal('s', 'ok')], facts)).toEqual({ tag: 's', trueAt: 300, message: messages[2] })
    expect(winnerOf([run('r', 'child')], facts)).toEqual({ tag: 'r', trueAt: 400, message: messages[4] })
    expect(winnerOf([signal('s', 'no'), run('r', 'no')], facts)).toBeNull()
  })

  it('what was sent to this run comes before what a topic passed on, although that came first', () => {
    const messages = messagesOf(['broadcast', 'jobs', 1], ['broadcast', 'jobs', 2], ['topic-signal', 'jobs', 3])
    const wait = [{ tag: 'job', kind: 'signal', name: 'jobs', topic: jobs }] as const
    expect(winnerOf(wait, { ...nothing, messages })?.message).toBe(messages[2])
    expect(winnerOf(wait, { ...nothing, messages: messages.slice(0, 2) })?.message).toBe(messages[0])
  })

  it('a start is true when it is durable, unless it was refused', () => {
    expect(winnerOf([start('s', 'r')], nothing)).toEqual({ tag: 's', trueAt: 100, message: null })
    const messages = messagesOf(['refused', 'r', 100])
    expect(winnerOf([start('s', 'r')], { ...nothing, messages })?.message).toBe(messages[0])
    expect(winnerOf([run('s', 'r')], { ...nothing, messages })?.message).toBe(messages[0])
  })

  it('property: the winner is true, is never later than another true condition, and arrived before all of its time', () => {
    const at = fc.integer({ min: 0, max: 12 })
    const name = fc.constantFrom('a', 'b', 'c')
    const runId = fc.constantFrom(...[1, 2].map((n) => `0192f000-0000-7000-8000-00000000000${n}`))
    const condition = fc.oneof(
      fc.record({ kind: fc.constant('time' as const), at }),
      fc.record({ kind: fc.constant('delay' as const), ms: at }),
      fc.record({ kind: fc.constant('signal' as const), name }),
      fc.record({ kind: fc.constant('signal' as const), name, topic: fc.constant(jobs) }),
      fc.record({ kind: fc.constant('run' as const), runId }),
      fc.record({ kind: fc.constant('start' as const), runId }),
    )
    // What the engine and others write, and now and then what nobody can have written.
    const kind = fc.constantFrom<MessageKind>('signal', 'topic-signal', 'broadcast', 'ended', 'refused')
    const data = fc.constantFrom('1', '{"subscribers":3}', '{"taken":"key","by":"x"}', '{"status":"not-found"}')
    const facts = fc.record({
      now: at,
      registeredAt: fc.option(at),
      messages: fc.array(fc.tuple(kind, fc.oneof(name, runId), at, data), { maxLength: 5 }),
    })
    fc.assert(
      fc.property(fc.array(condition, { maxLength: 6 }), facts, (drawn, { messages, ...unsorted }) => {
        const conditions = drawn.map((one, index): RecordedCondition => ({ ...one, tag: String(index) }))
        const inOrder = messages.toSorted((one, other) => one[2] - other[2])
        const sent = messagesOf(...inOrder.map(([sort, to, then]) => [sort, to, then] as const))
        const known = { ...unsorted, messages: sent.map((one, index) => ({ ...one, data: inOrder[index]?.[3] ?? '' })) }
        const alone = conditions.flatMap((one) => winnerOf([one], known) ?? [])
        const winner = winnerOf(conditions, known)
        // Sorting is stable: what is equal stays in the order of declaration.
        const placeIn = ({ message }: Winner): number => message?.position ?? Infinity
        const sorted = alone
          .toSorted((one, other) => (placeIn(one) < placeIn(other) ? -1 : Number(placeIn(one) > placeIn(other))))
          .toSorted((one, other) => one.trueAt - other.trueAt)
        expect(winner).toEqual(sorted[0] ?? null)
        expect(alone.toSorted(byArrival)).toEqual(sorted)
        if (winner === null || winner.message === null) return
        // Targeted before broadcast; each first in, first out. A topic's refusal of an earlier wait says nothing about this one.
        const { message } = winner
        const met = conditions[Number(winner.tag)] as RecordedCondition
        const { registeredAt } = known
        const isStale = (one: Message): boolean =>
          met.kind === 'signal' && one.kind === 'refused' && (registeredAt === null || one.at < registeredAt)
        const isOffered = (one: Message): boolean =>
          !isWellFormed(one) || (isAnsweredBy(met, one.kind) && !isStale(one))
        const same = known.messages.filter((one) => one.name === message.name && isOffered(one))
        const targeted = same.filter((one) => one.kind !== 'broadcast')
        expect(message).toBe(targeted[0] ?? same[0])
      }),
    )
  })
})
