import { expect, it } from 'vitest'
import { StoreClock } from '../../../src/engine/store-clock.ts'
import { ManualClock } from '../../support/manual-ports.ts'

it('before the store has told a time, everything lies in the future', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  local.advance(5_000)
  expect(clock.now()).toBe(Number.NEGATIVE_INFINITY)
})

it('goes on from what the store told, in whole milliseconds and never rounded up', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(70_000)
  local.advance(9.9)
  expect(clock.now()).toBe(70_009)
})

it('is never ahead of the store, however late its answers arrive', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  let storeNow = 500_000
  for (const delay of [0, 3, 250, 1, 4_000, 0.4]) {
    const told = Math.floor(storeNow)
    storeNow += delay
    local.advance(delay)
    clock.observe(told)
    expect(clock.now()).toBeLessThanOrEqual(storeNow)
    storeNow += 10
    local.advance(10)
    expect(clock.now()).toBeLessThanOrEqual(storeNow)
  }
})

it('follows the store back when a local clock ran fast, or the store was set back', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(1_000)
  local.advance(60_000)
  clock.observe(31_000)
  expect(clock.now()).toBe(31_000)
  clock.observe(500)
  expect(clock.now()).toBe(500)
})

it('is never ahead of the store when the local clock runs fast, and falls behind by no more than half a percent', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(1_000_000)
  for (const passed of [1, 250, 10_000, 600_000]) {
    local.advance(passed * 1.004)
    const storeNow = 1_000_000 + passed
    expect(clock.now()).toBeLessThanOrEqual(storeNow)
    expect(clock.now()).toBeGreaterThanOrEqual(Math.floor(storeNow - 0.005 * passed))
    clock.observe(1_000_000)
  }
})
