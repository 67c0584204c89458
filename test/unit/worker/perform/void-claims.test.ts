// Claims of runs that an operator controls while their journals are being read.

import { expect, it } from 'vitest'
import type { Run } from '../../../../src/core/model/run.ts'
import { VoidClaims } from '../../../../src/worker/perform/void-claims.ts'

const unread = (status: Run['status'] = 'running') => [{ run: { id: 'a', status } as Run }]

/** Reads that end when the test says so. */
function reading(claims: VoidClaims, runs = unread()) {
  let settle: { readonly end: () => void; readonly fail: (error: unknown) => void } | undefined
  const work = new Promise<void>((resolve, reject) => void (settle = { end: resolve, fail: reject }))
  return {
    over: claims.whileReading(runs, work),
    end: () => settle?.end(),
    fail: (error: unknown) => settle?.fail(error),
  }
}

it('a run that is controlled while it is read does not begin, and its next claim does', async () => {
  const claims = new VoidClaims()
  claims.controlRequested('a')
  const first = reading(claims)
  expect(claims.isControlled('a')).toBe(false)
  claims.controlRequested('a')
  expect(claims.isControlled('a')).toBe(true)
  first.end()
  await first.over
  expect(claims.isControlled('a')).toBe(false)
})

it('a read that fails leaves nothing behind: the next claim of the run begins', async () => {
  const claims = new VoidClaims()
  const first = reading(claims)
  claims.controlRequested('a')
  first.fail(new Error('gone'))
  await expect(first.over).rejects.toThrow('gone')
  expect(claims.isControlled('a')).toBe(false)
})

it('a run that was claimed anew before its first read ended is still being read then', async () => {
  const claims = new VoidClaims()
  const [first, second] = [reading(claims), reading(claims)]
  first.end()
  await first.over
  claims.controlRequested('a')
  expect(claims.isControlled('a')).toBe(true)
  second.end()
  await second.over
})

it('a run that is being cancelled was claimed because of its control request, and begins', async () => {
  const claims = new VoidClaims()
  const first = reading(claims, unread('cancelling'))
  claims.controlRequested('a')
  expect(claims.isControlled('a')).toBe(false)
  first.end()
  await first.over
})
