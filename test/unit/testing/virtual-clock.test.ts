// Time that a test owns must not run away, jump over a timer, or fire two in one breath.

import { describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../../src/core/errors/error.ts'
import { createVirtualClock } from '../../../src/testing/index.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('createVirtualClock', () => {
  it('PQ-T1 time stands still until it is asked to move', async () => {
    const clock = createVirtualClock(1_000)
    let fired = false
    clock.after(1, () => (fired = true))
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect([clock.now(), clock.monotonic(), fired, clock.pending]).toEqual([1_000, 0, false, 1])
    await clock.advance('2 days')
    expect([clock.now(), clock.monotonic(), fired, clock.pending]).toEqual([172_801_000, 172_800_000, true, 0])
  })

  it('a timer fires at its own time, never early, and never twice', async () => {
    const clock = createVirtualClock(0)
    const fired: number[] = []
    clock.after(100, () => fired.push(clock.now()))
    await clock.advance(99)
    expect(fired).toEqual([])
    await clock.advance(1)
    await clock.advance(1_000)
    expect(fired).toEqual([100])
  })

  it('timers fire by time, and those of one time in the order in which they were set', async () => {
    const clock = createVirtualClock(0)
    const fired: string[] = []
    for (const [name, ms] of [
      ['c', 20],
      ['a', 10],
      ['b', 10],
      ['now', 0],
      ['past', -5],
    ] as const) {
      clock.after(ms, () => fired.push(`${name}@${clock.now()}`))
    }
    await clock.advance(20)
    expect(fired).toEqual(['now@0', 'past@0', 'a@10', 'b@10', 'c@20'])
  })

  it('what one timer causes has happened before the next fires, however many turns it takes', async () => {
    const clock = createVirtualClock(0)
    const seen: string[] = []
    clock.after(10, () => {
      void (async () => {
        await Promise.resolve()
        seen.push('microtask')
        for (let index = 0; index < 50; index += 1) await turn()
        seen.push(`fifty turns@${clock.now()}`)
        clock.after(5, () => seen.push(`its own timer@${clock.now()}`))
      })()
    })
    clock.after(10, () => seen.push('second'))
    clock.after(20, () => seen.push('third'))
    await clock.advance(20)
    expect(seen).toEqual(['microtask', 'fifty turns@10', 'second', 'its own timer@15', 'third'])
  })

  it('what was begun just before time moves has set its timer by then', async () => {
    const clock = createVirtualClock(0)
    const fired: number[] = []
    void (async () => {
      for (let index = 0; index < 10; index += 1) await turn()
      clock.after(60_000, () => fired.push(clock.now()))
    })()
    await clock.advance('2 days')
    expect(fired).toEqual([60_000])
  })

  it('a timer that is set at the very end of the time fires in the same call', async () => {
    const clock = createVirtualClock(0)
    const fired: string[] = []
    clock.after(10, () => clock.after(0, () => fired.push('next')))
    await clock.advance(10)
    expect(fired).toEqual(['next'])
  })

  it('a cancelled timer does not fire, not even if another of the same time cancels it', async () => {
    const clock = createVirtualClock(0)
    const fired: string[] = []
    clock.after(10, () => cancel())
    const cancel = clock.after(10, () => fired.push('cancelled'))
    const cancelNow = clock.after(5, () => fired.push('cancelled'))
    cancelNow()
    await clock.advance(10)
    cancel()
    expect([fired, clock.pending]).toEqual([[], 0])
  })

  it('runs from timer to timer until a condition holds, and no further', async () => {
    const clock = createVirtualClock(0)
    let beats = 0
    const beat = (): void => {
      beats += 1
      clock.after(1_000, beat)
    }
    clock.after(1_000, beat)
    expect(await clock.runUntil(() => beats === 3, '1 min')).toBe(true)
    expect(clock.now()).toBe(3_000)
    expect(await clock.runUntil(() => false, '1 min')).toBe(false)
    expect(clock.now()).toBe(63_000)
  })

  it('runs until no timer is set', async () => {
    const clock = createVirtualClock(0)
    let left = 3
    const again = (): void => void (left-- > 0 && clock.after(500, again))
    clock.after(500, again)
    await clock.runUntilIdle()
    expect([clock.now(), clock.pending]).toEqual([2_000, 0])
  })

  it('a duration that makes no sense is an error, not a jump', async () => {
    const clock = createVirtualClock(0)
    await expect(clock.advance(-1)).rejects.toSatisfy((error) => isHoldfastError(error, 'INVALID_DURATION'))
    expect(clock.now()).toBe(0)
  })

  it('an error that a timer throws reaches the test', async () => {
    const clock = createVirtualClock(0)
    clock.after(1, () => {
      throw new Error('thrown by a timer')
    })
    await expect(clock.advance(1)).rejects.toThrow('thrown by a timer')
  })
})
