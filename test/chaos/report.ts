// What a chaos run tells people: a line every few seconds, and a table at its end.

import type { Counts } from './checker.ts'

export interface Report {
  readonly seconds: number
  /** How often each nemesis struck. */
  readonly faults: ReadonlyMap<string, number>
  readonly counts: Counts
  readonly looks: number
  readonly skippedLooks: number
}

export function tableOf({ seconds, faults, counts, looks, skippedLooks }: Report): string {
  const rows: readonly (readonly [string, string | number])[] = [
    ...[...faults].toSorted(([a], [b]) => a.localeCompare(b)),
    ['faults', total(faults)],
    ['runs', counts.runs],
    ['steps recorded', counts.steps],
    ['signals acknowledged', counts.signals],
    ['effects', counts.effects],
    ['effects repeated', counts.repeatedEffects],
    ['runs taken over', counts.takeovers],
    ['runs paused for drift', counts.drifted],
    ['runs given up after five crashes', counts.givenUp],
    ['lost', counts.lost],
    ['doubled under a valid lease', counts.doubled],
    ['unknown outcomes', counts.unknown],
    ['recovery p50', quantile(counts.recoveryMs, 0.5)],
    ['recovery p99', quantile(counts.recoveryMs, 0.99)],
    ['recovery max', quantile(counts.recoveryMs, 1)],
    ['looks of the doctor', looks],
    ['looks at a store that was away', skippedLooks],
    ['took', `${seconds.toFixed(0)} s`],
  ]
  const width = Math.max(...rows.map(([name]) => name.length)) + 2
  return rows.map(([name, value]) => `  ${name.padEnd(width)}${String(value).padStart(10)}`).join('\n')
}

export function total(faults: ReadonlyMap<string, number>): number {
  return [...faults.values()].reduce((sum, count) => sum + count, 0)
}

function quantile(sorted: readonly number[], fraction: number): string {
  const ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))]
  return ms === undefined ? '–' : `${ms} ms`
}

/** 61,000 as 1:01. */
export function clockTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
