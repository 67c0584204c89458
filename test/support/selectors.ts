// What random claims and rescues ask for.

import type { ClaimSelector, RescueRequest } from '../../src/store.ts'
import type { Chances } from './chances.ts'

/** The same lists every time: a store may know a list of selectors again. */
export const selectorLists: readonly (readonly ClaimSelector[])[] = [
  [
    { type: 'billing.charge', version: 1, leaseMs: 400 },
    { type: 'billing.charge', version: 2 },
    { type: 'billing', version: 1, leaseMs: null },
    { type: 'ship', version: 1 },
  ],
  [{ type: 'billing.charge', version: 1 }],
  [
    { type: 'ship', version: 1, leaseMs: 100 },
    { type: 'billing', version: 1 },
    { type: 'ship', version: 1, leaseMs: 900 },
  ],
  [{ type: 'nobody', version: 1 }],
]

const failures = { crashed: '"crashed"', 'timed-out': '"timed out"', expired: '"expired"' }
const workflows = [
  { type: 'billing.charge', version: 1, maxCrashes: 4, onCrashes: 'fail' },
  { type: 'ship', version: 1, maxCrashes: null, onCrashes: 'fail' },
  { type: 'billing', version: 1, maxCrashes: 4, onCrashes: 'pause' },
] as const

export function rescueRequest(chances: Chances): RescueRequest {
  const request = { limit: chances.pick([1, 2, 3, 1_000]), maxCrashes: chances.pick([2, 3, 3]), failures }
  return chances.oneIn(2) ? { ...request, workflows } : request
}
