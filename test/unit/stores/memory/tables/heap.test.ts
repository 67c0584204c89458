// A heap that loses or misplaces a member loses a run, or wakes it late.

import { fc } from '../../../../support/properties.ts'
import { describe, expect, it } from 'vitest'
import { Heap } from '../../../../../src/stores/memory/tables/heap.ts'

class Member {
  place = -1
  key: number
  constructor(key: number) {
    this.key = key
  }
}

const newHeap = (): Heap<Member> => new Heap((a, b) => a.key < b.key)

function drain(heap: Heap<Member>): number[] {
  const keys: number[] = []
  for (let first = heap.peek(); first !== undefined; first = heap.peek()) {
    heap.remove(first)
    keys.push(first.key)
  }
  return keys
}

describe('Heap', () => {
  it('has no first member when it is empty, also after it was full', () => {
    const heap = newHeap()
    expect(heap.peek()).toBeUndefined()
    const member = new Member(1)
    heap.push(member)
    expect(heap.peek()).toBe(member)
    heap.remove(member)
    expect(heap.peek()).toBeUndefined()
    expect([heap.size, member.place]).toEqual([0, -1])
  })

  it('a member that fills the gap of another branch rises as far as it must', () => {
    const heap = newHeap()
    const members = [1, 10, 2, 11, 12, 3, 4].map((key) => new Member(key))
    for (const member of members) heap.push(member)
    heap.remove(members[3] as Member)
    expect(drain(heap)).toEqual([1, 2, 3, 4, 10, 12])
  })

  it('gives its members in order whichever joined, left and joined again with another key meanwhile', () => {
    const action = fc.record({ who: fc.nat(15), key: fc.nat(20), joins: fc.boolean() })
    fc.assert(
      fc.property(fc.array(action, { maxLength: 120 }), (actions) => {
        const heap = newHeap()
        const members = Array.from({ length: 16 }, () => new Member(0))
        const inside = new Set<Member>()
        for (const { who, key, joins } of actions) {
          const member = members[who] as Member
          if (inside.delete(member)) heap.remove(member)
          if (joins) {
            member.key = key
            heap.push(member)
            inside.add(member)
          }
          const keys = [...inside].map((one) => one.key)
          expect(heap.size).toBe(inside.size)
          expect(heap.peek()?.key).toBe(keys.length === 0 ? undefined : Math.min(...keys))
        }
        const expected = [...inside].map(({ key }) => key).sort((a, b) => a - b)
        expect(drain(heap)).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })
})
