import { fc } from '../../../support/properties.ts'
import { expect, it } from 'vitest'
import { StoreClock } from '../../../../src/engine/store/store-clock.ts'
import { ManualClock } from '../../../support/manual-ports.ts'

it('before the store has reported a time, everything lies in the future', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  local.advance(5_000)
  expect(clock.now()).toBe(Number.NEGATIVE_INFINITY)
})

it('goes on from what the store answered, in whole milliseconds and never rounded up', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(70_000)
  local.advance(9.9)
  expect(clock.now()).toBe(70_009)
})

it('counts from the first of several answers with one time, and anew once it has gone past it', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(70_000)
  local.advance(0.6)
  clock.observe(70_000)
  local.advance(0.6)
  expect(clock.now()).toBe(70_001)
  clock.observe(70_000)
  local.advance(0.6)
  expect(clock.now()).toBe(70_001)
  local.advance(0.6)
  expect(clock.now()).toBe(70_001)
})

it('is never ahead of the store, however late its answers arrive', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  let storeNow = 500_000
  for (const delay of [0, 3, 250, 1, 4_000, 0.4]) {
    const observed = Math.floor(storeNow)
    storeNow += delay
    local.advance(delay)
    clock.observe(observed)
    expect(clock.now()).toBeLessThanOrEqual(storeNow)
    storeNow += 10
    local.advance(10)
    expect(clock.now()).toBeLessThanOrEqual(storeNow)
  }
})

it('does not step back when an older answer arrives last, and goes on as soon as that has caught up', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(100_000)
  expect(clock.now()).toBe(100_000)
  clock.observe(90_000)
  expect(clock.now()).toBe(100_000)
  local.advance(10_000)
  expect(clock.now()).toBe(100_000)
  local.advance(100)
  expect(clock.now()).toBe(100_049)
  clock.observe(101_000)
  expect(clock.now()).toBe(101_000)
})

it('property: never steps back and is never ahead of the store, in whatever order and however late answers arrive', () => {
  const event = fc.record({
    passed: fc.double({ min: 0, max: 5_000, noNaN: true }),
    speed: fc.double({ min: 0.9, max: 1.004, noNaN: true }),
    // How old the answer is that arrives then; none arrives if it is null.
    age: fc.option(fc.double({ min: 0, max: 20_000, noNaN: true })),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const local = new ManualClock()
      const clock = new StoreClock(local)
      let storeNow = 1_000_000
      let last = Number.NEGATIVE_INFINITY
      for (const { passed, speed, age } of events) {
        storeNow += passed
        local.advance(passed * speed)
        if (age !== null) clock.observe(Math.floor(storeNow - age))
        const now = clock.now()
        expect(now).toBeGreaterThanOrEqual(last)
        expect(now).toBeLessThanOrEqual(storeNow)
        last = now
      }
    }),
  )
})

it('follows a store that was set back: what it counts from then on would be due too early for a clock that stands still', () => {
  const local = new ManualClock()
  const clock = new StoreClock(local)
  clock.observe(4_000_000)
  expect(clock.now()).toBe(4_000_000)
  clock.observe(400_000)
  expect(clock.now()).toBe(400_000)
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
