// Calls that are not answered are given up on time, and a thousand of them cost one timer. Time belongs to the test.

import { describe, expect, it } from 'vitest'
import type { Clock } from '../../../../src/core/runtime/ports.ts'
import { CallTimeouts, type TimedCall } from '../../../../src/engine/store/call-timeouts.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'

function setUp({ background = false } = {}) {
  const clock = createVirtualClock()
  const watched: Clock = background ? { ...clock, background: (ms, wake) => clock.after(ms, wake) } : clock
  const watch = new CallTimeouts(watched)
  const over: string[] = []
  const begin = (name: string, ms: number): TimedCall => {
    const call = {
      overAt: 0,
      before: null,
      behind: null,
      expire: () => void over.push(`${name} at ${clock.monotonic()}`),
    }
    watch.begin(call, ms)
    return call
  }
  return { clock, watch, over, begin }
}

describe('calls under way', () => {
  it('share one timer, and each is given up at its own time', async () => {
    const { clock, over, begin } = setUp()
    for (let n = 0; n < 1_000; n += 1) begin(`call ${n}`, 1_000)
    begin('longer', 3_000)
    begin('shorter', 500)
    expect(clock.pending).toBe(1)
    await clock.advance(999)
    expect(over).toEqual(['shorter at 500'])
    await clock.advance(1)
    expect(over).toHaveLength(1_001)
    await clock.advance(5_000)
    expect(over.at(-1)).toBe('longer at 3000')
    expect(clock.pending).toBe(0)
  })

  it('are left alone once they are answered', async () => {
    const { clock, watch, over, begin } = setUp()
    const call = begin('answered', 1_000)
    await clock.advance(999)
    watch.answered(call)
    await clock.advance(5_000)
    expect(over).toEqual([])
  })

  it('leave no timer behind that would keep the process alive', () => {
    const { clock, watch, begin } = setUp()
    watch.answered(begin('answered', 1_000))
    expect(clock.pending).toBe(0)
  })

  it('set no timer each, where one may stay', async () => {
    const { clock, watch, over, begin } = setUp({ background: true })
    watch.answered(begin('first', 1_000))
    expect(clock.pending).toBe(1)
    await clock.advance(900)
    begin('second', 1_000)
    expect(clock.pending).toBe(1)
    await clock.advance(999)
    expect(over).toEqual([])
    await clock.advance(1)
    expect(over).toEqual(['second at 1900'])
    expect(clock.pending).toBe(0)
  })

  it('are given up also after the watch was stopped, and then no timer is left', async () => {
    const { clock, watch, over, begin } = setUp({ background: true })
    watch.answered(begin('answered', 2_000))
    begin('unanswered', 1_000)
    watch.stop()
    expect(clock.pending).toBe(1)
    await clock.advance(1_000)
    expect(over).toEqual(['unanswered at 1000'])
    expect(clock.pending).toBe(0)
  })

  it('are given up also by a clock that lags behind its timers, after a few looks', async () => {
    const clock = createVirtualClock()
    let looks = 0
    const lagging: Clock = {
      ...clock,
      monotonic: () => clock.monotonic() * 0.9,
      after(ms, wake) {
        looks += 1
        return clock.after(Math.floor(ms), wake)
      },
    }
    let isOver = false
    new CallTimeouts(lagging).begin(
      { overAt: 0, before: null, behind: null, expire: () => void (isOver = true) },
      1_000,
    )
    await clock.runUntilIdle()
    expect(isOver).toBe(true)
    expect(looks).toBeLessThan(10)
  })
})
