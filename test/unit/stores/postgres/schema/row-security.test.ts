// What is said of policies on our tables, and how often.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import { refusedRescues, warnOfPolicies } from '../../../../../src/stores/postgres/schema/row-security.ts'
import { createRecordingLogger } from '../../../../../src/testing/logger.ts'

const refusal = (said: string): HoldfastError =>
  new HoldfastError('STORE_REFUSED', 'A policy refuses this row.', { cause: new Error(said) })

function setUp() {
  const logger = createRecordingLogger()
  let now = 0
  const report = refusedRescues({ schema: '"jobs"', logger, monotonic: () => now })
  return { logger, report, pass: (ms: number) => void (now += ms) }
}

describe('tables without policies', () => {
  it('are opened without a word', () => {
    const logger = createRecordingLogger()
    warnOfPolicies([], { schema: 'jobs', logger })
    expect(logger.lines).toEqual([])
  })
})

describe('a refused rescue', () => {
  it('is said again after five minutes, and not before', () => {
    const { logger, report, pass } = setUp()
    const refused = { runs: ['one'], hasMore: false, error: refusal('') }
    for (let looks = 0; looks < 3; looks += 1) report(refused)
    pass(299_999)
    report(refused)
    expect(logger.lines).toHaveLength(1)
    pass(1)
    report(refused)
    expect(logger.lines).toHaveLength(2)
  })

  it.each([
    ['new row violates row-level security policy "mine" for table "journal"', 'INSERT on "jobs".journal'],
    ['neue Zeile verletzt Policy »mine« für Sicherheit auf Zeilenebene für Tabelle "runs"', 'UPDATE on "jobs".runs'],
    ['something else', 'UPDATE on "jobs".runs'],
  ])('names the table and the right: %s', (said, named) => {
    const { logger, report } = setUp()
    report({ runs: ['one', 'two'], hasMore: true, error: refusal(said) })
    expect(logger.messages('error')[0]).toContain(`refuses ${named} for 2 runs or more whose worker died`)
  })
})
