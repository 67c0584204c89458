// A comparison: scenarios are measured, and those in which something moved are measured once more. What counts is what all
// samples together say: a neighbour on the machine may disturb one of the two.

import { median } from '../numbers.ts'
import type { Result } from '../conduct.ts'
import { keyOf, type Baseline } from './baseline.ts'
import { compare, movedScenarios, type Compared } from './comparison.ts'

/** Measures a scenario. */
export type Measure = (scenario: string) => Promise<readonly Result[]>

export interface Comparison {
  readonly results: readonly Result[]
  readonly compared: readonly Compared[]
}

export async function conductComparison(
  baseline: Pick<Baseline, 'rows'>,
  scenarios: readonly string[],
  measure: Measure,
): Promise<Comparison> {
  const results: Result[] = []
  for (const scenario of scenarios) {
    const first = await measure(scenario)
    const hasMoved = movedScenarios(compare(baseline, first)).size > 0
    results.push(...(hasMoved ? together(first, await measure(scenario)) : first))
  }
  return { results, compared: compare(baseline, results) }
}

/** The samples of both, as if they were one measurement. */
function together(first: readonly Result[], second: readonly Result[]): readonly Result[] {
  const again = new Map(second.map((result) => [keyOf(result), result]))
  return first.map((result) => {
    const samples = [...result.samples, ...(again.get(keyOf(result))?.samples ?? [])]
    return { ...result, samples, value: median(samples) }
  })
}
