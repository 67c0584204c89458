// Ids are keys, order and routing at once. A scripted clock and scripted chance show every bit of them.

import { describe, expect, it } from 'vitest'
import { createRunIds, isRunId, msOf, shardFor, shardOf } from '../../../../src/core/model/run-id.ts'
import type { Clock, Random } from '../../../../src/core/runtime/ports.ts'

function clockAt(times: number[]): Clock {
  let last = 0
  return { now: () => (last = times.shift() ?? last), monotonic: () => 0, after: () => () => undefined }
}

const zeros: Random = { uint32: () => 0 }
const ones: Random = { uint32: () => 0xffffffff }

const known = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'

describe('createRunIds', () => {
  it('puts time, version, shard, variant, counter and chance where they belong', () => {
    const ids = createRunIds({ clock: clockAt([0x017f22e279b0]), random: zeros })
    expect(ids.next(0xcc3)).toBe('017f22e2-79b0-7cc3-8000-000000000000')
    expect(ids.next(0xcc3)).toBe('017f22e2-79b0-7cc3-8000-040000000000')
    expect(ids.next(0)).toBe('017f22e2-79b0-7000-8000-080000000000')
  })

  it('fills all bits but the version, the variant and the spare bit of the counter with chance', () => {
    const ids = createRunIds({ clock: clockAt([2 ** 48 - 1]), random: ones })
    expect(ids.next(4095)).toBe('ffffffff-ffff-7fff-9fff-ffffffffffff')
  })

  it('keeps the order when the clock steps back', () => {
    const ids = createRunIds({ clock: clockAt([5000, 4000, 1, 5000, 5001]), random: ones })
    const made = Array.from({ length: 5 }, () => ids.next(3))
    expect(made).toEqual([...made].sort())
    expect(new Set(made).size).toBe(5)
    expect(made.map(msOf)).toEqual([5000, 5000, 5000, 5000, 5001])
  })

  it('goes on in the next millisecond when the counter is full, and does not fall back from there', () => {
    const ids = createRunIds({ clock: clockAt([5000]), random: zeros })
    let previous = ids.next(0)
    for (let index = 1; index < 2 ** 20; index++) {
      const id = ids.next(0)
      if (id <= previous) throw new Error(`${id} after ${previous}`)
      previous = id
    }
    expect(previous).toBe('00000000-1388-7000-bfff-fc0000000000')
    const next = ids.next(0)
    expect(msOf(next)).toBe(5001)
    expect(next > previous).toBe(true)
    expect(msOf(ids.next(0))).toBe(5001)
  })

  it('makes valid ids with a clock of fractions, one at zero, and one that is broken', () => {
    for (const time of [1234.987, 0, Number.NaN]) {
      const id = createRunIds({ clock: clockAt([time]), random: zeros }).next(1)
      expect(isRunId(id)).toBe(true)
      expect(msOf(id)).toBe(Math.floor(time) || 0)
    }
  })

  it('refuses a shard that does not fit', () => {
    const ids = createRunIds({ clock: clockAt([1]), random: zeros })
    for (const shard of [-1, 4096, 1.5, Number.NaN]) {
      expect(() => ids.next(shard)).toThrow(expect.objectContaining({ code: 'BUG' }))
    }
  })
})

describe('isRunId', () => {
  it('knows a UUID of version 7', () => {
    expect(isRunId(known)).toBe(true)
  })

  it.each([
    '',
    known.toUpperCase(),
    known.replaceAll('-', ''),
    `{${known}}`,
    `${known}\n`,
    ` ${known}`,
    known.replace('-7cc3', '-4cc3'),
    known.replace('-98c4', '-c8c4'),
    known.slice(1),
    known.replace('d', 'g'),
    'order-42',
  ])('refuses %j', (text) => {
    expect(isRunId(text)).toBe(false)
  })
})

describe('what an id shows', () => {
  it('shows its shard and its time', () => {
    expect(shardOf(known)).toBe(0xcc3)
    expect(msOf(known)).toBe(Date.UTC(2022, 1, 22, 19, 22, 22))
  })

  it('shows nothing of a text that is no id', () => {
    expect(() => shardOf('order-42')).toThrow(expect.objectContaining({ code: 'BUG' }))
    expect(() => msOf('order-42')).toThrow(expect.objectContaining({ code: 'BUG' }))
  })
})

describe('shardFor', () => {
  it('is the published FNV-1a for ASCII: it is stored, so it may never change', () => {
    expect(shardFor('', 4096)).toBe(0x811c9dc5 % 4096)
    expect(shardFor('a', 4096)).toBe(0xe40c292c % 4096)
    expect(shardFor('foobar', 4096)).toBe(0xbf9cf968 % 4096)
    expect(shardFor('foobar', 1000)).toBe(0xbf9cf968 % 1000)
    expect(shardFor('naïve 🦀', 4096)).toBe(3914)
  })

  it('sends everything to shard 0 when there is one', () => {
    for (const routing of ['', 'a', 'order-42']) expect(shardFor(routing, 1)).toBe(0)
  })

  it('spreads keys that differ only in a number', () => {
    const shards = 16
    const counts = Array.from({ length: shards }, () => 0)
    for (let order = 0; order < 16_000; order++) counts[shardFor(`order-${order}`, shards)]! += 1
    for (const count of counts) {
      expect(count).toBeGreaterThan(700)
      expect(count).toBeLessThan(1300)
    }
  })

  it('refuses a number of shards that ids cannot hold', () => {
    for (const shards of [0, -1, 4097, 1.5, Number.NaN]) {
      expect(() => shardFor('a', shards)).toThrow(expect.objectContaining({ code: 'BUG' }))
    }
  })
})
