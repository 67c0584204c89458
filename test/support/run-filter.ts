// What people look for: one or two things at a time, some of which nothing has.

import type { RunFilter } from '../../src/store.ts'
import type { Chances } from './chances.ts'

/** The same lists every time. */
export const kinds = [
  { type: 'billing.charge', version: 1 },
  { type: 'billing.charge', version: 2 },
  { type: 'billing', version: 1 },
  { type: 'ship', version: 1 },
  { type: 'ship/label', version: 1 },
]
export const keys = ['k1', 'k2', 'k3']
export const idempotencyKeys = ['i1', 'i2', 'i3', 'i4']
export const tags = ['eu', 'EU', 'blue']

/** `ids` are those of runs, or of nobody. */
export function runFilter(chances: Chances, ids: readonly string[], now: number): RunFilter {
  const parentId = ids[0] ?? 'nobody'
  const members: readonly RunFilter[] = [
    { ids },
    { types: chances.some([...kinds.map(({ type }) => type), 'SHIP'], 2) },
    { typePrefix: chances.pick(['billing', 'billing.', 'BILLING', 'b_lling', '%', '']) },
    { statuses: chances.some(['pending', 'running', 'waiting', 'paused', 'failed', 'cancelled'], 2) },
    { key: chances.pick([...keys, 'K1']) },
    { idempotencyKey: chances.pick(idempotencyKeys) },
    { tag: chances.pick([...tags, 'none']) },
    { version: chances.pick([1, 2, 3]) },
    { parentId },
    { createdFrom: now - chances.below(2_000) },
    { createdBefore: now - chances.below(2_000) },
    { deleted: chances.oneIn(2) },
    {},
  ]
  const filter = chances.pick(members)
  return chances.oneIn(3) ? { ...chances.pick(members), ...filter } : filter
}
