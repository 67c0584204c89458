// Errors are told apart by code and brand, by programs; both are promises.

import { describe, expect, it } from 'vitest'
import { bug, errorCodes, HoldfastError, isHoldfastError, type ErrorCode } from '../../../../src/core/errors/error.ts'

const expected: Record<ErrorCode, string> = {
  INVALID_OPTION: 'usage',
  INVALID_INPUT: 'usage',
  INVALID_DURATION: 'usage',
  INVALID_NAME: 'usage',
  NOT_STORABLE: 'usage',
  WORKFLOW_EXISTS: 'usage',
  WORKFLOW_UNKNOWN: 'usage',
  STORE_UNKNOWN: 'usage',
  SCHEMA_TOO_NEW: 'usage',
  CLOSED: 'usage',
  CRASH_UNSAFE: 'usage',
  BODY_UNSAFE: 'usage',
  STEP_UNKNOWN: 'usage',
  DECIDE_FAILED: 'usage',
  DECIDE_UNSAFE: 'usage',
  LAW_BROKEN: 'usage',
  ALREADY_ANSWERED: 'usage',
  RUN_NOT_FOUND: 'not-found',
  PROJECTION_UNKNOWN: 'not-found',
  RUN_EXISTS: 'conflict',
  INPUT_CONFLICT: 'conflict',
  WRONG_STATUS: 'conflict',
  RUN_CANCELLING: 'conflict',
  RUN_RESUMED: 'conflict',
  CHILD_REFUSED: 'conflict',
  MAILBOX_FULL: 'conflict',
  TOPIC_FULL: 'conflict',
  PROJECTION_CONFLICT: 'conflict',
  STALE_WRITE: 'conflict',
  LEASE_LOST: 'conflict',
  RUN_FAILED: 'failure',
  RUN_CANCELLED: 'failure',
  RUN_CRASHED: 'failure',
  RUN_TIMEOUT: 'failure',
  RUN_EXPIRED: 'failure',
  CHILD_FAILED: 'failure',
  CHILD_CANCELLED: 'failure',
  STEP_TIMEOUT: 'failure',
  ASK_REFUSED: 'failure',
  ASK_UNANSWERED: 'failure',
  PAYLOAD_CORRUPT: 'failure',
  ENTRY_REJECTED: 'failure',
  INPUT_REJECTED: 'failure',
  DRIFT: 'drift',
  EVENT_UNREADABLE: 'drift',
  PROJECTION_BEHIND: 'unavailable',
  RESULT_TIMEOUT: 'unavailable',
  ASK_TIMEOUT: 'unavailable',
  EXECUTE_TIMEOUT: 'unavailable',
  STORE_UNAVAILABLE: 'unavailable',
  STORE_REFUSED: 'unavailable',
  BUG: 'bug',
}

const brand = Symbol.for('holdfast.error')

