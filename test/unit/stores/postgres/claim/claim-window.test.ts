// How far a claim looks: far enough past what others hold, and not once as far for each of many types.

import { describe, expect, it } from 'vitest'
import { ClaimWindow } from '../../../../../src/stores/postgres/claim/claim-window.ts'

describe('the reach of a claim', () => {
  it('is the same for one type and for types of which nothing is known', () => {
    const window = new ClaimWindow()
    expect([window.of(0, 80), window.ofEach(0, 80, 'share')]).toEqual([320, 320])
    window.sawTypes(0, 0)
    expect(window.ofEach(0, 80, 'share')).toBe(320)
  })

  it('is shared by the types that had something ready, or lets each of them fill the claim and show that there is more', () => {
    const window = new ClaimWindow()
    window.sawTypes(0, 3)
    expect([window.ofEach(0, 80, 'share'), window.ofEach(0, 1, 'share')]).toEqual([107, 11])
    window.sawTypes(0, 50)
    expect([window.ofEach(0, 80, 'share'), window.ofEach(0, 1, 'share')]).toEqual([7, 1])
    expect([window.ofEach(0, 80, 'all'), window.ofEach(0, 1, 'all')]).toEqual([81, 2])
    expect(window.ofEach(1, 80, 'share')).toBe(320)
  })

  it('grows for each of them until it gets past what others hold, or no further', () => {
    const window = new ClaimWindow()
    window.sawTypes(0, 2)
    while (window.widen(0, window.of(0, 1)));
    expect([window.of(0, 1), window.ofEach(0, 1, 'share')]).toEqual([10_000, 5_000])
    window.found(0, 0, 1_000)
    expect(window.ofEach(0, 1, 'share')).toBe(2_500)
  })

  it('of one type is hardly more than is wanted once nothing had to be skipped, and never as little as is wanted', () => {
    const window = new ClaimWindow()
    expect(window.ofOne(0, 1_000)).toBe(4_000)
    window.found(0, 0, 1_000)
    expect([1_000, 80, 10, 1].map((limit) => window.ofOne(0, limit))).toEqual([1_125, 112, 40, 32])
    expect([window.ofOne(1, 1_000), window.of(0, 1_000)]).toEqual([4_000, 4_000])
  })

  it('of one type grows with the number of runs that had to be skipped, up to as many again as are wanted, and shrinks by and by', () => {
    const window = new ClaimWindow()
    window.found(0, 200, 1_000)
    expect([window.ofOne(0, 1_000), window.ofOne(0, 80)]).toEqual([1_400, 320])
    window.found(0, 0, 1_000)
    expect(window.ofOne(0, 1_000)).toBe(1_200)
    window.found(0, 5_000, 1_000)
    expect(window.ofOne(0, 1_000)).toBe(2_000)
  })

  it('of one type gets past what others hold as fast as that of several', () => {
    const window = new ClaimWindow()
    window.found(0, 0, 1_000)
    expect(window.widen(0, window.of(0, 80))).toBe(true)
    expect(window.ofOne(0, 80)).toBe(640)
  })

  it('counts an offset in rounds of the types that had something ready, at most of those that are asked for', () => {
    const window = new ClaimWindow()
    expect(window.rounds(0, 300, 10)).toBe(300)
    window.sawTypes(0, 50)
    expect([window.rounds(0, 301, 100), window.rounds(0, 300, 10), window.rounds(0, 0, 10)]).toEqual([7, 30, 0])
  })
})
