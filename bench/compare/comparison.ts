// What has moved since a baseline: a number whose median is further from what it was than its samples are from each other,
// then or now, and by a twentieth at the least, since few samples may agree by chance.

import type { Result } from '../conduct.ts'
import { readable } from '../numbers.ts'
import { renderColumns } from '../table.ts'
import { keyOf, rowsOf, type Baseline, type Row } from './baseline.ts'

export type Change = 'same' | 'better' | 'worse' | 'gone' | 'new'

export interface Compared {
  /** What it was; null if the baseline does not have it. */
  readonly before: Row | null
  /** What it is; null if it is not measured any more. */
  readonly now: Row | null
  /** By how much it may differ by chance. */
  readonly spread: number
  readonly change: Change
}

/** The least spread, as a share of what it was. */
const leastSpread = 0.05

/** Compares results with the rows of a baseline about the same scenarios. */
export function compare({ rows }: Pick<Baseline, 'rows'>, results: readonly Result[]): readonly Compared[] {
  const measured = new Set(results.map(({ scenario }) => scenario))
  const now = new Map(rowsOf(results).map((row) => [keyOf(row), row]))
  const before = rows.filter(({ scenario }) => measured.has(scenario))
  const known = new Set(before.map(keyOf))
  return [
    ...before.map((row) => compareRow(row, now.get(keyOf(row)) ?? null)),
    ...[...now.values()]
      .filter((row) => !known.has(keyOf(row)))
      .map((row): Compared => ({ before: null, now: row, spread: row.high - row.low, change: 'new' })),
  ]
}

function compareRow(before: Row, now: Row | null): Compared {
  if (now === null) return { before, now, spread: before.high - before.low, change: 'gone' }
  const spread = Math.max(before.high - before.low, now.high - now.low, leastSpread * Math.abs(before.value))
  const by = now.value - before.value
  if (Math.abs(by) <= spread) return { before, now, spread, change: 'same' }
  return { before, now, spread, change: by > 0 === (before.better === 'higher') ? 'better' : 'worse' }
}

/** It is not what the baseline says. A number that the baseline does not know yet is no move. */
export function hasMoved({ change }: Pick<Compared, 'change'>): boolean {
  return change === 'better' || change === 'worse' || change === 'gone'
}

/** The scenarios in which something has moved. */
export function movedScenarios(compared: readonly Compared[]): ReadonlySet<string> {
  return new Set(compared.filter(hasMoved).flatMap(({ before, now }) => (before ?? now)?.scenario ?? []))
}

export function renderComparison(compared: readonly Compared[]): string {
  const heads = ['scenario', 'metric', 'baseline', 'now', 'unit', 'moved by', 'spread', 'change']
  const rows = compared.map((one) => {
    const { scenario, case: of, metric, unit } = (one.before ?? one.now) as Row
    const value = (row: Row | null): string => (row === null ? '–' : readable(row.value))
    const title = of === '' ? scenario : `${scenario}: ${of}`
    return [title, metric, value(one.before), value(one.now), unit, movedBy(one), spreadOf(one), one.change]
  })
  const moved = compared.filter(hasMoved).length
  const all = compared.filter(({ before }) => before !== null).length
  const sum =
    moved === 0
      ? `None of ${all} numbers moved by more than its spread.`
      : `${moved} of ${all} numbers moved by more than their spread.`
  return `${renderColumns(heads, rows, new Set([2, 3, 5, 6]))}\n\n${sum}`
}

function movedBy({ before, now }: Compared): string {
  if (before === null || now === null) return ''
  return percent((now.value - before.value) / Math.abs(before.value), true)
}

function spreadOf({ before, spread }: Compared): string {
  return before === null ? '' : `± ${percent(spread / Math.abs(before.value), false)}`
}

function percent(share: number, signed: boolean): string {
  if (!Number.isFinite(share)) return '–'
  const text = `${readable(Math.abs(100 * share))} %`
  return signed ? `${share < 0 ? '−' : '+'}${text}` : text
}
