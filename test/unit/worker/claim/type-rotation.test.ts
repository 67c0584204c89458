// Whose turn it is from claim to claim.

import { describe, expect, it } from 'vitest'
import { Rotation } from '../../../../src/worker/claim/type-rotation.ts'

const named = (rotation: Rotation): string => rotation.selectors.map(({ type, version }) => type + version).join(' ')
const rotationOf = (...names: readonly string[]): Rotation =>
  new Rotation(names.map((name) => ({ type: name.slice(0, 1), version: Number(name.slice(1)) })))
const served = (rotation: Rotation, types: string): void => rotation.served(types.split('').map((type) => ({ type })))

describe('the rotation of a worker', () => {
  it('puts a type last that was served, and leaves those in front that wait', () => {
    const rotation = rotationOf('a1', 'b1', 'c1')
    served(rotation, 'b')
    expect(named(rotation)).toBe('a1 c1 b1')
    served(rotation, 'c')
    expect(named(rotation)).toBe('a1 b1 c1')
  })

  it('counts the last time that a claim served a type', () => {
    const rotation = rotationOf('a1', 'b1', 'c1')
    served(rotation, 'abcab')
    expect(named(rotation)).toBe('c1 a1 b1')
  })

  it('moves the versions of a type together', () => {
    const rotation = rotationOf('a1', 'b1', 'a2')
    served(rotation, 'a')
    expect(named(rotation)).toBe('b1 a1 a2')
  })

  it('gives the same list as long as nobody was served, and to a worker of one type always: a store may know it again', () => {
    const several = rotationOf('a1', 'b1')
    const one = rotationOf('a1', 'a2')
    const lists = [several.selectors, one.selectors]
    served(several, '')
    served(one, 'aa')
    expect(several.selectors).toBe(lists[0])
    expect(one.selectors).toBe(lists[1])
  })

  it('does not mind a run of a type that it does not know', () => {
    const rotation = rotationOf('a1', 'b1')
    served(rotation, 'xa')
    expect(named(rotation)).toBe('b1 a1')
  })
})
