// What a claim remembers of runs that are due later.

import { expect, it } from 'vitest'
import { TimedFloors } from '../../../../../src/stores/postgres/claim/timed-floors.ts'

const how = { isFront: false, mayWalk: true }

it('a claim that names the same types in another order begins where the last one ended', () => {
  const floors = new TimedFloors()
  const [a, b] = [{ type: 'a', version: 1 } as const, { type: 'b', version: 1 } as const]
  const first = floors.look(0, [a, b], how)
  expect(first.since).toBe(-1)
  floors.saw(0, [a, b], first, { due: null, now: 100_000 })
  const next = floors.look(0, [b, a], how)
  expect(next.since).toBeGreaterThan(0)
  expect(next.aheadMs).not.toBeNull()
})
