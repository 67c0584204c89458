// The end of a soak in the terminal: each measure as a sparkline, its first quarter beside its last, and by how much it rises in
// an hour; then every kind of run, the tables, and the doctor.

import { readable } from '../numbers.ts'
import type { TableSize } from './database.ts'
import type { KindTimes } from './load.ts'
import { seriesOf, type Measure, type Soak, type Visit } from './sample.ts'
import { sparkline } from './sparkline.ts'
import { inUnit, type Unit } from './units.ts'
import { quartersOf, risePerHour } from './trend.ts'

const measures: readonly (readonly [Measure, string, Unit])[] = [
  ['arrived', 'arrived', 'runs/s'],
  ['ended', 'ended', 'runs/s'],
  ['open', 'open runs', 'runs'],
  ['p50Ms', 'latency p50', 'ms'],
  ['p99Ms', 'latency p99', 'ms'],
  ['rssBytes', 'worker RSS', 'bytes'],
  ['heapBytes', 'worker heap', 'bytes'],
  ['cores', 'worker cores', 'cores'],
  ['lagMs', 'event loop p99', 'ms'],
  ['lateMs', 'load late by', 'ms'],
  ['databaseBytes', 'database', 'bytes'],
  ['logBytes', 'write-ahead log', 'bytes'],
  ['liveRows', 'live rows', 'rows'],
  ['deadRows', 'dead rows', 'rows'],
  ['vacuums', 'vacuums', 'times'],
]

const sparks = 48

export interface Outcome {
  readonly soak: Soak
  readonly kinds: readonly KindTimes[]
  readonly tables: readonly TableSize[]
}

export function renderSummary({ soak, kinds, tables }: Outcome): string {
  const parts = [renderMeasures(soak), renderKinds(kinds), renderTables(tables), renderVisits(soak.visits)]
  return parts.filter((part) => part !== '').join('\n\n')
}

function renderMeasures({ samples }: Soak): string {
  const rows = measures.flatMap(([measure, name, unit]) => {
    const points = seriesOf(samples, measure)
    const quarters = quartersOf(points)
    if (quarters === null) return []
    const { first, last } = quarters
    const rise = risePerHour(points)
    return [
      [
        name,
        inUnit(first, unit),
        inUnit(last, unit),
        first === 0 ? '' : `${signed((last / first - 1) * 100, (percent) => percent.toFixed(0))} %`,
        rise === null ? '' : signed(rise, (value) => inUnit(value, unit)),
        sparkline(
          points.map(({ value }) => value),
          sparks,
        ),
      ],
    ]
  })
  return rows.length === 0 ? '' : aligned(['', 'first quarter', 'last quarter', 'change', 'per hour', ''], rows)
}

function renderKinds(kinds: readonly KindTimes[]): string {
  const times = (value: number | null): string => (value === null ? '' : inUnit(value, 'ms'))
  const rows = kinds.map(({ name, about, ended, p50Ms, p99Ms, longestMs }) => [
    name,
    inUnit(ended, 'runs'),
    times(p50Ms),
    times(p99Ms),
    times(longestMs),
    about,
  ])
  return aligned(['kind of run', 'ended', 'p50', 'p99', 'longest', ''], rows)
}

function renderTables(tables: readonly TableSize[]): string {
  if (tables.length === 0) return ''
  const rows = tables.map(({ name, bytes, liveRows, deadRows, vacuums }) => [
    name,
    inUnit(bytes, 'bytes'),
    inUnit(liveRows, 'rows'),
    inUnit(deadRows, 'rows'),
    inUnit(vacuums, 'times'),
  ])
  return `${aligned(['table', 'size', 'live rows', 'dead rows', 'vacuums'], rows)}\n${onlyGrow}`
}

const onlyGrow = 'Runs that have ended are kept for ever, so the tables only grow.'

function renderVisits(visits: readonly Visit[]): string {
  const last = visits.at(-1)
  if (last === undefined) return 'The doctor came to no end.'
  const took = ({ from, to }: Visit): string => `${readable(to - from)} s`
  const withFindings = visits.filter(({ violations }) => violations.length > 0).length
  return (
    `The doctor read everything ${visits.length} times, the last time in ${took(last)}, ` +
    `and found ${withFindings === 0 ? 'nothing wrong' : `something wrong ${withFindings} times`}.`
  )
}

function signed(value: number, text: (value: number) => string): string {
  return `${value < 0 ? '−' : '+'}${text(Math.abs(value))}`
}

/** The first column and the last to the left, numbers to the right. */
function aligned(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]!.length)))
  const isText = (column: number): boolean => column === 0 || (column === heads.length - 1 && heads[column] === '')
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (isText(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd()
  return [line(heads), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n')
}
