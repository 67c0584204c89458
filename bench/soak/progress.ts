// One line while a soak goes on.

import type { Sample } from './sample.ts'
import { clock, inUnit } from './units.ts'

export function progressLine(sample: Sample): string {
  const { seconds, arrived, ended, open, p50Ms, p99Ms, rssBytes, heapBytes, databaseBytes, deadRows } = sample
  const ms = (value: number | null): string => (value === null ? '–' : inUnit(value, 'ms'))
  const parts = [
    clock(seconds).padStart(6),
    `${inUnit(arrived, 'runs/s')} in/s`,
    `${inUnit(ended, 'runs/s')} out/s`,
    `${inUnit(open, 'runs')} open`,
    `p50 ${ms(p50Ms)}`,
    `p99 ${ms(p99Ms)}`,
    `RSS ${inUnit(rssBytes, 'bytes')}`,
    `heap ${inUnit(heapBytes, 'bytes')}`,
    `database ${inUnit(databaseBytes, 'bytes')}`,
    ...(deadRows === null ? [] : [`${inUnit(deadRows, 'rows')} dead`]),
  ]
  return `${parts.join(' · ')}${sample.isChecking ? ' · doctor' : ''}`
}
