// Where claims begin. A run that this process was notified of is found by the next claim that leases something, however dear a walk
// from the front of the index is.

import { beforeEach, describe, expect, it } from 'vitest'
import { ClaimFloors, type WalkStart, type WalkResult } from '../../../../../src/stores/postgres/claim/claim-floors.ts'

const ship = { type: 'ship', version: 1, leaseMs: null }
const now = 1_000_000
const nothing: WalkResult = { isAll: true, passed: null, leased: null, head: null }
const urgent = { rank: -5, due: now - 60_000 }

describe('a claim', () => {
  let floors: ClaimFloors

  const begin = (isFront = false, mayWalk = false): WalkStart => floors.begin(0, ship, { isFront, mayWalk })
  const saw = (beginning: WalkStart): void => floors.saw(0, [{ ...ship, begin: beginning }], [nothing], now)
  const failed = (beginning: WalkStart): void => floors.failed(0, [{ ...ship, begin: beginning }])
  const noteReady = (place: { rank: number; due: number }): void =>
    floors.notice([{ kind: 'ready', type: 'ship', isTimed: false, version: 1, ...place }])

  beforeEach(() => {
    floors = new ClaimFloors(() => 0)
    saw(begin())
  })

  it('begins at the front as long as nothing is known, and where the last one ended afterwards', () => {
    expect(new ClaimFloors(() => 0).begin(0, ship, { isFront: false, mayWalk: false }).from).toBe('front')
    expect(begin()).toMatchObject({ from: 'slack', place: { rank: 0, due: now - 5_000 } })
  })

  it('begins at a run of a higher priority that it was notified of, once', () => {
    noteReady(urgent)
    const beginning = begin()
    expect(beginning.place).toEqual(urgent)
    saw(beginning)
    expect(begin().place).toEqual({ rank: urgent.rank, due: now - 5_000 })
  })

  it('that leased nothing leaves what it was notified of to the next one, also if no walk may be made', () => {
    noteReady(urgent)
    failed(begin())
    expect(begin().place).toEqual(urgent)
  })

  it('that failed does not forget the first of what it was notified of before and meanwhile', () => {
    noteReady(urgent)
    const beginning = begin()
    noteReady({ rank: -1, due: now })
    failed(beginning)
    expect(begin().place).toEqual(urgent)
  })

  it('from the front that failed is made again as soon as that may be', () => {
    failed(begin(true, true))
    expect(begin().from).toBe('slack')
    expect(begin(false, true).from).toBe('front')
  })

  it('of several types goes on with each where that one stands, however far others were looked at', () => {
    const pack = { type: 'pack', version: 1, leaseMs: null }
    const types = [ship, pack].map((one) => ({ ...one, begin: floors.begin(0, one, { isFront: true, mayWalk: true }) }))
    const [early, late] = [now - 90_000, now - 10_000].map((due) => ({ rank: 0, due }))
    const sight = { isAll: false, passed: null, head: early ?? null }
    const sights = [
      { ...sight, leased: late ?? null },
      { ...sight, leased: null },
    ]
    floors.saw(0, types, sights, now)
    expect(begin().place).toEqual(late)
    expect(floors.begin(0, pack, { isFront: false, mayWalk: false })).toMatchObject({ from: 'near', place: early })
  })

  it('goes on with a run that it had to pass over, also if it has leased later ones', () => {
    const beginning = begin(true, true)
    const [early, late] = [now - 90_000, now - 10_000].map((due) => ({ rank: 0, due }))
    const sight = { isAll: true, passed: early ?? null, leased: late ?? null, head: null }
    floors.saw(0, [{ ...ship, begin: beginning }], [sight], now)
    expect(begin().place).toEqual(early)
  })

  it('looks everywhere for what a hint named without a place, as soon as that may be', () => {
    floors.notice([{ kind: 'ready', type: 'ship' }])
    expect(begin().from).toBe('slack')
    expect(begin(false, true).from).toBe('front')
    expect(begin(false, true).from).toBe('slack')
  })
})
