// How often a walk is made that may become very dear, by what it took.

import { describe, expect, it } from 'vitest'
import { tooSlow } from '../../../../../src/core/errors/too-slow.ts'
import { WalkPace } from '../../../../../src/stores/postgres/claim/walk-pace.ts'

/** A pace in a time that a test owns. */
function rig() {
  let now = 0
  const walkPace = new WalkPace(() => now, { leastMs: 2_000, cheapMs: 10 })
  const taking = (ms: number) => async (): Promise<void> => void (now += ms)
  return {
    walkPace,
    pass: (ms: number) => void (now += ms),
    walk: (ms: number) => walkPace.walk(taking(ms)),
    beside: (ms: number) => walkPace.beside(taking(ms)),
  }
}

describe('a walk from the front', () => {
  it('rests twenty times as long as it took, once two in a row were dear', async () => {
    const { walkPace, walk, pass } = rig()
    await walk(300)
    expect(walkPace.isRested).toBe(true)
    await walk(500)
    pass(9_999)
    expect(walkPace.isRested).toBe(false)
    pass(1)
    expect(walkPace.isRested).toBe(true)
  })

  it('comes due, however often a part of what it looks at is walked meanwhile', async () => {
    const { walkPace, pass } = rig()
    await walkPace.walk(async () => undefined)
    for (let ms = 0; ms < 2_000; ms += 500) {
      expect(walkPace.isDue).toBe(false)
      await walkPace.walk(async () => undefined, false)
      pass(500)
    }
    expect(walkPace.isDue).toBe(true)
  })

  it('is not dear because everything is: a busy machine must not keep a high priority waiting for a minute', async () => {
    const { walkPace, walk, beside } = rig()
    for (const ms of [3_000, 2_500, 4_000]) {
      await beside(ms)
      await walk(ms)
      expect(walkPace.isRested).toBe(true)
    }
  })

  it('is dear by as much as it takes longer than what does not begin there', async () => {
    const { walkPace, walk, beside, pass } = rig()
    for (let walks = 0; walks < 2; walks += 1) {
      await beside(1_000)
      await walk(1_500)
    }
    pass(9_999)
    expect(walkPace.isRested).toBe(false)
    pass(1)
    expect(walkPace.isRested).toBe(true)
  })

  it('is not judged by how slow things were before the last one', async () => {
    const { walkPace, walk, beside } = rig()
    await beside(3_000)
    await walk(3_000)
    await walk(3_000)
    await walk(3_000)
    expect(walkPace.isRested).toBe(false)
  })

  it('that the database gives up rests at once, however little time it was given', async () => {
    const { walkPace, pass } = rig()
    const cut = walkPace.walk(async () => {
      pass(9)
      throw tooSlow('It took too long.')
    })
    await expect(cut).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect([walkPace.isRested, walkPace.isCut]).toEqual([false, true])
    pass(180)
    expect([walkPace.isRested, walkPace.isCut]).toEqual([true, false])
  })
})
