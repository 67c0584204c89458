// 50 lost answers and 50 lost requests, while an engine performs runs.

import { describe, expect, it } from 'vitest'
import { loseAnswers } from './lost-answers.ts'

describe('a connection that breaks at a COMMIT', { timeout: 600_000 }, () => {
  it.for(['drop-reply', 'drop-request'] as const)('SW-E1 IF-C4 costs nothing and doubles nothing (%s)', async (how) => {
    const { struck, runs, violations } = await loseAnswers(50, how)
    console.log(`${how}: struck at ${struck} moments during ${runs} runs, ${violations.length} violations`)
    expect(violations).toEqual([])
    expect(struck).toBe(50)
  })
})
