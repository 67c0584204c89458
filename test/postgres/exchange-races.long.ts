// 10,000 races between four processes.

import { describe, expect, it } from 'vitest'
import { raceExchange } from './exchange-races.ts'

describe('four processes that wait, send, broadcast, time out and end at once', { timeout: 900_000 }, () => {
  it('WC-C1 WC-C5 in 10,000 races everything accepted is read once or unread once, never both, never neither', async () => {
    const tally = await raceExchange(10_000)
    const { races, read, unread, taken, open, inTime, late } = tally
    console.log(
      `${races} races: ${read} signals read, ${unread} unread at the end; ${taken} jobs taken, ${open} open; ` +
        `${inTime} children in time, ${late} late`,
    )
    expect(tally.wrong).toEqual([])
  })
})