describe('HoldfastError', () => {
  it('every code belongs to the family that must act', () => {
    const families = Object.fromEntries(errorCodes.map((code) => [code, new HoldfastError(code, 'x').family]))
    expect(families).toEqual(expected)
  })

  it('the set of codes is closed', () => {
    // @ts-expect-error: no such code
    const code: ErrorCode = 'SOMETHING_ELSE'
    expect(errorCodes).not.toContain(code)
  })

  it('keeps its message and that of its cause in JSON, also if causes go in a circle', () => {
    const cause = new TypeError('underneath')
    const error = new HoldfastError('RUN_FAILED', 'It failed.', { cause, details: { runId: '1' } })
    const fields = { name: 'HoldfastError', code: 'RUN_FAILED', message: 'It failed.', details: { runId: '1' } }
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({
      error: { ...fields, cause: { name: 'TypeError', message: 'underneath' } },
    })
    cause.cause = error
    expect(JSON.stringify(error)).toContain('underneath')
    const outer = new HoldfastError('BUG', 'x', { cause: error })
    expect(JSON.parse(JSON.stringify(outer))).toMatchObject({ cause: { code: 'RUN_FAILED', message: 'It failed.' } })
    const deep = new HoldfastError('BUG', 'x', { cause: new Error('middle', { cause: new TypeError('inner') }) })
    expect(JSON.parse(JSON.stringify(deep))).toMatchObject({
      cause: { message: 'middle', cause: { name: 'TypeError', message: 'inner' } },
    })
    const circle = new Error('circle')
    circle.cause = circle
    expect(JSON.stringify(new HoldfastError('BUG', 'x', { cause: circle })).length).toBeLessThan(1_000)
    expect(JSON.parse(JSON.stringify(new HoldfastError('BUG', 'x', { cause: 7 })))).toMatchObject({ cause: '7' })
    expect('cause' in (JSON.parse(JSON.stringify(new HoldfastError('BUG', 'x'))) as object)).toBe(false)
  })

  it('that says what was given does not keep ten kilobytes of it, however deep they lie', () => {
    const long = 'x'.repeat(10_000)
    const many = Array.from({ length: 1_000 }, () => long)
    const given = { name: long, list: many, nested: { [long]: { deeper: [long, { deepest: many }] } }, count: 3 }
    const { details } = new HoldfastError('INVALID_OPTION', 'x', { details: given })
    expect(JSON.stringify(details).length).toBeLessThan(12_000)
    expect(details).toMatchObject({ name: `${'x'.repeat(200)}…`, count: 3 })
    const small = { where: 'work()', allowed: ['a', 'b'], issue: { path: '$.a', at: null } }
    expect(new HoldfastError('INVALID_OPTION', 'x', { details: small }).details).toEqual(small)
    expect(new HoldfastError('RUN_FAILED', 'x', { details: given }).details).toBe(given)
  })

  it('is an error with code, message, details and cause', () => {
    const cause = new Error('underneath')
    const error = new HoldfastError('RUN_FAILED', 'It failed.', { cause, details: { runId: '1' } })
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe('HoldfastError')
    expect(error.message).toBe('It failed.')
    expect(error.cause).toBe(cause)
    expect(error.details).toEqual({ runId: '1' })
  })

  it('has no cause where none was given, and keeps one that is undefined', () => {
    expect(Object.hasOwn(new HoldfastError('BUG', 'x'), 'cause')).toBe(false)
    expect(Object.hasOwn(new HoldfastError('BUG', 'x', { cause: undefined }), 'cause')).toBe(true)
    expect(new HoldfastError('BUG', 'x').details).toEqual({})
  })

  it('does not show its brand', () => {
    expect(Object.getOwnPropertyDescriptor(new HoldfastError('BUG', 'x'), brand)?.enumerable).toBe(false)
  })
})

describe('isHoldfastError', () => {
  it('knows its own, and asks for the code when asked to', () => {
    const error = new HoldfastError('LEASE_LOST', 'x')
    expect(isHoldfastError(error)).toBe(true)
    expect(isHoldfastError(error, 'LEASE_LOST')).toBe(true)
    expect(isHoldfastError(error, 'STALE_WRITE')).toBe(false)
  })

  it('knows an error of another copy of the package, which has another class', () => {
    class OtherCopy extends Error {
      readonly code = 'LEASE_LOST'
      readonly [brand] = true
    }
    const error: unknown = new OtherCopy('x')
    expect(error).not.toBeInstanceOf(HoldfastError)
    expect(isHoldfastError(error, 'LEASE_LOST')).toBe(true)
    expect(isHoldfastError(error, 'BUG')).toBe(false)
  })

  it('does not know what only looks like one', () => {
    const lookalike = Object.assign(new Error('x'), { name: 'HoldfastError', code: 'BUG' })
    for (const value of [lookalike, null, undefined, 'BUG', 5, () => 1]) expect(isHoldfastError(value)).toBe(false)
  })

  it('does not throw on a hostile value: it is asked about whatever a body threw', () => {
    const throwing = () => {
      throw new Error('hostile')
    }
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const branded = Object.defineProperty({ [brand]: true }, 'code', { get: throwing })
    for (const value of [revoked.proxy, new Proxy({}, { has: throwing, get: throwing }), branded]) {
      expect(isHoldfastError(value, 'BUG')).toBe(false)
    }
  })
})

describe('bug', () => {
  it('says whose defect it is', () => {
    const error = bug('Two and two are five', { sum: 5 })
    expect(error.code).toBe('BUG')
    expect(error.message).toMatch(/^Two and two are five\. .*report/)
    expect(error.details).toEqual({ sum: 5 })
  })
})
