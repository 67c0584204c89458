// Nothing that is sent is lost or found twice, between four processes. The long version is in exchange-races.long.ts.

import { describe, expect, it } from 'vitest'
import { raceExchange } from './exchange-races.ts'

describe('four processes that wait, send, broadcast, time out and end at once', { timeout: 180_000 }, () => {
  it('WC-C1 WC-C5 in 500 races everything accepted is read once or unread once, never both, never neither', async () => {
    const { races, wrong, ...seen } = await raceExchange(500)
    expect(wrong).toEqual([])
    expect(races).toBeGreaterThanOrEqual(500)
    // Otherwise it was no race.
    const { read, unread, taken, inTime, late } = seen
    expect(Object.entries({ read, unread, taken, inTime, late }).filter(([, times]) => times <= 3)).toEqual([])
  })
})
