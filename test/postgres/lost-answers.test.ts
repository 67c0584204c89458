// Nothing is lost and nothing is doubled when answers, or requests, are. The long version is in lost-answers.long.ts.

import { describe, expect, it } from 'vitest'
import { loseAnswers } from './lost-answers.ts'

describe('a connection that breaks at a COMMIT', { timeout: 120_000 }, () => {
  it.for(['drop-reply', 'drop-request'] as const)('SW-E1 IF-C4 costs nothing and doubles nothing (%s)', async (how) => {
    const losses = await loseAnswers(8, how)
    expect(losses.violations).toEqual([])
    expect(losses.struck).toBe(8)
  })
})
