// What a library throws becomes one of our codes, once, and keeps its cause. The engine retries the one kind and gives up
// a run for the other, so a wrong translation loses work or repeats it for ever.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../../src/core/errors/error.ts'
import { translated } from '../../../../../src/stores/sqlite/driver/sqlite-errors.ts'

const named = (code: string): Error => Object.assign(new Error('it failed'), { code })
const numbered = (errcode: number): Error =>
  Object.assign(new Error('it failed'), { code: 'ERR_SQLITE_ERROR', errcode })

describe('an error of SQLite', () => {
  it.each([
    ['SQLITE_BUSY', 5],
    ['SQLITE_BUSY_SNAPSHOT', 517],
    ['SQLITE_LOCKED', 6],
    ['SQLITE_IOERR_WRITE', 778],
    ['SQLITE_FULL', 13],
    ['SQLITE_CANTOPEN', 14],
  ])('%s is unavailable: the work is kept and sent again', (name, number) => {
    for (const error of [named(name), numbered(number)]) {
      const result = translated(error)
      expect([result.code, result.cause]).toEqual(['STORE_UNAVAILABLE', error])
      expect(result.message).toContain('it failed')
    }
  })

  it.each([
    ['SQLITE_READONLY', 8],
    ['SQLITE_READONLY_DIRECTORY', 1544],
    ['SQLITE_CORRUPT', 11],
    ['SQLITE_NOTADB', 26],
  ])('%s stays until an operator acts: the error says at once what to do', (name, number) => {
    for (const error of [named(name), numbered(number)]) {
      const result = translated(error)
      expect([result.code, result.cause]).toEqual(['STORE_REFUSED', error])
      expect(result.message).toContain('it failed')
    }
  })

  it('about a missing table says how to make it', () => {
    expect(translated(new Error('no such table: runs'))).toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringContaining('holdfast migrate') as string,
    })
  })

  it.each([
    ['SQLITE_TOOBIG', 18],
    ['SQLITE_CONSTRAINT_PRIMARYKEY', 1555],
    ['SQLITE_MISMATCH', 20],
  ])('%s is a rejected entry: it is looked for, and harms no other', (name, number) => {
    for (const error of [named(name), numbered(number)]) expect(translated(error).code).toBe('ENTRY_REJECTED')
  })

  it('by its number alone is known, too', () => {
    expect(translated(Object.assign(new Error('x'), { rawCode: 261 })).code).toBe('STORE_UNAVAILABLE')
  })

  it('that only wrong SQL can cause is a defect, with its cause', () => {
    const error = named('SQLITE_ERROR')
    const result = translated(error)
    expect([result.code, result.cause]).toEqual(['BUG', error])
    expect(translated('not even an error').code).toBe('BUG')
  })

  it.each([
    new RangeError('Invalid string length'),
    Object.assign(new TypeError('Provided value cannot be bound'), { code: 'ERR_INVALID_ARG_TYPE' }),
  ])('that SQLite did not say is a defect: %s', (error) => {
    expect(translated(error)).toMatchObject({ code: 'BUG', cause: error })
  })

  it('about a transaction of the user is unavailable: it will be over', () => {
    const error = new Error('cannot start a transaction within a transaction')
    expect(translated(error).code).toBe('STORE_UNAVAILABLE')
  })

  it('that is ours already is not translated again', () => {
    const error = new HoldfastError('CLOSED', 'closed')
    expect(translated(error)).toBe(error)
  })
})
