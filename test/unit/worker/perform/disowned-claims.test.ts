// Claims that were given back before their runs arrived.

import { expect, it } from 'vitest'
import { DisownedClaims } from '../../../../src/worker/perform/disowned-claims.ts'

it('a claim that was given back is void once, and only under its token', () => {
  const disowned = new DisownedClaims()
  disowned.add('s', 'a', 2)
  expect([disowned.take('a', 1), disowned.take('a', 2), disowned.take('a', 2)]).toEqual([false, true, false])
})

it('claims whose answers never come do not pile up: not beyond a bound, and not beyond their session', () => {
  const disowned = new DisownedClaims()
  for (let token = 0; token < 5_000; token += 1) disowned.add('s', 'a', token)
  expect(disowned.size).toBe(1_000)
  expect([disowned.take('a', 3_999), disowned.take('a', 4_999)]).toEqual([false, true])
  disowned.add('next', 'a', 1)
  expect(disowned.size).toBe(1)
})
