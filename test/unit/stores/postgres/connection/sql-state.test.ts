// What Postgres says becomes one of our codes, once, and keeps its cause. The engine retries the one kind and gives up a run
// for the other, so a wrong translation loses work or repeats it for ever.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import {
  isUnknownStatement,
  isTransient,
  isUniqueViolation,
  sqlStateOf,
  translated,
  unanswered,
} from '../../../../../src/stores/postgres/connection/sql-state.ts'

const said = (code: string): Error => Object.assign(new Error('it failed'), { code })

describe('an error of Postgres', () => {
  it.each(['40001', '40P01', '55P03'])('%s says that others were in the way: at once again', (state) => {
    expect(isTransient(state)).toBe(true)
    expect(translated(said(state)).code).toBe('STORE_UNAVAILABLE')
  })

  it.each(
    '25P03 25P04 57P01 57P02 57P03 08000 08003 08006 08P01 53300 57014 53100 53200 53000 58030 XX000 XX001 55006'.split(
      ' ',
    ),
  )('%s is unavailable: the work is kept and sent again, but not at once', (state) => {
    const error = said(state)
    const result = translated(error)
    expect(result).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: error, details: { sqlState: state } })
    expect(result.message).toContain('it failed')
    expect(isTransient(state)).toBe(false)
  })

  it.each([
    ['25006', 'primary'],
    ['28000', 'address'],
    ['28P01', 'address'],
    ['3D000', 'address'],
    ['3F000', 'holdfast migrate'],
    ['42501', 'grant'],
    ['42P01', 'holdfast migrate'],
    ['42703', 'holdfast migrate'],
  ])('%s stays until an operator acts: the error says at once what to do', (state, what) => {
    const error = said(state)
    const result = translated(error)
    expect(result).toMatchObject({ code: 'STORE_REFUSED', cause: error, details: { sqlState: state } })
    expect(result.message).toContain('it failed')
    expect(result.message).toContain(what)
    expect(isTransient(state)).toBe(false)
  })

  it.each(['22001', '22003', '22021', '22P02', '22P05', '23502', '23505', '23514', '54000', '54011'])(
    '%s is never tried again: it is a rejected entry, and harms no other',
    (state) => {
      expect(translated(said(state)).code).toBe('ENTRY_REJECTED')
      expect(isTransient(state)).toBe(false)
    },
  )

  it.each(['42601', '42883', '0A000'])('%s is a defect of ours', (state) => {
    expect(translated(said(state))).toMatchObject({ code: 'BUG', details: { sqlState: state } })
  })

  it.each(['42P05', '26000'])('%s is what a pooler makes of names: without them it may succeed', (state) => {
    expect(isUnknownStatement(state)).toBe(true)
    expect(translated(said(state)).code).toBe('STORE_UNAVAILABLE')
  })

  it('of a unique index is known, and no other', () => {
    expect(isUniqueViolation('23505')).toBe(true)
    expect(isUniqueViolation('23514')).toBe(false)
    expect(isUniqueViolation(undefined)).toBe(false)
  })
})

describe('an error that is not of Postgres', () => {
  it('of a host that cannot be found says that a password must be URL-encoded', () => {
    expect(translated(said('ENOTFOUND')).message).toContain('%40, %2F')
    expect(translated(said('ECONNRESET')).message).not.toContain('%40')
  })

  it.each(['EPIPE', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EHOSTUNREACH'])(
    '%s has no state, and is a connection that failed',
    (code) => {
      expect(sqlStateOf(said(code))).toBeUndefined()
      expect(translated(said(code))).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { sqlState: null } })
    },
  )

  it.each([[undefined], [null], ['text'], [new Error('Connection terminated unexpectedly')], [{ code: 7 }]])(
    '%s has no state',
    (thrown) => {
      expect(sqlStateOf(thrown)).toBeUndefined()
      expect(translated(thrown).code).toBe('STORE_UNAVAILABLE')
    },
  )

  it('but is our own stays as it is', () => {
    const own = new HoldfastError('CLOSED', 'closed')
    expect(translated(own)).toBe(own)
  })
})

describe('an error that nobody sent', () => {
  it.each([
    new RangeError('Invalid string length'),
    new TypeError("Cannot read properties of undefined (reading 'length')"),
    new SyntaxError('Unexpected token'),
    Object.assign(new Error('Cannot create a string longer than 0x1fffffe8 characters'), {
      code: 'ERR_STRING_TOO_LONG',
    }),
    Object.assign(new TypeError('The "string" argument must be of type string'), { code: 'ERR_INVALID_ARG_TYPE' }),
    new Error('value 3 is not what the driver expected'),
  ])('%s is a defect: to send it again would fail for ever', (error) => {
    expect(translated(error)).toMatchObject({ code: 'BUG', cause: error, details: { sqlState: null } })
  })

  it.each([
    Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }) }),
    new AggregateError([Object.assign(new Error('no'), { code: 'ECONNREFUSED' })], ''),
    Object.assign(new Error('expired'), { code: 'CERT_HAS_EXPIRED' }),
    Object.assign(new Error('write EPROTO'), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' }),
    new Error('Connection terminated unexpectedly'),
    new Error('timeout exceeded when trying to connect'),
    new Error('Client has encountered a connection error and is not queryable'),
    new Error('Cannot use a pool after calling end on the pool'),
    new Error('Query read timeout'),
    { type: 'error' },
  ])('%s is about the way to the database: it is sent again', (error) => {
    expect(translated(error)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: error })
  })

  it('to a request whose text cannot be the cause is about the way, whatever it says', () => {
    for (const error of [new TypeError('no'), new Error('strange'), 'text']) {
      expect(unanswered(error)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: error })
    }
    const refused = said('23505')
    expect(unanswered(refused)).toBe(refused)
  })
})
