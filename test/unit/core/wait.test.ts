// Who wins a race is decided from facts, and only once; these are the facts that could be read wrongly.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueOf, earliestDue, winnerOf, type Condition, type Facts } from '../../../src/core/wait.ts'

const nothing: Facts = { now: 1000, registeredAt: 100, signals: [], ended: [] }
const time = (tag: string, at: number): Condition => ({ tag, kind: 'time', at })
const delay = (tag: string, ms: number): Condition => ({ tag, kind: 'delay', ms })
const signal = (tag: string, name: string): Condition => ({ tag, kind: 'signal', name })
const run = (tag: string, runId: string): Condition => ({ tag, kind: 'run', runId })

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

describe('winnerOf', () => {
  it('nobody wins before anything came true: a timer never fires early', () => {
    expect(winnerOf([time('a', 1001), delay('b', 901), signal('c', 'x'), run('d', 'y')], nothing)).toBeNull()
    expect(winnerOf([], nothing)).toBeNull()
  })

  it('a timer is true in the very millisecond in which it is due', () => {
    expect(winnerOf([time('a', 1000)], nothing)).toEqual({ tag: 'a', trueAt: 1000 })
    expect(winnerOf([delay('a', 900)], nothing)).toEqual({ tag: 'a', trueAt: 1000 })
  })

  it('a signal that came before the timer wins, though the holder looks only when both are true', () => {
    const facts = { ...nothing, signals: [{ name: 'ok', at: 499 }] }
    expect(winnerOf([delay('late', 400), signal('ok', 'ok')], facts)).toEqual({ tag: 'ok', trueAt: 499 })
  })

  it('a signal that came after the timer was due loses, though it was what woke the run', () => {
    const facts = { ...nothing, signals: [{ name: 'ok', at: 501 }] }
    expect(winnerOf([signal('ok', 'ok'), delay('late', 400)], facts)).toEqual({ tag: 'late', trueAt: 500 })
  })

  it('of equal times the one declared first wins', () => {
    const facts = { ...nothing, signals: [{ name: 'ok', at: 500 }], ended: [{ runId: 'r', at: 500 }] }
    const conditions = [run('r', 'r'), signal('ok', 'ok'), delay('late', 400), time('at', 500)]
    for (let turn = 0; turn < conditions.length; turn++) {
      const turned = [...conditions.slice(turn), ...conditions.slice(0, turn)]
      expect(winnerOf(turned, facts)?.tag).toBe(turned[0]?.tag)
    }
  })

  it('a signal buffered before the wait was registered counts from when it was accepted', () => {
    const facts = { ...nothing, signals: [{ name: 'ok', at: 10 }] }
    expect(winnerOf([delay('late', 0), signal('ok', 'ok')], facts)).toEqual({ tag: 'ok', trueAt: 10 })
  })

  it('other signals and other runs make nothing true; of several of one name the oldest counts', () => {
    const facts = {
      ...nothing,
      signals: [
        { name: 'other', at: 1 },
        { name: 'ok', at: 300 },
        { name: 'ok', at: 301 },
      ],
      ended: [
        { runId: 'other', at: 2 },
        { runId: 'child', at: 400 },
      ],
    }
    expect(winnerOf([signal('s', 'ok')], facts)).toEqual({ tag: 's', trueAt: 300 })
    expect(winnerOf([run('r', 'child')], facts)).toEqual({ tag: 'r', trueAt: 400 })
    expect(winnerOf([signal('s', 'no'), run('r', 'no')], facts)).toBeNull()
  })

  it('property: the winner is true, is never later than another true condition, and is the first of its time', () => {
    const at = fc.integer({ min: 0, max: 12 })
    const name = fc.constantFrom('a', 'b', 'c')
    const condition = fc.oneof(
      fc.record({ kind: fc.constant('time' as const), at }),
      fc.record({ kind: fc.constant('delay' as const), ms: at }),
      fc.record({ kind: fc.constant('signal' as const), name }),
      fc.record({ kind: fc.constant('run' as const), runId: name }),
    )
    const facts = fc.record({
      now: at,
      registeredAt: at,
      signals: fc.array(fc.record({ name, at }), { maxLength: 4 }),
      ended: fc.uniqueArray(fc.record({ runId: name, at }), { selector: (end) => end.runId }),
    })
    fc.assert(
      fc.property(fc.array(condition, { maxLength: 6 }), facts, (drawn, unsorted) => {
        const conditions = drawn.map((one, index): Condition => ({ ...one, tag: String(index) }))
        const known = { ...unsorted, signals: [...unsorted.signals].sort((one, other) => one.at - other.at) }
        const alone = conditions.map((one) => winnerOf([one], known)?.trueAt ?? Infinity)
        const first = Math.min(...alone)
        const winner = winnerOf(conditions, known)
        if (first === Infinity) expect(winner).toBeNull()
        else expect(winner).toEqual({ tag: String(alone.indexOf(first)), trueAt: first })
      }),
    )
  })
})
