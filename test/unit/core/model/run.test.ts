// The status machine, pair by pair, and who holds a run.

import { describe, expect, it } from 'vitest'
import { holds, isTerminal, mayMove, runStatuses, type RunStatus } from '../../../../src/core/model/run.ts'

const columns: RunStatus[] = [
  'pending',
  'running',
  'waiting',
  'paused',
  'cancelling',
  'succeeded',
  'failed',
  'cancelled',
]

// Rows are where a run is, columns in the order above are where it may go.
const table: Record<RunStatus, string> = {
  pending: '. x . x x . x x',
  running: 'x . x x x x x x',
  waiting: 'x x . x x x x x',
  paused: 'x . . . x . . x',
  cancelling: '. . . . x . . x',
  succeeded: '. . . . . . . .',
  failed: 'x . . . . . . .',
  cancelled: '. . . . . . . .',
}

const pairs = columns.flatMap((from) =>
  columns.map((to, index) => ({ from, to, legal: table[from][index * 2] === 'x' })),
)

describe('the status machine', () => {
  it('WC-E8 has these eight statuses, the last three of them terminal', () => {
    expect(runStatuses).toEqual(columns)
    expect(columns.filter(isTerminal)).toEqual(['succeeded', 'failed', 'cancelled'])
  })

  it.each(pairs)('$from → $to: $legal', ({ from, to, legal }) => {
    expect(mayMove(from, to)).toBe(legal)
  })

  it('WC-E8 nothing leaves a terminal status, but for the retry of a failed run', () => {
    const ways = columns.filter(isTerminal).map((from) => [from, columns.filter((to) => mayMove(from, to))])
    expect(Object.fromEntries(ways)).toEqual({ succeeded: [], failed: ['pending'], cancelled: [] })
  })

  it('every live status can still reach an end', () => {
    const endsFrom = (from: RunStatus, seen: readonly RunStatus[] = []): boolean =>
      isTerminal(from) || columns.some((to) => mayMove(from, to) && !seen.includes(to) && endsFrom(to, [...seen, from]))
    for (const from of columns) expect(endsFrom(from)).toBe(true)
  })

  it('no way leads back from a cancellation', () => {
    expect(columns.filter((to) => mayMove('cancelling', to))).toEqual(['cancelling', 'cancelled'])
  })
})

describe('holds', () => {
  const lease = { session: 's1', token: 3 }

  it('only while the run is running or cancelling', () => {
    const held = columns.filter((status) => holds({ status, session: 's1', token: 3 }, lease))
    expect(held).toEqual(['running', 'cancelling'])
  })

  it('a stale token, another session and nobody hold nothing', () => {
    expect(holds({ status: 'running', session: 's1', token: 4 }, lease)).toBe(false)
    expect(holds({ status: 'running', session: 's1', token: 2 }, lease)).toBe(false)
    expect(holds({ status: 'running', session: 's2', token: 3 }, lease)).toBe(false)
    expect(holds({ status: 'running', session: null, token: 3 }, lease)).toBe(false)
  })
})
