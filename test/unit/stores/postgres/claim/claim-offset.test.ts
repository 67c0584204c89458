// Claims that meet others begin further on, and go back to the front once they are alone.

import { describe, expect, it } from 'vitest'
import { ClaimOffset } from '../../../../../src/stores/postgres/claim/claim-offset.ts'

const nearlyOne = (): number => 0.999

describe('the place where a claim begins', () => {
  it('is the first run as long as hardly any had to be skipped', () => {
    const offset = new ClaimOffset(nearlyOne)
    expect(offset.next(0, 80)).toBe(0)
    offset.skipped(0, 20, 80)
    expect(offset.next(0, 80)).toBe(0)
  })

  it('is one of places as far apart as a claim is long, the more of them the more claims had to skip', () => {
    let drawn = 0.999
    const offset = new ClaimOffset(() => drawn)
    offset.skipped(0, 21, 80)
    expect(offset.next(0, 80)).toBe(80)
    offset.skipped(0, 80, 80)
    expect([offset.next(0, 80), offset.next(0, 40)]).toEqual([240, 280])
    drawn = 0
    expect(offset.next(0, 80)).toBe(0)
  })

  it('is never further than some thousand runs, one of fifty at most, and the first run again by and by', () => {
    const offset = new ClaimOffset(nearlyOne)
    for (let claims = 0; claims < 20; claims += 1) offset.skipped(0, 200, 200)
    expect([offset.next(0, 200), offset.next(0, 1)]).toEqual([3_800, 49])
    for (let claims = 0; claims < 100; claims += 1) offset.skipped(0, 0, 200)
    expect(offset.next(0, 200)).toBe(0)
  })

  it('is known for each shard by itself, and can be given up', () => {
    const offset = new ClaimOffset(nearlyOne)
    expect(offset.reset(0)).toBe(false)
    offset.skipped(0, 80, 80)
    expect([offset.next(0, 80), offset.next(1, 80)]).toEqual([80, 0])
    expect([offset.reset(0), offset.next(0, 80)]).toEqual([true, 0])
  })
})
