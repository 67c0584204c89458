// How far a claim looks: far enough past what others hold, and not once as far for each of many types.

import { describe, expect, it } from 'vitest'
import { ClaimReach } from '../../../../src/stores/postgres/claim-reach.ts'

describe('the reach of a claim', () => {
  it('is the same for one type and for types of which nothing is known', () => {
    const reach = new ClaimReach()
    expect([reach.of(0, 80), reach.ofEach(0, 80)]).toEqual([320, 320])
    reach.sawTypes(0, 0)
    expect(reach.ofEach(0, 80)).toBe(320)
  })

  it('is shared by the types that had something ready, each of which can fill the claim and tell of more', () => {
    const reach = new ClaimReach()
    reach.sawTypes(0, 3)
    expect([reach.ofEach(0, 80), reach.ofEach(0, 1)]).toEqual([107, 11])
    reach.sawTypes(0, 50)
    expect([reach.ofEach(0, 80), reach.ofEach(0, 1)]).toEqual([81, 2])
    expect(reach.ofEach(1, 80)).toBe(320)
  })

  it('grows for each of them until it gets past what others hold, or no further', () => {
    const reach = new ClaimReach()
    reach.sawTypes(0, 2)
    while (reach.widen(0, reach.of(0, 1)));
    expect([reach.of(0, 1), reach.ofEach(0, 1)]).toEqual([10_000, 5_000])
    reach.found(0, 0)
    expect(reach.ofEach(0, 1)).toBe(2_500)
  })
})
