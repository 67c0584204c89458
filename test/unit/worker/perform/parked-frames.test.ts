import { describe, expect, it } from 'vitest'
import type { Frame } from '../../../../src/core/definition/definition.ts'
import { Parked } from '../../../../src/worker/perform/parked-frames.ts'

const frame = (seq: number | null): Frame => ({
  seq,
  start: () => expect.unreachable(),
  resume: () => expect.unreachable(),
  applyControl: () => undefined,
  arrived: null,
  isLeaving: false,
  isVacant: false,
  wakeNames: [],
  messageArrived: () => undefined,
  fail: () => undefined,
  giveBack: () => undefined,
  abandon: () => undefined,
  abort: () => undefined,
})

describe('parked frames', () => {
  it('are taken once', () => {
    const parked = new Parked(10)
    const one = frame(1)
    parked.put('a', one)
    expect(parked.take('a')).toBe(one)
    expect(parked.take('a')).toBeUndefined()
  })

  it('beyond the limit push out the one that has rested longest', () => {
    const parked = new Parked(2)
    for (const id of ['a', 'b', 'a', 'c']) parked.put(id, frame(1))
    expect(parked.size).toBe(2)
    expect(parked.take('b')).toBeUndefined()
    expect(parked.take('a')).toBeDefined()
    expect(parked.take('c')).toBeDefined()
  })

  it('that can never be resumed are not kept, nor what was kept of their run before', () => {
    const parked = new Parked(2)
    parked.put('a', frame(1))
    parked.put('b', frame(1))
    parked.put('a', frame(null))
    parked.put('c', frame(null))
    expect([parked.has('a'), parked.has('b'), parked.has('c')]).toEqual([false, true, false])
  })

  it('are the newest of their run', () => {
    const parked = new Parked(2)
    const [old, current] = [frame(1), frame(2)]
    parked.put('a', old)
    parked.put('a', current)
    expect(parked.take('a')).toBe(current)
  })

  it('are none when the limit is none', () => {
    const parked = new Parked(0)
    parked.put('a', frame(1))
    expect([parked.size, parked.take('a')]).toEqual([0, undefined])
  })

  it('are forgotten together', () => {
    const parked = new Parked(2)
    parked.put('a', frame(1))
    parked.clear()
    expect(parked.size).toBe(0)
  })
})
