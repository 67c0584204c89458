// When the claimer asks the store, and when it does not. Time and turns belong to the test.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Claimed } from '../../../../src/store.ts'
import { newRun, nobody, setUp, some } from '../../../support/claimer-rig.ts'

describe('the claimer', () => {
  it('notifies the worker when the store has outgrown this code, and is stopped while it still answers for the claim', async () => {
    const { claimer, answers, asked, refusals, slots, turn, fire } = setUp(4)
    const reason = new HoldfastError('SCHEMA_TOO_NEW', 'Too new')
    answers.push(reason)
    claimer.start()
    await turn()
    expect(refusals).toEqual([reason])
    const stopped = claimer.stop()
    fire()
    await turn()
    await stopped
    expect(slots.free).toBe(4)
    expect(asked).toEqual([2])
  })

  it('asks once for half of the free slots, however often it is woken: a run started here finds one, too', async () => {
    const { claimer, asked, slots, turn } = setUp(5)
    slots.take(2)
    claimer.start()
    claimer.wake()
    claimer.wake()
    await turn()
    expect(asked).toEqual([2])
    expect(slots.free).toBe(3)
  })

  it('names the types last that were served last, and so lets them take turns with one slot, too', async () => {
    const { claimer, answers, named, slots, turn } = setUp(1, null, ['a', 'b', 'c'])
    const of = (...served: string[]): Claimed => {
      const runs = served.map((type) => newRun(type))
      return { ...nobody, runs, more: true }
    }
    answers.push(of('a'), of('c'), of('a'), new Error('Gone'), of())
    claimer.start()
    for (let claim = 0; claim < 3; claim += 1) {
      await turn()
      slots.give(1)
    }
    await turn()
    expect(named).toEqual(['a b c', 'b c a', 'b a c', 'b c a'])
  })

  it('names the types in the order in which they were last served by a claim of many', async () => {
    const { claimer, answers, named, turn } = setUp(8, null, ['a', 'b', 'c', 'd'])
    const runs = ['b', 'a', 'c', 'b'].map((type) => newRun(type))
    answers.push({ ...nobody, runs, more: true })
    claimer.start()
    await turn()
    expect(named).toEqual(['a b c d', 'd a c b'])
  })

  it('asks again at once when it was woken while it was asking', async () => {
    const { claimer, asked, turn } = setUp(1)
    claimer.start()
    const turning = turn()
    claimer.wake()
    await turning
    expect(asked).toEqual([1, 1])
  })

  it('does not ask without a free slot, and does when one becomes free', async () => {
    const { claimer, asked, slots, turn } = setUp(1)
    slots.take(1)
    claimer.start()
    await turn()
    expect(asked).toEqual([])
    expect(claimer.hasBacklog).toBe(false)
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
    expect(claimer.hasBacklog).toBe(false)
  })

  it('sleeps until the next run is due, but never longer than its poll, because hints may be lost', async () => {
    const { claimer, answers, asked, delays, fire, turn } = setUp(1)
    answers.push({ ...nobody, now: 100, nextDue: 350 }, { ...nobody, now: 350, nextDue: 99_999 }, nobody)
    claimer.start()
    await turn()
    expect(delays()).toEqual([250])
    fire()
    await turn()
    expect(delays()).toEqual([1_000])
    fire()
    await turn()
    expect(delays()).toEqual([1_000])
    expect(asked).toEqual([1, 1, 1])
  })

  it('pauses longer and longer while others hold all that is ready, whatever slots are freed meanwhile', async () => {
    const { claimer, answers, asked, slots, delays, fire, turn } = setUp(2)
    const held: Claimed = { ...nobody, more: true }
    answers.push(...Array.from({ length: 10 }, () => held))
    slots.take(1)
    claimer.start()
    await turn()
    expect([asked, delays(), claimer.hasBacklog]).toEqual([[1], [5], true])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
    // What holds one run up is no reason for those to wait who are to be performed alone.
    expect(claimer.isIdle).toBe(true)
    const pauses: number[] = []
    for (let count = 0; count < 9; count += 1) {
      fire()
      await turn()
      pauses.push(...delays())
    }
    expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 500, 500, 500])
    answers.push({ ...some(1), more: true })
    claimer.wake()
    await turn()
    // Once it got something it asks for the rest at once, and the next pause is short again.
    expect(asked.slice(-2)).toEqual([2, 1])
    expect(claimer.hasBacklog).toBe(false)
  })

  it('pauses longer and longer while others hold what has come due, too, but not past what comes due next', async () => {
    const { claimer, answers, asked, delays, fire, turn } = setUp(2)
    const now = 10_000
    const late: Claimed = { ...nobody, nextDue: now - 3, now }
    answers.push(...Array.from({ length: 9 }, () => late), { ...late, more: true })
    answers.push({ ...late, more: true, nextDue: now + 7 })
    claimer.start()
    const pauses: number[] = []
    for (let count = 0; count < 11; count += 1) {
      await turn()
      pauses.push(...delays())
      fire()
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 500, 500, 500, 7])
    await turn()
    // Nothing is left, and so the next pause is short again.
    expect([asked.length, delays(), claimer.hasBacklog]).toEqual([12, [1_000], false])
    answers.push(late)
    fire()
    await turn()
    expect(delays()).toEqual([5])
  })

  it('asks at once for more that has come due as long as it gets some', async () => {
    const { claimer, answers, asked, turn, fire, delays } = setUp(8)
    answers.push({ ...some(1), nextDue: 7, now: 9 }, { ...nobody, nextDue: 7, now: 9 })
    claimer.start()
    await turn()
    expect(delays()).toEqual([0])
    fire()
    await turn()
    expect([asked.length, delays()]).toEqual([2, [5]])
  })

  it('with one slot asks for one run at a time, and for the next as soon as the slot is free', async () => {
    const { claimer, answers, asked, slots, turn } = setUp(1)
    answers.push({ ...some(1), more: true }, { ...some(1), more: true }, nobody)
    claimer.start()
    await turn()
    expect(asked).toEqual([1])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1, 1])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1, 1, 1])
    expect(claimer.hasBacklog).toBe(false)
  })

  it('pauses when the store fails, gives the slots back and asks again', async () => {
    const { claimer, answers, asked, slots, delays, fire, turn } = setUp(4)
    answers.push(new Error('Gone'), some(1))
    claimer.start()
    await turn()
    expect(asked).toEqual([2])
    expect(delays()).toHaveLength(1)
    fire()
    await turn()
    expect(asked).toEqual([2, 2])
    expect(slots.free).toBe(3)
  })

  it('asks no more once it is stopped, and stopping waits for the answer that is on its way', async () => {
    const { claimer, asked, delays, turn } = setUp(1)
    claimer.start()
    const turning = turn()
    const stopped = claimer.stop()
    await turning
    await stopped
    claimer.wake()
    await turn()
    expect(asked).toHaveLength(1)
    expect(delays()).toEqual([])
  })

  it('that is stopped before it asked never asks', async () => {
    const { claimer, asked, turn } = setUp(1)
    claimer.start()
    await claimer.stop()
    await turn()
    expect(asked).toEqual([])
  })
})
