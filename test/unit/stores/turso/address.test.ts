// What a libsql: address says, and that no message repeats what may be secret in it.

import { describe, expect, it } from 'vitest'
import { parseLibsql } from '../../../../src/stores/turso/address.ts'

describe('a libsql: address', () => {
  it.each([
    ['libsql:app.db', { kind: 'file', path: 'app.db' }],
    ['libsql::memory:', { kind: 'file', path: ':memory:' }],
    ['libsql:/var/lib/app.db', { kind: 'file', path: '/var/lib/app.db' }],
    ['libsql://shop-acme.turso.io', { kind: 'server', url: 'https://shop-acme.turso.io', authToken: null }],
    ['libsql://a.io?authToken=t0', { kind: 'server', url: 'https://a.io', authToken: 't0' }],
    ['libsql://a.io/?authToken=t%2B0', { kind: 'server', url: 'https://a.io', authToken: 't+0' }],
    ['libsql://localhost:8080?tls=0', { kind: 'server', url: 'http://localhost:8080', authToken: null }],
    ['libsql://a.io/names/b?tls=1', { kind: 'server', url: 'https://a.io/names/b', authToken: null }],
  ])('%s is understood', (address, expected) => {
    expect(parseLibsql(address)).toEqual(expected)
  })

  it.each([
    ['https://a.io?authToken=hush', 'begins with libsql:'],
    ['libsql:', 'needs a path or a server'],
    ['libsql:///var/lib/app.db?authToken=hush', 'names no server'],
    ['libsql://user:hush@a.io', 'no user or password'],
    ['libsql://a.io?authtoken=hush', 'Did you mean "authToken"'],
    ['libsql://a.io?authTokenhush', 'authToken and tls'],
    ['libsql://a.io?tls=maybe&authToken=hush', '0 or 1'],
    ['libsql://a.io:port?authToken=hush', 'cannot be read'],
  ])('%s is refused, and no secret is repeated', (address, message) => {
    let said = ''
    try {
      parseLibsql(address)
    } catch (error) {
      said = String(error)
      expect(error).toMatchObject({ code: 'INVALID_OPTION' })
      expect((error as Error).cause).toBeUndefined()
    }
    expect(said).toContain(message)
    expect(said).not.toContain('hush')
  })
})
