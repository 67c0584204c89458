// Which runs a claim takes, and what their rows are then.

import { describe, expect, it } from 'vitest'
import { chooseClaims, claimed, type ClaimRequest } from '../../../../../src/core/rules/claims/claim.ts'
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
  it('passes over what is not due, not asked for, over time, of another key, or held', () => {
    const passed = [
      due('later', { readiness: 'timed', due: now + 7 }),
      due('other', { type: 'b' }),
      due('old', { version: 2 }),
      due('over', { timeoutAt: now }),
      due('unread', { keyId: 'k2' }),
      due('suspect', { readiness: 'isolated' }),
      due('held', { readiness: 'leased', due: null, session: 'x' }),
    ]
    const chosen = chooseClaims([...passed, due('mine')], { ...request, keys: ['k1'] }, now)
    expect(chosen).toMatchObject({ chosen: [{ id: 'mine' }], more: false, nextDue: now + 7 })
  })

  it('says that there is more than its limit, also if that is nothing', () => {
    const runs = [due('c'), due('a'), due('b', { readiness: 'timed', due: now - 1 })]
    expect(chooseClaims(runs, request, now)).toMatchObject({ chosen: [{ id: 'b' }, { id: 'a' }], more: true })
    expect(chooseClaims(runs, { ...request, limit: 0 }, now)).toMatchObject({ chosen: [], more: true })
  })

  it('of suspects takes nothing else, the longest due first whatever its priority', () => {
    const suspects = [
      due('high', { readiness: 'isolated', priority: 9 }),
      due('old', { readiness: 'isolated', due: 1 }),
    ]
    const { chosen } = chooseClaims([...suspects, due('healthy')], { ...request, isolated: true }, now)
    expect(chosen.map(({ id }) => id)).toEqual(['old', 'high'])
  })

  it('counts a crash until its holder commits, but for a suspect, which is counted when it begins', () => {
    const run = due('a', { crashes: 2, token: 4, expiresAt: 5, wakeNames: ['x'] })
    const lease = { status: 'running', readiness: 'leased', due: null, session: 's', token: 5, deadline: now + 50 }
    expect(claimed(run, request, now)).toMatchObject({ ...lease, crashes: 3, expiresAt: null, wakeNames: null })
    expect(claimed(run, { ...request, isolated: true }, now).crashes).toBe(2)
    expect(claimed({ ...run, status: 'cancelling' }, request, now).status).toBe('cancelling')
  })
})
