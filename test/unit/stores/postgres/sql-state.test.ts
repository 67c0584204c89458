// What Postgres says becomes one of our codes, once, and keeps its cause. The engine retries the one kind and gives up a run
// for the other, so a wrong translation loses work or repeats it for ever.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/error.ts'
import {
  isStrangeToNames,
  isTransient,
  isUniqueViolation,
  sqlStateOf,
  translated,
} from '../../../../src/stores/postgres/sql-state.ts'

const said = (code: string): Error => Object.assign(new Error('it failed'), { code })

describe('an error of Postgres', () => {
  it.each(['40001', '40P01', '55P03'])('%s says that others were in the way: at once again', (state) => {
    expect(isTransient(state)).toBe(true)
    expect(translated(said(state)).code).toBe('STORE_UNAVAILABLE')
  })

  it.each(
    (
      '57P01 57P02 57P03 08000 08003 08006 08P01 53300 25006 57014 53100 53200 53000 58030 XX000 XX001 55006 ' +
      '28000 28P01 3D000 3F000 42501 42P01 42703'
    ).split(' '),
  )('%s is unavailable: the work is kept and sent again, but not at once', (state) => {
    const error = said(state)
    const told = translated(error)
    expect(told).toMatchObject({ code: 'STORE_UNAVAILABLE', cause: error, details: { sqlState: state } })
    expect(told.message).toContain('it failed')
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
    expect(isStrangeToNames(state)).toBe(true)
    expect(translated(said(state)).code).toBe('STORE_UNAVAILABLE')
  })

  it('of a unique index is known, and no other', () => {
    expect(isUniqueViolation('23505')).toBe(true)
    expect(isUniqueViolation('23514')).toBe(false)
    expect(isUniqueViolation(undefined)).toBe(false)
  })
})

describe('an error that is not of Postgres', () => {
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
