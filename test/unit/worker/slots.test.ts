import { describe, expect, it } from 'vitest'
import { Slots } from '../../../src/worker/slots.ts'

describe('slots', () => {
  it('tell how many are free and in use', () => {
    const slots = new Slots(3, () => undefined)
    slots.take(2)
    expect([slots.free, slots.inUse]).toEqual([1, 2])
    slots.give(1)
    expect([slots.free, slots.inUse]).toEqual([2, 1])
  })

  it('tell when one becomes free, after it is, and not for nothing', () => {
    const freeThen: number[] = []
    const slots: Slots = new Slots(2, () => freeThen.push(slots.free))
    slots.take(2)
    slots.give(0)
    expect(freeThen).toEqual([])
    slots.give(2)
    expect(freeThen).toEqual([2])
  })
})
