// Results as an aligned table: medians, the range that they come from, and the goal beside them.

import type { Result } from './conduct.ts'
import { readable } from './numbers.ts'

const heads = ['scenario', 'metric', 'median', 'unit', 'min – max', 'goal']

export function renderTable(results: readonly Result[]): string {
  const rows = results.map((result, index) => {
    const title = result.case === '' ? result.scenario : `${result.scenario}: ${result.case}`
    const before = results[index - 1]
    const isFirst = before?.scenario !== result.scenario || before.case !== result.case
    return [isFirst ? title : '', result.metric, readable(result.value), result.unit, rangeOf(result), goalOf(result)]
  })
  return renderColumns(heads, rows, new Set([2]))
}

/** Cells under their heads; the columns at these places are numbers, and stand to the right. */
export function renderColumns(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  rightAligned: ReadonlySet<number>,
): string {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (rightAligned.has(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd()
  const rule = line(widths.map((width) => '─'.repeat(width)))
  return [line(heads), rule, ...rows.map(line)].join('\n')
}

function rangeOf({ samples }: Result): string {
  return `${readable(Math.min(...samples))} – ${readable(Math.max(...samples))}`
}

function goalOf({ goal, value }: Result): string {
  if (goal === null) return ''
  const isMet = goal.is === 'at least' ? value >= goal.value : value <= goal.value
  return `${goal.is === 'at least' ? '≥' : '≤'} ${readable(goal.value)} ${isMet ? 'met' : 'missed'}`
}
