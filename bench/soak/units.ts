// Numbers as people read them, by what they count.

import { readable } from '../numbers.ts'

export type Unit = 'runs' | 'runs/s' | 'ms' | 'bytes' | 'rows' | 'cores' | 'times'

const steps: readonly (readonly [number, string])[] = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
]

/** With its unit where the number alone would not be clear. */
export function inUnit(value: number, unit: Unit): string {
  switch (unit) {
    case 'bytes': {
      const [size, name] = steps.find(([size]) => Math.abs(value) >= size) ?? [1, 'B']
      return `${readable(value / size)} ${name}`
    }
    case 'ms':
      return Math.abs(value) >= 10_000 ? `${readable(value / 1_000)} s` : `${readable(value)} ms`
    case 'cores':
      return value.toFixed(2)
    case 'runs':
    case 'rows':
    case 'times':
      return Math.round(value).toLocaleString('en-US')
    case 'runs/s':
      return readable(value)
  }
}

/** The same for a round number: without zeros behind the point, and without a unit if it is 0. */
export function roundInUnit(value: number, unit: Unit): string {
  return value === 0 ? '0' : inUnit(value, unit).replace(/\.0+(?=\D|$)/, '')
}

/** Minutes and seconds. */
export function clock(seconds: number): string {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}
