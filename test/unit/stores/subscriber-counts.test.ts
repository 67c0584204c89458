// How often the subscribers of a topic are counted, and that one process never lets one too many in.

import { expect, it } from 'vitest'
import { SubscriberCounts } from '../../../src/stores/subscriber-counts.ts'

/** Lets as many as want subscribe: how many got in, and how often they were counted. */
function fill(crowds: SubscriberCounts, most: number, wanted: number) {
  let [inside, counts] = [0, 0]
  for (let n = 0; n < wanted; n += 1) {
    if (crowds.admits('t', most)) {
      inside += 1
      continue
    }
    counts += 1
    if (!crowds.isFull('t', most, inside)) inside += 1
  }
  return { inside, counts }
}

it.each([1, 2, 8, 9, 10, 17, 1_000, 100_000])('of more than %i exactly as many get in', (most) => {
  expect(fill(new SubscriberCounts(), most, most + 5).inside).toBe(most)
})

it('a hundred thousand are counted less than a hundred times on their way in', () => {
  expect(fill(new SubscriberCounts(), 100_000, 100_000)).toEqual({ inside: 100_000, counts: 76 })
})

it('eight processes that take turns let in as many as one', () => {
  const crowds = Array.from({ length: 8 }, () => new SubscriberCounts())
  let inside = 0
  for (let n = 0; n < 1_200; n += 1) {
    const mine = crowds[n % 8] as SubscriberCounts
    if (mine.admits('t', 1_000) || !mine.isFull('t', 1_000, inside)) inside += 1
  }
  expect(inside).toBe(1_000)
})

it('another bound, and a topic that was forgotten among thousands, are counted anew', () => {
  const crowds = new SubscriberCounts()
  expect(crowds.isFull('t', 100, 0)).toBe(false)
  expect([crowds.admits('t', 100), crowds.admits('t', 50), crowds.admits('u', 100)]).toEqual([true, false, false])
  for (let n = 0; n < 1_000; n += 1) crowds.isFull(`other ${n}`, 100, 0)
  expect(crowds.admits('t', 100)).toBe(false)
})
