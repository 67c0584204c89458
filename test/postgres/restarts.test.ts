// The database is restarted amid work. The long version, with a thousand runs, is in restarts.long.ts.

import { describe, expect, it } from 'vitest'
import { restartAmid } from './restarts.ts'

describe('a restart of Postgres amid runs', { timeout: 120_000 }, () => {
  it('SW-E1 loses nothing, and the worker goes on by itself', async () => {
    const report = await restartAmid(90, ['kill'])
    expect(report).toEqual({ blows: 1, runs: 90, bodies: 270, errors: [], violations: [] })
  })
})
