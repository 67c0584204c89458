// How often a walk is made that may become very dear, by what it took.

import { describe, expect, it } from 'vitest'
import { tooSlow } from '../../../../src/core/too-slow.ts'
import { Pace } from '../../../../src/stores/postgres/pace.ts'

/** A pace in a time that a test owns. */
function rig() {
  let now = 0
  const pace = new Pace(() => now, { leastMs: 2_000, cheapMs: 10 })
  const taking = (ms: number) => async (): Promise<void> => void (now += ms)
  return {
    pace,
    pass: (ms: number) => void (now += ms),
    walk: (ms: number) => pace.walk(taking(ms)),
    beside: (ms: number) => pace.beside(taking(ms)),
  }
}

describe('a walk from the front', () => {
  it('rests twenty times as long as it took, once two in a row were dear', async () => {
    const { pace, walk, pass } = rig()
    await walk(300)
    expect(pace.isRested).toBe(true)
    await walk(500)
    pass(9_999)
    expect(pace.isRested).toBe(false)
    pass(1)
    expect(pace.isRested).toBe(true)
  })

  it('comes due, however often a part of what it looks at is walked meanwhile', async () => {
    const { pace, pass } = rig()
    await pace.walk(async () => undefined)
    for (let ms = 0; ms < 2_000; ms += 500) {
      expect(pace.isDue).toBe(false)
      await pace.walk(async () => undefined, false)
      pass(500)
    }
    expect(pace.isDue).toBe(true)
  })

  it('is not dear because everything is: a busy machine must not keep a high priority waiting for a minute', async () => {
    const { pace, walk, beside } = rig()
    for (const ms of [3_000, 2_500, 4_000]) {
      await beside(ms)
      await walk(ms)
      expect(pace.isRested).toBe(true)
    }
  })

  it('is dear by as much as it takes longer than what does not begin there', async () => {
    const { pace, walk, beside, pass } = rig()
    for (let walks = 0; walks < 2; walks += 1) {
      await beside(1_000)
      await walk(1_500)
    }
    pass(9_999)
    expect(pace.isRested).toBe(false)
    pass(1)
    expect(pace.isRested).toBe(true)
  })

  it('is not judged by how slow things were before the last one', async () => {
    const { pace, walk, beside } = rig()
    await beside(3_000)
    await walk(3_000)
    await walk(3_000)
    await walk(3_000)
    expect(pace.isRested).toBe(false)
  })

  it('that the database gives up rests at once, however little time it was given', async () => {
    const { pace, pass } = rig()
    const cut = pace.walk(async () => {
      pass(9)
      throw tooSlow('It took too long.')
    })
    await expect(cut).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect([pace.isRested, pace.isCut]).toEqual([false, true])
    pass(180)
    expect([pace.isRested, pace.isCut]).toEqual([true, false])
  })
})
