// Whatever the clock does, ids of one maker and shard sort in the order in which they were made.

import { fc } from '../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { createRunIds, isRunId, msOf, shardFor, shardOf } from '../../src/core/model/run-id.ts'
import type { Clock, Random } from '../../src/core/runtime/ports.ts'

/** A small seeded generator (mulberry32), so that a failing case replays. */
function seeded(seed: number): Random {
  let state = seed
  return {
    uint32() {
      state = (state + 0x6d2b79f5) | 0
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
      return (mixed ^ (mixed >>> 14)) >>> 0
    },
  }
}

/** The hash once more, in exact arithmetic: a 32-bit multiplication that loses bits would differ. */
function fnv1a(text: string): bigint {
  let hash = 0x811c9dc5n
  for (let index = 0; index < text.length; index++) {
    hash = BigInt.asUintN(32, (hash ^ BigInt(text.charCodeAt(index))) * 0x01000193n)
  }
  return hash
}

const shard = fc.integer({ min: 0, max: 4095 })
// Mostly standing still or going on, sometimes back by a second.
const step = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3 }), fc.integer({ min: -1000, max: 1000 }))

describe('run ids', () => {
  it('are valid, unique and in order, and show their shard, also when the clock stands or steps back', () => {
    const start = fc.integer({ min: 2000, max: 2 ** 47 })
    const calls = fc.array(fc.tuple(step, fc.oneof(fc.constant(7), shard)), { minLength: 2, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer(), start, calls, (seed, startedAt, moves) => {
        let now = startedAt
        const clock: Clock = { now: () => now, monotonic: () => 0, after: () => () => undefined }
        const ids = createRunIds({ clock, random: seeded(seed) })
        let latest = 0
        const made = moves.map(([change, where]) => {
          now = Math.max(1, now + change)
          latest = Math.max(latest, now)
          const id = ids.next(where)
          expect(isRunId(id)).toBe(true)
          expect(shardOf(id)).toBe(where)
          expect(msOf(id)).toBe(latest)
          return id
        })
        expect(new Set(made).size).toBe(made.length)
        for (const where of new Set(made.map(shardOf))) {
          const ofShard = made.filter((id) => shardOf(id) === where)
          expect(ofShard).toEqual([...ofShard].sort())
        }
      }),
    )
  })

  it('of two makers in the same millisecond differ', () => {
    const clock: Clock = { now: () => 5000, monotonic: () => 0, after: () => () => undefined }
    const made = [1, 2, 3, 4].flatMap((seed) => {
      const ids = createRunIds({ clock, random: seeded(seed) })
      return Array.from({ length: 1000 }, () => ids.next(0))
    })
    expect(new Set(made).size).toBe(made.length)
  })
})

describe('shards', () => {
  it('a routing string finds the shard that exact arithmetic finds, and one that exists', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 4096 }), (routing, shards) => {
        const found = shardFor(routing, shards)
        expect(Number.isInteger(found) && found >= 0 && found < shards).toBe(true)
        expect(found).toBe(Number(fnv1a(routing) % BigInt(shards)))
      }),
    )
  })
})
