// A process that always has something else to do performs suspects, too, now and then, and its other work goes on.

import { describe, expect, it } from 'vitest'
import { leaseMs, setUp, suspect } from './isolated-worker.ts'

describe('a process that is never idle', () => {
  it.each([
    ['half a lease', leaseMs, leaseMs / 2, leaseMs],
    ['half a minute at most', 600_000, 30_000, 5_000],
  ])('takes nothing new for a moment after %s, and goes on if something stays', async (_, lease, patience, moment) => {
    const rest = Math.max(patience, 4 * moment)
    const { isolation, slots, clock, claims, answers, happened } = setUp(2 * lease, lease)
    slots.take(1)
    answers.push({ more: true }, { more: true })
    isolation.onSuspects(0)
    await clock.advance(patience - 1)
    expect([claims, happened()]).toEqual([[], []])
    await clock.advance(1)
    expect([claims, happened()]).toEqual([[{ limit: 0, isolated: true }], ['pause']])
    await clock.advance(moment - 1)
    expect(happened()).toEqual([])
    await clock.advance(1)
    expect(happened()).toEqual(['resume'])
    isolation.look()
    await clock.advance(rest - 1)
    expect(happened()).toEqual([])
    await clock.advance(1)
    expect(happened()).toEqual(['pause'])
  })

  it.each([
    ['with a usual lease', 30_000],
    ['with a short lease', 500],
  ])('takes new work for four fifths of the time, whatever stays, %s', async (_, lease) => {
    const { isolation, slots, clock, answers, happened } = setUp(2 * lease, lease)
    slots.take(1)
    answers.push(...Array.from({ length: 3_600 }, () => ({ more: true })))
    isolation.onSuspects(0)
    let [isClosed, closedMs, drains] = [false, 0, 0]
    for (let ms = 100; ms <= 7_200_000; ms += 100) {
      await clock.advance(100)
      isolation.look()
      if (isClosed) closedMs += 100
      for (const one of happened()) {
        isClosed = one === 'pause'
        // It never closes again before others have had their share for the last time.
        if (isClosed) expect(closedMs).toBeLessThanOrEqual(ms / 5)
        drains += isClosed ? 1 : 0
      }
    }
    // A suspect has its chances, too.
    expect(drains).toBeGreaterThan(8)
  })

  it('lets a suspect have its turn at once when it is idle after all, also while others have theirs', async () => {
    const { isolation, slots, clock, answers, happened } = setUp()
    slots.take(1)
    answers.push({ more: true }, { runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(leaseMs / 2 + leaseMs)
    expect(happened()).toEqual(['pause', 'resume'])
    slots.give(1)
    await clock.advance(0)
    expect(happened()).toEqual(['pause', 'begins suspect'])
  })

  it('does not stop again at once for suspects that others have locked', async () => {
    const { isolation, clock, claims, answers, state, happened } = setUp()
    state.isFree = false
    answers.push(...Array.from({ length: 20 }, () => ({ more: true })))
    isolation.onSuspects(-10 * leaseMs)
    await clock.advance(0)
    expect([claims.length, happened()]).toEqual([2, ['pause', 'resume']])
    await clock.advance(leaseMs / 2 - 1)
    expect(claims).toHaveLength(2)
    await clock.advance(1)
    expect(claims).toHaveLength(4)
  })

  it('waits up to twice as long by chance: all know of the suspect, and one is enough for it', async () => {
    const { isolation, slots, clock, answers, happened } = setUp(2 * leaseMs, leaseMs, 0.5)
    slots.take(1)
    answers.push({ more: true })
    isolation.onSuspects(0)
    await clock.advance(0.75 * leaseMs - 1)
    expect(happened()).toEqual([])
    await clock.advance(1)
    expect(happened()).toEqual(['pause'])
  })

  it('takes nothing new at once for one that has waited for long, but not while it is young', async () => {
    const { isolation, slots, clock, answers, happened } = setUp(leaseMs)
    slots.take(1)
    answers.push({ more: true })
    isolation.onSuspects(-100 * leaseMs)
    await clock.advance(leaseMs - 1)
    expect(happened()).toEqual([])
    await clock.advance(1)
    expect(happened()).toEqual(['pause'])
  })

  it('asks as soon as everything has left, although others wait', async () => {
    const { isolation, slots, clock, answers, state, happened } = setUp()
    slots.take(1)
    state.isFree = false
    answers.push({ more: true }, { runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(leaseMs / 2)
    expect(happened()).toEqual(['pause'])
    slots.give(1)
    await clock.advance(0)
    expect(happened()).toEqual(['begins suspect'])
    slots.give(1)
    expect(happened()).toEqual(['resume'])
  })

  it('does not stop for suspects that it cannot perform', async () => {
    const { isolation, slots, clock, claims, happened } = setUp()
    slots.take(1)
    isolation.onSuspects(0)
    await clock.advance(100_000)
    expect([claims, happened()]).toEqual([[{ limit: 0, isolated: true }], []])
  })

  it('goes on at once when there is no suspect any more', async () => {
    const { isolation, slots, clock, answers, happened } = setUp()
    slots.take(1)
    answers.push({ more: true })
    isolation.onSuspects(0)
    await clock.advance(leaseMs / 2)
    isolation.onSuspects(null)
    expect(happened()).toEqual(['pause', 'resume'])
  })
})
