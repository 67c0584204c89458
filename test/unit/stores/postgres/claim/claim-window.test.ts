// How far a claim looks: far enough past what others hold, and not once as far for each of many types.

import { describe, expect, it } from 'vitest'
import { ClaimWindow } from '../../../../../src/stores/postgres/claim/claim-window.ts'

describe('the reach of a claim', () => {
  it('is the same for one type and for types of which nothing is known', () => {
    const window = new ClaimWindow()
    expect([window.of(0, 80), window.ofEach(0, 80)]).toEqual([320, 320])
    window.sawTypes(0, 0)
    expect(window.ofEach(0, 80)).toBe(320)
  })

  it('is shared by the types that had something ready, each of which can fill the claim and tell of more', () => {
    const window = new ClaimWindow()
    window.sawTypes(0, 3)
    expect([window.ofEach(0, 80), window.ofEach(0, 1)]).toEqual([107, 11])
    window.sawTypes(0, 50)
    expect([window.ofEach(0, 80), window.ofEach(0, 1)]).toEqual([81, 2])
    expect(window.ofEach(1, 80)).toBe(320)
  })

  it('grows for each of them until it gets past what others hold, or no further', () => {
    const window = new ClaimWindow()
    window.sawTypes(0, 2)
    while (window.widen(0, window.of(0, 1)));
    expect([window.of(0, 1), window.ofEach(0, 1)]).toEqual([10_000, 5_000])
    window.found(0, 0)
    expect(window.ofEach(0, 1)).toBe(2_500)
  })
})
