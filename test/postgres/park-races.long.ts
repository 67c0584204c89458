// 1,500 deliberate races of parking against delivery, from two processes.

import { describe, expect, it } from 'vitest'
import { raceParkings } from './park-races.ts'

describe('parking against delivery, from two processes', { timeout: 300_000 }, () => {
  it('WC-S1 IF-C1 in 1,500 races nobody sleeps on with a message', async () => {
    const tally = await raceParkings(1_500)
    console.log(
      `parking against delivery: ${tally.races} races, ${tally.woken} woken, ${tally.delivered} delivered, 0 lost`,
    )
    expect(tally).toMatchObject({ races: 1_500, lost: [] })
    expect(Math.min(tally.woken, tally.delivered)).toBeGreaterThan(50)
  })
})
