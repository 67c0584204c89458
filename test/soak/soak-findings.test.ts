// What a soak finds wrong, and what it must not take for wrong.

import { describe, expect, it } from 'vitest'
import { judge, type Incidents } from '../../bench/soak/findings.ts'
import { soakOf } from './soaks.ts'

const mebibyte = 2 ** 20
const nothing: Incidents = { unended: 0, mishaps: 0, firstMishap: null, broken: null }
const findingsOf = (shape: Parameters<typeof soakOf>[0], incidents = nothing) =>
  judge(soakOf(shape), incidents).findings

describe('a soak at rest', () => {
  it('finds nothing', () => {
    expect(judge(soakOf({ minutes: 30 }), nothing)).toEqual({ findings: [], notes: [] })
  })

  it('finds nothing in tables that grow: ended runs are kept', () => {
    const changed = (share: number) => ({ databaseBytes: share * 1e10, logBytes: share * 1e11, liveRows: share * 1e7 })
    expect(findingsOf({ minutes: 30, changed })).toEqual([])
  })
})

describe('memory', () => {
  it('that grows to the end is a leak', () => {
    const changed = (share: number) => ({ heapBytes: (50 + 40 * share) * mebibyte })
    expect(findingsOf({ minutes: 30, changed })).toEqual([
      expect.stringMatching(/^A leak is suspected: The heap of the worker went from 5\d\.\d MiB .* an hour/),
    ])
  })

  it('that grows outside of the heap is a leak, too', () => {
    const changed = (share: number) => ({ rssBytes: (160 + 100 * share) * mebibyte })
    expect(findingsOf({ minutes: 30, changed })).toEqual([expect.stringContaining('The resident memory of the worker')])
  })

  it('that has come to rest is a cache', () => {
    const changed = (share: number) => ({ heapBytes: (50 + 60 * Math.min(1, share * 3)) * mebibyte })
    expect(findingsOf({ minutes: 30, changed })).toEqual([])
  })

  it('that goes up and down with the collector is not a leak', () => {
    const changed = (share: number) => ({ heapBytes: (50 + 30 * ((share * 17) % 1)) * mebibyte })
    expect(findingsOf({ minutes: 30, changed })).toEqual([])
  })
})

describe('latency', () => {
  it('that doubles drifts', () => {
    const changed = (share: number) => ({ p50Ms: 10 + 40 * share, p99Ms: 60 + 200 * share })
    expect(findingsOf({ minutes: 30, changed })).toEqual([
      expect.stringMatching(/^Latency drifts: its p50 went from/),
      expect.stringMatching(/^Latency drifts: its p99 went from/),
    ])
  })

  it('that rises while the doctor is at work says nothing', () => {
    const changed = (share: number) => {
      const isChecking = (share * 20) % 1 < 0.4
      return { isChecking, ...(isChecking ? { p99Ms: 60 + 900 * share } : {}) }
    }
    expect(findingsOf({ minutes: 30, changed })).toEqual([])
  })

  it('counts if the doctor never rests', () => {
    const changed = (share: number) => ({ isChecking: true, p99Ms: 60 + 900 * share })
    expect(findingsOf({ minutes: 30, changed })).toEqual([expect.stringContaining('its p99')])
  })

  it('of warming up says nothing', () => {
    const changed = (share: number) => (share < 0.09 ? { p99Ms: 1 } : {})
    expect(findingsOf({ minutes: 30, changed })).toEqual([])
  })
})

describe('a backlog', () => {
  it('that grows by more than a second of arrivals is reported', () => {
    const changed = (share: number) => ({ open: 300 + 3_000 * share })
    expect(findingsOf({ minutes: 30, changed })).toEqual([expect.stringMatching(/^The backlog grows/)])
  })
})

describe('what must never happen', () => {
  const violations = [{ name: 'no_lost_wakeup', offenders: ['a', 'b'] }]

  it('reports the shortest soak, whose trends are not judged', () => {
    const visits = [0, 1].map((at) => ({ from: at, to: at + 0.5, violations }))
    const changed = (share: number) => ({ heapBytes: share * 2 ** 40, p99Ms: share * 1e6, open: share * 1e6 })
    const incidents = { unended: 3, mishaps: 2, firstMishap: 'run x has failed', broken: 'The worker ended.' }
    expect(judge(soakOf({ minutes: 1, changed, visits }), incidents)).toEqual({
      findings: [
        'It ended before its time: The worker ended.',
        '2 mishaps; the first: run x has failed',
        '3 runs have not ended after the load had.',
        'The doctor found no_lost_wakeup violated, by a, b.',
      ],
      notes: ['The load lasted 1:00: trends are judged from five minutes on.'],
    })
  })

  it('reports a soak without any sample', () => {
    const { findings } = judge(soakOf({ minutes: 0 }), { ...nothing, broken: 'It broke.' })
    expect(findings).toEqual(['It ended before its time: It broke.'])
  })
})
