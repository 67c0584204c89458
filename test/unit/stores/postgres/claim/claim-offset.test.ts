// Claims that meet others begin further on, and go back to the front once they are alone.

import { describe, expect, it } from 'vitest'
import { ClaimOffset } from '../../../../../src/stores/postgres/claim/claim-offset.ts'

const nearlyOne = (): number => 0.999

describe('the place where a claim begins', () => {
  it('is the first run as long as hardly any had to be skipped', () => {
    const offset = new ClaimOffset(nearlyOne)
    expect(offset.next(0)).toBe(0)
    offset.skipped(0, 20, 80)
    expect(offset.next(0)).toBe(0)
  })

  it('is anywhere among twice as many runs as are wanted, once more than a quarter had to be skipped, and then further on', () => {
    let drawn = 0.999
    const offset = new ClaimOffset(() => drawn)
    offset.skipped(0, 21, 80)
    expect(offset.next(0)).toBe(159)
    offset.skipped(0, 80, 80)
    expect(offset.next(0)).toBe(319)
    drawn = 0
    expect(offset.next(0)).toBe(0)
  })

  it('is never further than some thousand runs, and is the first run again by and by', () => {
    const offset = new ClaimOffset(nearlyOne)
    for (let claims = 0; claims < 20; claims += 1) offset.skipped(0, 80, 80)
    expect(offset.next(0)).toBe(3_996)
    for (let claims = 0; claims < 100; claims += 1) offset.skipped(0, 0, 80)
    expect(offset.next(0)).toBe(0)
  })

  it('is known for each shard by itself', () => {
    const offset = new ClaimOffset(nearlyOne)
    offset.skipped(0, 80, 80)
    expect([offset.next(0), offset.next(1)]).toEqual([159, 0])
  })
})
