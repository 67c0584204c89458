import { describe, expect, it } from 'vitest'
import { Slots } from '../../../../src/worker/perform/slots.ts'

const deaf = { freed: () => undefined, left: () => undefined }

describe('slots', () => {
  it('show how many are free and in use', () => {
    const slots = new Slots(3, deaf)
    slots.take(2)
    expect([slots.free, slots.inUse]).toEqual([1, 2])
    slots.give(1)
    expect([slots.free, slots.inUse]).toEqual([2, 1])
  })

  it('notify when one becomes free, after it is, and not for nothing', () => {
    const freeThen: number[] = []
    const slots: Slots = new Slots(2, { ...deaf, freed: () => void freeThen.push(slots.free) })
    slots.take(2)
    slots.give(0)
    expect(freeThen).toEqual([])
    slots.give(2)
    expect(freeThen).toEqual([2])
  })

  it('are free while the last commit of their run is on its way, and the run still counts as in use', () => {
    const heard: string[] = []
    const slots: Slots = new Slots(1, {
      freed: () => void heard.push(`freed, ${slots.free} free`),
      left: () => void heard.push(`left, ${slots.inUse} in use`),
    })
    slots.take(1)
    expect(slots.vacate()).toBe(true)
    expect([slots.free, slots.inUse]).toEqual([1, 1])
    slots.left()
    expect([slots.free, slots.inUse]).toEqual([1, 0])
    expect(heard).toEqual(['freed, 1 free', 'left, 0 in use'])
  })

  it('are taken again by a run that goes on, also beyond their number', () => {
    const slots = new Slots(1, deaf)
    slots.take(1)
    slots.vacate()
    slots.take(1)
    slots.retake()
    expect([slots.free, slots.inUse]).toEqual([0, 2])
    slots.give(1)
    expect([slots.free, slots.inUse]).toEqual([0, 1])
    slots.give(1)
    expect(slots.free).toBe(1)
  })

  it('are kept by a run that leaves while a thousand others do: should the process die, those are performed again', () => {
    const slots = new Slots(2, deaf)
    for (let run = 0; run < 1_000; run += 1) {
      slots.take(1)
      expect(slots.vacate()).toBe(true)
    }
    slots.take(1)
    expect(slots.vacate()).toBe(false)
    slots.left()
    expect(slots.vacate()).toBe(true)
  })
})
