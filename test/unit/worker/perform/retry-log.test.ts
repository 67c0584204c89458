// A dependency that is away must show in the log, and thousands of runs that fail with it must not fill the log.

import { describe, expect, it } from 'vitest'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { RetryLog } from '../../../../src/worker/perform/retry-log.ts'

function setUp() {
  const logger = createRecordingLogger()
  let now = 0
  const log = new RetryLog({ logger, clock: { monotonic: () => now } as never })
  const fail = (changes: object = {}): void => {
    const run = { id: 'r1', type: 'order' }
    log.add({
      run,
      step: 'charge',
      kind: 'do',
      attempt: 2,
      delayMs: 1_500,
      error: new Error('The bank is away'),
      ...changes,
    })
  }
  return { logger, fail, pass: (ms: number) => void (now += ms) }
}

describe('a failed attempt', () => {
  it.each([
    ['a step', {}, 'Run r1 of "order" tries step "charge" again in 1.5 s: attempt 2 failed: The bank is away'],
    [
      'an undo',
      { kind: 'undo' },
      'Run r1 of "order" tries the undo of step "charge" again in 1.5 s: attempt 2 failed: The bank is away',
    ],
    ['a body', { step: null }, 'Run r1 of "order" tries its body again in 1.5 s: attempt 2 failed: The bank is away'],
    [
      'a hidden name',
      { step: 'a\u202Eb' },
      'Run r1 of "order" tries step "a\\u202eb" again in 1.5 s: attempt 2 failed: The bank is away',
    ],
  ])('is named with its run, attempt and delay: %s', (_, changes, line) => {
    const { logger, fail } = setUp()
    fail(changes)
    expect(logger.messages('warn')).toEqual([line])
  })

  it('keeps a long message out of the line', () => {
    const { logger, fail } = setUp()
    fail({ error: new Error('x'.repeat(100_000)) })
    expect(logger.messages('warn')[0]?.length).toBeLessThan(2_200)
  })
})

describe('ten thousand failed attempts of one type', () => {
  it('write a few lines, and the next line says how many were left out', () => {
    const { logger, fail, pass } = setUp()
    for (let attempt = 1; attempt <= 10_000; attempt += 1) fail({ attempt })
    expect(logger.messages('warn')).toHaveLength(5)
    pass(9_999)
    fail()
    expect(logger.messages('warn')).toHaveLength(5)
    pass(1)
    fail()
    fail()
    expect(logger.messages('warn')).toHaveLength(6)
    expect(logger.messages('warn').at(-1)).toMatch(
      / \(9,?996 failed attempts of its type before this one were not logged\)$/,
    )
    pass(3_600_000)
    for (let attempt = 1; attempt <= 100; attempt += 1) fail({ attempt })
    expect(logger.messages('warn')).toHaveLength(11)
  })

  it('leave the lines of another type alone', () => {
    const { logger, fail } = setUp()
    for (let attempt = 1; attempt <= 100; attempt += 1) fail({ attempt })
    fail({ run: { id: 'r2', type: 'refund' } })
    expect(logger.messages('warn').at(-1)).toContain('Run r2 of "refund"')
  })
})
