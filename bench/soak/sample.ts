// What is looked at every few seconds, and what the doctor found now and then: all that a soak leaves behind.

import type { Machine } from '../report.ts'
import type { StoreKind } from '../stores.ts'
import type { Point } from './trend.ts'

/** How things stood at one time; what is counted, since the sample before. */
export interface Sample {
  /** Since the load began. */
  readonly seconds: number
  /** Runs per second. */
  readonly arrived: number
  readonly ended: number
  /** Runs that were begun and have not ended. */
  readonly open: number
  /**
   * From when a run was to arrive to its end, without the time that it was to wait; null if none ended. The longest belongs
   * to the same runs.
   */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly longestMs: number | null
  /** By how much the load itself was late, at most: how much of the latency may be its own. */
  readonly lateMs: number
  /** Of the process that performs the runs. Its heap at the lowest, which is nearest to what it holds on to. */
  readonly rssBytes: number
  readonly heapBytes: number
  /** How many cores it kept busy. */
  readonly cores: number
  /** How long its event loop kept others waiting: 99 times of 100, not longer. */
  readonly lagMs: number
  /** All tables with their indexes, or the file. */
  readonly databaseBytes: number
  /** Written to the write-ahead log since the load began; on SQLite, how large that file is now. */
  readonly logBytes: number
  /** Rows as Postgres estimates them, those that wait for a vacuum, and how often that came; null on SQLite. */
  readonly liveRows: number | null
  readonly deadRows: number | null
  readonly vacuums: number | null
  /** The doctor was at work meanwhile, which takes its part of the machine. */
  readonly isChecking: boolean
}

/** One look of the doctor at everything. */
export interface Visit {
  /** Since the load began, in seconds. */
  readonly from: number
  readonly to: number
  /** Each invariant that did not hold, with some of the runs that broke it. */
  readonly violations: readonly { readonly name: string; readonly offenders: readonly string[] }[]
}

/** What was soaked. */
export interface Setting {
  readonly machine: Machine
  readonly store: StoreKind
  /** Runs per second that a closed loop reached. */
  readonly capacity: number
  readonly share: number
  /** Runs per second that arrive. */
  readonly rate: number
}

export interface Soak {
  readonly setting: Setting
  readonly samples: readonly Sample[]
  readonly visits: readonly Visit[]
}

/** Those fields of a sample that are numbers. */
export type Measure = {
  [Name in keyof Sample]: Sample[Name] extends number | null ? Name : never
}[keyof Sample]

/** One measure over time, without the samples that have none. */
export function seriesOf(samples: readonly Sample[], measure: Measure): readonly Point[] {
  return samples.flatMap((sample) => {
    const value = sample[measure]
    return value === null ? [] : [{ seconds: sample.seconds, value }]
  })
}
