// What a chaos run prints: a line every few seconds, and two tables at its end: what happened how often, and how long
// runs that lost their holder waited for what. As Markdown they are what stands in docs/testing.md. If recoveries take longer
// than their goal, the table marks that, and `npm run chaos` fails.

import type { Counts } from './checker.ts'
import { causes, timesByCause, timesWithout, type Recovery } from './recovery.ts'

export interface Report {
  readonly seconds: number
  /** How often each nemesis struck. */
  readonly faults: ReadonlyMap<string, number>
  readonly counts: Counts
  readonly looks: number
  readonly skippedLooks: number
  readonly leaseMs: number
}

export type Format = 'text' | 'markdown'

const mostSlow = 10

/** 99 of 100 recoveries take at most so many leases, without the time that the server was away. */
const goalLeases = 3
/** Of fewer recoveries the slowest hundredth is one alone, and says nothing. */
const fewestJudged = 100

type Table = readonly (readonly string[])[]

export function tablesOf(report: Report, format: Format): string {
  const tables = [countTable(report), recoveryTable(report)]
  if (format === 'markdown') return tables.map(inMarkdown).join('\n\n')
  return [...tables.map(inText), slowest(report.counts.recoveries)].join('\n\n')
}

function countTable({ seconds, faults, counts, looks, skippedLooks }: Report): Table {
  const rows: readonly (readonly [string, string | number])[] = [
    ['What', 'Count'],
    ...[...faults].toSorted(([a], [b]) => a.localeCompare(b)),
    ['faults', total(faults)],
    ['runs', counts.runs],
    ['steps recorded', counts.steps],
    ['signals acknowledged', counts.signals],
    ['effects', counts.effects],
    ['effects repeated', counts.repeatedEffects],
    ['runs taken over', counts.takeovers],
    ['runs paused for drift', counts.drifted],
    ['runs stopped for their crashes', counts.givenUp],
    ['lost', counts.lost],
    ['doubled under a valid lease', counts.doubled],
    ['unknown outcomes', counts.unknown],
    ['looks of the doctor', looks],
    ['looks at a store that was away', skippedLooks],
    ['took', `${seconds.toFixed(0)} s`],
  ]
  return rows.map(([name, value]) => [name, typeof value === 'number' ? value.toLocaleString('en-US') : value])
}

/** All, all by the time that the server was up, and what they waited for: how many, and how long. */
function recoveryTable(report: Pick<Report, 'counts' | 'leaseMs'>): Table {
  const found = report.counts.recoveries
  const mark = missedGoal(found, report.leaseMs) === null ? '' : ' (missed)'
  return [
    ['Recovery', 'Count', 'p50', 'p99', 'Max'],
    measured('all', timesWithout(found)),
    measured(`all, without the time that the server was away${mark}`, timesWithout(found, 'server')),
    ...[...timesByCause(found)].map(([cause, times]) => measured(`part: ${causes[cause]}`, times)),
  ]
}

/** Says by how much recoveries missed their goal; null if they met it, or were too few to judge. */
export function missedGoal(found: readonly Recovery[], leaseMs: number): string | null {
  const goalMs = goalLeases * leaseMs
  const times = timesWithout(found, 'server')
  const p99 = atFraction(times, 0.99)
  if (times.length < fewestJudged || p99 === undefined || p99 <= goalMs) return null
  return `99 of 100 recoveries took up to ${inMs(p99)} without the server's absence, and the goal is ${inMs(goalMs)}`
}

/** The longest, each with what it waited for. */
function slowest(found: readonly Recovery[]): string {
  const longest = found.toSorted((a, b) => b.to - b.from - (a.to - a.from)).slice(0, mostSlow)
  return longest
    .map(({ run, from, to, parts }) => {
      const shares = [...parts].toSorted(([, a], [, b]) => b - a).map(([cause, ms]) => `${cause} ${Math.round(ms)}`)
      return `  ${run} from ${new Date(from).toISOString()} ${Math.round(to - from)} ms: ${shares.join(', ')}`
    })
    .join('\n')
}

function measured(name: string, sorted: readonly number[]): readonly string[] {
  return [name, String(sorted.length), ...[0.5, 0.99, 1].map((fraction) => quantile(sorted, fraction))]
}

function inText([head = [], ...rows]: Table): string {
  const widths = widthsOf([head, ...rows])
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[index] ?? 0) + 3)))
      .join('')
  return [head, ...rows].map((cells) => `  ${line(cells)}`).join('\n')
}

function inMarkdown([head = [], ...rows]: Table): string {
  const widths = widthsOf([head, ...rows])
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, index) => (index === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [head, rule, ...rows].map(line).join('\n')
}

function widthsOf(table: Table): readonly number[] {
  return (table[0] ?? []).map((_, index) => Math.max(3, ...table.map((cells) => (cells[index] ?? '').length)))
}

export function total(faults: ReadonlyMap<string, number>): number {
  return [...faults.values()].reduce((sum, count) => sum + count, 0)
}

function quantile(sorted: readonly number[], fraction: number): string {
  const ms = atFraction(sorted, fraction)
  return ms === undefined ? '–' : inMs(ms)
}

function atFraction(sorted: readonly number[], fraction: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))]
}

function inMs(ms: number): string {
  return `${Math.round(ms).toLocaleString('en-US')} ms`
}

/** 61,000 as 1:01. */
export function clockTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
