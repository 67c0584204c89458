// The arithmetic of a soak: times in buckets, lines through points, beginnings beside ends.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from 'holdfast/testing'
import { Histogram } from '../../bench/soak/histogram.ts'
import { kindAt, kinds } from '../../bench/soak/mix.ts'
import { Pace } from '../../bench/soak/pace.ts'
import { sparkline } from '../../bench/soak/sparkline.ts'
import { quartersOf, risePerHour } from '../../bench/soak/trend.ts'

const over = (values: readonly number[], everySeconds = 1) =>
  values.map((value, index) => ({ seconds: index * everySeconds, value }))

describe('a histogram', () => {
  it('knows nothing of no times', () => {
    const none = new Histogram()
    expect([none.count, none.max, none.quantile(0.5)]).toEqual([0, null, null])
  })

  it('gives every quantile to 2 %, whatever was counted', () => {
    const times = fc.array(fc.double({ min: 0.02, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(times, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
        const histogram = new Histogram()
        for (const value of values) histogram.add(value)
        const sorted = values.toSorted((a, b) => a - b)
        const exact = sorted[Math.max(0, Math.ceil(share * values.length) - 1)]!
        expect(histogram.quantile(share)! / exact).toBeGreaterThan(0.98)
        expect(histogram.quantile(share)! / exact).toBeLessThan(1.02)
        expect(histogram.max).toBe(sorted.at(-1))
      }),
    )
  })

  it('takes what is shorter or longer than its buckets for the shortest and the longest', () => {
    const histogram = new Histogram()
    for (const ms of [0, 1e12]) histogram.add(ms)
    expect(histogram.quantile(0.5)).toBeLessThan(0.02)
    expect([histogram.count, histogram.max]).toEqual([2, 1e12])
  })

  it('forgets', () => {
    const histogram = new Histogram()
    histogram.add(5)
    histogram.clear()
    expect([histogram.count, histogram.max, histogram.quantile(1)]).toEqual([0, null, null])
  })
})

describe('a trend', () => {
  it('is the slope of a straight line exactly', () => {
    expect(risePerHour(over([7, 9, 11, 13], 10))).toBeCloseTo(720)
    expect(risePerHour(over([4, 4, 4]))).toBe(0)
  })

  it('is that of the line behind the noise', () => {
    const random = createSeededRandom(3)
    const noisy = Array.from({ length: 720 }, (_, index) => 100 + index / 10 + random.uint32() / 2 ** 28)
    expect(risePerHour(over(noisy, 5))).toBeGreaterThan(70)
    expect(risePerHour(over(noisy, 5))).toBeLessThan(74)
  })

  it('is not there for a single point, or for points of one time', () => {
    expect(risePerHour([])).toBeNull()
    expect(risePerHour(over([1]))).toBeNull()
    expect(risePerHour([1, 2].map((value) => ({ seconds: 5, value })))).toBeNull()
  })

  it('has the medians of its first quarter and its last', () => {
    const values = [1, 900, 1, 5, 5, 5, 5, 5, 5, 8, 8, 0.1]
    expect(quartersOf(over(values))).toEqual({ first: 1, last: 8 })
    expect(quartersOf(over([3]))).toBeNull()
    expect(quartersOf([])).toBeNull()
  })
})

describe('a sparkline', () => {
  it('rises with its values', () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 40)).toBe('▁▂▃▄▅▆▇█')
    expect(sparkline([7, 7, 7, 0, 0, 0, 3, 3, 900], 3)).toBe('█▁▄')
  })

  it('is no wider than it may be, and lies low where nothing changes', () => {
    expect(
      sparkline(
        Array.from({ length: 500 }, () => 9),
        48,
      ),
    ).toBe('▁'.repeat(48))
    expect(sparkline([], 48)).toBe('')
  })
})

describe('the pace of a closed loop', () => {
  /** How many arrive in each second if at most so many can end in one. */
  const arrivals = (capacity: number, seconds: number): readonly number[] => {
    const pace = new Pace(0)
    let [arrived, ended] = [0, 0]
    const counts = Array.from({ length: seconds }, () => 0)
    for (let now = 1; now < seconds * 1_000; now += 1) {
      pace.look(now, Math.floor(ended))
      while (arrived - ended < 1_000 && pace.take()) {
        arrived += 1
        counts[Math.floor(now / 1_000)]! += 1
      }
      ended = Math.min(arrived, ended + capacity / 1_000)
    }
    return counts
  }

  it('rises until no more can end', () => {
    const last = arrivals(5_000, 10).at(-1)
    expect(last).toBeGreaterThan(4_800)
    expect(last).toBeLessThan(5_200)
    expect(arrivals(20, 90).at(-1)).toBeLessThanOrEqual(21)
  })

  it('lets nothing arrive at once that was not taken in its time', () => {
    const pace = new Pace(0)
    for (let now = 1; now <= 200; now += 1) pace.look(now, 0)
    let taken = 0
    while (pace.take()) taken += 1
    expect(taken).toBe(1)
  })
})

describe('the mix', () => {
  it('is drawn in its shares', () => {
    expect(kinds.reduce((sum, { share }) => sum + share, 0)).toBe(100)
    const drawn = Array.from({ length: 1_000 }, (_, index) => kindAt((index + 0.5) / 1_000).name)
    for (const { name, share } of kinds) expect(drawn.filter((one) => one === name)).toHaveLength(share * 10)
  })

  it('has names of its own for all', () => {
    expect(new Set(kinds.map(({ name }) => name)).size).toBe(kinds.length)
  })
})
