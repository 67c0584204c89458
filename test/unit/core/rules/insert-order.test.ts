// In which order the runs of a batch are inserted, and which of them have to wait for others.

import { describe, expect, it } from 'vitest'
import type { NewRun } from '../../../../src/core/model/new-run.ts'
import { foremost } from '../../../../src/core/rules/insert-order.ts'

function given(id: string, keys: Partial<Pick<NewRun, 'key' | 'idempotencyKey'>> = {}): NewRun {
  return { id, type: 'order', key: null, keyScope: 'workflow', idempotencyKey: null, ...keys } as NewRun
}

const idsOf = (runs: readonly NewRun[]): readonly string[] => runs.map(({ id }) => id)

describe('runs that are inserted together', () => {
  it('stay as they are if none has a key and their ids ascend', () => {
    const runs = [given('a'), given('b'), given('c')]
    expect(foremost(runs)).toBe(runs)
  })

  it('are put in the order of their ids, in which no two transactions wait for one another', () => {
    expect(idsOf(foremost([given('b'), given('a'), given('c')]))).toEqual(['a', 'b', 'c'])
  })

  it('come after those with keys, also if their ids ascend', () => {
    const runs = [given('a'), given('b', { idempotencyKey: 'i' }), given('c', { key: 'k' })]
    expect(idsOf(foremost(runs))).toEqual(['c', 'b', 'a'])
  })

  it('wait for the first of the same id, or of the same key', () => {
    expect(idsOf(foremost([given('a'), given('a'), given('b')]))).toEqual(['a', 'b'])
    expect(idsOf(foremost([given('a', { key: 'k' }), given('b', { key: 'k' })]))).toEqual(['a'])
    expect(idsOf(foremost([given('a', { idempotencyKey: 'i' }), given('b', { idempotencyKey: 'i' })]))).toEqual(['a'])
  })
})
