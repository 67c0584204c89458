// Which runs a claim may take, and what it writes to them.

import { describe, expect, it } from 'vitest'
import { claimColumns, isClaimable, type ClaimRequest } from '../../../../../src/core/rules/claims/claim.ts'
import type { Run } from '../../../../../src/core/model/run.ts'
import { newRun } from '../../model/new-run.ts'

const now = 1_000
const request: ClaimRequest = { session: 's', selectors: [{ type: 'a', version: 1, leaseMs: 50 }], limit: 2 }

function due(id: string, changes: Partial<Run> = {}): Run {
  return newRun({
    id,
    type: 'a',
    version: 1,
    status: 'pending',
    readiness: 'ready',
    due: now,
    session: null,
    ...changes,
  })
}

describe('a claim', () => {
  it('passes over what is over time, or of another key', () => {
    const keyed = { ...request, keys: ['k1'] }
    expect(isClaimable(due('mine'), keyed, now)).toBe(true)
    expect(isClaimable(due('read', { keyId: 'k1' }), keyed, now)).toBe(true)
    expect(isClaimable(due('unread', { keyId: 'k2' }), keyed, now)).toBe(false)
    expect(isClaimable(due('unread', { keyId: 'k2' }), request, now)).toBe(true)
    expect(isClaimable(due('over', { timeoutAt: now }), request, now)).toBe(false)
    expect(isClaimable(due('late', { expiresAt: now }), request, now)).toBe(false)
  })

  it('counts a crash until its holder commits, but for a suspect, which is counted when it begins', () => {
    const run = due('a', { crashes: 2, token: 4, expiresAt: 5, wakeNames: ['x'] })
    const lease = { status: 'running', readiness: 'leased', due: null, session: 's', token: 5, deadline: now + 50 }
    expect(claimColumns(run, request, now)).toMatchObject({ ...lease, crashes: 3, expiresAt: null, wakeNames: null })
    expect(claimColumns(run, { ...request, isolated: true }, now).crashes).toBe(2)
    expect(claimColumns(due('a', { version: 2 }), request, now).deadline).toBeNull()
    expect(claimColumns({ ...run, status: 'cancelling' }, request, now).status).toBe('cancelling')
  })
})
