import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ChurningMap } from '../../../../src/core/runtime/churning-map.ts'

const key = fc.constantFrom('a', 'b', 'c', 'd')
const action = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), key, value: fc.nat() }),
  fc.record({ kind: fc.constantFrom('delete' as const, 'take' as const), key }),
  fc.record({ kind: fc.constant('clear' as const), key }),
)

describe('a churning map', () => {
  it('answers as a map does, in the same order, whatever came and went', () => {
    fc.assert(
      fc.property(fc.array(action), (actions) => {
        const churning = new ChurningMap<number>()
        const plain = new Map<string, number>()
        for (const one of actions) {
          if (one.kind === 'set') {
            churning.set(one.key, one.value)
            plain.set(one.key, one.value)
          } else if (one.kind === 'take') {
            expect(churning.take(one.key)).toBe(plain.get(one.key))
            plain.delete(one.key)
          } else if (one.kind === 'delete') {
            expect(churning.delete(one.key)).toBe(plain.delete(one.key))
          } else {
            churning.clear()
            plain.clear()
          }
          expect([...churning]).toEqual([...plain])
          expect([...churning.keys()]).toEqual([...plain.keys()])
          expect([...churning.values()]).toEqual([...plain.values()])
          expect(churning.size).toBe(plain.size)
          expect([churning.has(one.key), churning.get(one.key)]).toEqual([plain.has(one.key), plain.get(one.key)])
        }
      }),
    )
  })

  it('keeps nothing of an entry that has gone, although a table that V8 has replaced still knows of it', () => {
    const churning = new ChurningMap<object>()
    churning.set('a', {})
    const [cell] = (churning as unknown as { readonly cells: Map<string, { value: unknown }> }).cells.values()
    expect(cell?.value).toEqual({})
    churning.delete('a')
    expect(cell?.value).toBeUndefined()
  })
})
