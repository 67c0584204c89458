// Comparing a measurement with a baseline: what counts as moved, and what the table says.

import { describe, expect, it } from 'vitest'
import { compare, hasMoved, renderComparison } from '../../bench/compare/comparison.ts'
import { conductComparison } from '../../bench/compare/conduct.ts'
import type { Row } from '../../bench/compare/baseline.ts'
import { median } from '../../bench/numbers.ts'
import type { Result } from '../../bench/conduct.ts'

function rowOf(value: number, more: Partial<Row> = {}): Row {
  const row = { scenario: 'runs', case: '10 at once', metric: 'CPU per run / loop', unit: '×', value }
  return { ...row, better: 'lower', low: value, high: value, ...more }
}

function resultOf(samples: readonly number[], more: Partial<Result> = {}): Result {
  const { scenario, case: of, metric, unit, better } = rowOf(0)
  return { scenario, case: of, metric, unit, better, value: median(samples), samples, goal: null, ...more }
}

function changeOf(row: Row, result: Result): string | undefined {
  return compare({ rows: [row] }, [result])[0]?.change
}

describe('a number', () => {
  it('stays within a twentieth of what it was, however alike its samples are', () => {
    expect(changeOf(rowOf(100), resultOf([105, 105, 105]))).toBe('same')
    expect(changeOf(rowOf(100), resultOf([106, 106, 106]))).toBe('worse')
    expect(changeOf(rowOf(100), resultOf([94, 94, 94]))).toBe('better')
  })

  it('may differ by as much as the samples of the baseline did', () => {
    const wide = rowOf(100, { low: 90, high: 115 })
    expect(changeOf(wide, resultOf([125, 125, 125]))).toBe('same')
    expect(changeOf(wide, resultOf([126, 126, 126]))).toBe('worse')
  })

  it('may differ by as much as its samples do now', () => {
    expect(changeOf(rowOf(100), resultOf([100, 120, 121]))).toBe('same')
    expect(changeOf(rowOf(100), resultOf([110, 130, 131]))).toBe('worse')
  })

  it('of which more is better is worse when it is less', () => {
    const share = { metric: 'engine / ceiling', better: 'higher' } as const
    expect(changeOf(rowOf(80, share), resultOf([60, 60, 60], share))).toBe('worse')
    expect(changeOf(rowOf(80, share), resultOf([90, 90, 90], share))).toBe('better')
  })

  it('that is not measured any more has moved, and one that the baseline does not know has not', () => {
    const compared = compare({ rows: [rowOf(1)] }, [resultOf([1, 1, 1], { metric: 'WAL' })])
    expect(compared.map(({ change }) => change)).toEqual(['gone', 'new'])
    expect(compared.map(hasMoved)).toEqual([true, false])
  })

  it('that depends on the machine is not compared', () => {
    const absolute = resultOf([9, 9, 9], { metric: 'throughput', better: null })
    expect(compare({ rows: [] }, [absolute])).toEqual([])
  })

  it('of a scenario that was not measured is left out', () => {
    expect(compare({ rows: [rowOf(1, { scenario: 'steps' }), rowOf(2)] }, [resultOf([2, 2, 2])])).toHaveLength(1)
  })
})

describe('the table of a comparison', () => {
  it('says what moved, by how much, and how much would have been chance', () => {
    const rows = [rowOf(2), rowOf(80, { metric: 'engine / ceiling', unit: '%', better: 'higher', low: 76, high: 84 })]
    const results = [
      resultOf([2.5, 2.5, 2.5]),
      resultOf([78, 78, 78], { metric: 'engine / ceiling', unit: '%', better: 'higher' }),
    ]
    expect(renderComparison(compare({ rows }, results)).split('\n')).toEqual([
      'scenario          metric              baseline   now  unit  moved by    spread  change',
      '────────────────  ──────────────────  ────────  ────  ────  ────────  ────────  ──────',
      'runs: 10 at once  CPU per run / loop      2.00  2.50  ×      +25.0 %  ± 5.00 %  worse',
      'runs: 10 at once  engine / ceiling        80.0  78.0  %      −2.50 %  ± 10.0 %  same',
      '',
      '1 of 2 numbers moved by more than their spread.',
    ])
  })

  it('says so if nothing moved', () => {
    expect(renderComparison(compare({ rows: [rowOf(2)] }, [resultOf([2, 2, 2])]))).toContain(
      'None of 1 numbers moved by more than its spread.',
    )
  })
})

describe('a comparison', () => {
  const baseline = { rows: [rowOf(100), rowOf(1, { scenario: 'steps' })] }

  /** Gives these samples in turn, and notes what was measured. */
  function measuring(...samples: readonly (readonly number[])[]) {
    const measured: string[] = []
    const left = [...samples]
    const measure = (scenario: string): Promise<readonly Result[]> => {
      measured.push(scenario)
      return Promise.resolve([resultOf(scenario === 'steps' ? [1, 1, 1] : left.shift()!, { scenario })])
    }
    return { measured, measure }
  }

  it('measures what moved once more, and forgives a disturbance', async () => {
    const { measured, measure } = measuring([150, 151, 152], [100, 101, 102])
    const { compared, results } = await conductComparison(baseline, ['runs', 'steps'], measure)
    expect(measured).toEqual(['runs', 'runs', 'steps'])
    expect(compared.filter(hasMoved)).toEqual([])
    expect(results[0]?.samples).toEqual([150, 151, 152, 100, 101, 102])
  })

  it('reports what moved both times', async () => {
    const { compared } = await conductComparison(
      baseline,
      ['runs', 'steps'],
      measuring([150, 151, 152], [149, 150, 151]).measure,
    )
    expect(compared.map(({ change }) => change)).toEqual(['worse', 'same'])
  })
})
