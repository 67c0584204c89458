// Soaks that never took place: samples at rest, with whatever is to be wrong with them.

import type { Sample, Setting, Soak } from '../../bench/soak/sample.ts'

const mebibyte = 2 ** 20

const setting: Setting = {
  machine: { cores: 2, memoryGiB: 8, node: 'v20.19.0', platform: 'linux x64' },
  store: 'postgres',
  capacity: 1_000,
  share: 0.7,
  rate: 700,
}

const atRest: Omit<Sample, 'seconds'> = {
  arrived: 700,
  ended: 700,
  open: 300,
  p50Ms: 10,
  p99Ms: 60,
  longestMs: 120,
  lateMs: 1,
  rssBytes: 160 * mebibyte,
  heapBytes: 50 * mebibyte,
  cores: 0.5,
  lagMs: 4,
  databaseBytes: 900 * mebibyte,
  logBytes: 2_000 * mebibyte,
  liveRows: 1_000_000,
  deadRows: 20_000,
  vacuums: 3,
  isChecking: false,
}

interface Shape {
  readonly minutes: number
  /** What is other than at rest, by the share of the time that has gone by. */
  readonly changed?: (share: number) => Partial<Sample>
  readonly visits?: Soak['visits']
  readonly store?: Setting['store']
}

/** One sample every five seconds. */
export function soakOf({ minutes, changed = () => ({}), visits = [], store = 'postgres' }: Shape): Soak {
  const count = Math.round(minutes * 12)
  const samples = Array.from({ length: count }, (_, index) => {
    const seconds = (index + 1) * 5
    return { ...atRest, seconds, ...changed(seconds / (count * 5)) }
  })
  return { setting: { ...setting, store }, samples, visits }
}
