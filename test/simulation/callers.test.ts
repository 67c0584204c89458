import { expect, it } from 'vitest'
import { newRun } from '../unit/core/model/new-run.ts'
import { callerOf } from './callers.ts'

it('of two leases of one run in a request to release, the one that the run has is the caller', () => {
  const run = newRun({ status: 'running', session: 's', token: 3 })
  const request = [2, 3].map((token) => ({ runId: run.id, session: 's', token }))
  expect(callerOf('release', request, run.id, run)).toMatchObject({ session: 's', token: 3 })
  expect(callerOf('release', request.slice(0, 1), run.id, run)).toEqual({ session: null })
})
