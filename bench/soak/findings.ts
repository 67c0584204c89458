// What a soak has found, in words. Whatever must never happen counts at any length: an invariant that does not hold, a run
// that ended otherwise than it had to, one that did not end, a process that died. A trend counts only from five minutes on:
// before that, code is still being compiled and caches fill.
//
// A trend is judged by the first quarter beside the last, after a tenth of the time for warming up. Samples during which the
// doctor was at work say nothing about latency: he reads everything, and there is ever more of it.

import { seriesOf, type Measure, type Sample, type Soak } from './sample.ts'
import { clock, inUnit } from './units.ts'
import { quartersOf, risePerHour, type Point, type Quarters } from './trend.ts'

/** What happened that no sample shows. */
export interface Incidents {
  /** Runs that had not ended when everything else had. */
  readonly unended: number
  /** Runs that ended otherwise than they had to, and what could not be started or sent: how many, and the first. */
  readonly mishaps: number
  readonly firstMishap: string | null
  /** Why it ended before its time; null if it did not, or was asked to. */
  readonly broken: string | null
}

export interface SoakFindings {
  /** What is wrong; empty if nothing is. */
  readonly findings: readonly string[]
  /** What was not judged, and why. */
  readonly notes: readonly string[]
}

/** From here on trends are judged. */
const shortestTrendSeconds = 290

const mebibyte = 2 ** 20

export function judge(soak: Soak, incidents: Incidents): SoakFindings {
  const { samples } = soak
  const findings = [...incidentsIn(incidents), ...violationsIn(soak)]
  const seconds = samples.at(-1)?.seconds ?? 0
  if (seconds < shortestTrendSeconds) {
    const note = `The load lasted ${clock(seconds)}: trends are judged from five minutes on.`
    return { findings, notes: [note] }
  }
  const warm = samples.filter((sample) => sample.seconds >= seconds / 10)
  const away = warm.filter(({ isChecking }) => !isChecking)
  // Where the doctor hardly ever rests, he belongs to the load.
  const undisturbed = away.length >= warm.length / 3 ? away : warm
  const trends = [
    leakIn(warm, 'heapBytes', 'The heap of the worker'),
    leakIn(warm, 'rssBytes', 'The resident memory of the worker'),
    driftIn(undisturbed, 'p50Ms', { atLeastMs: 10 }),
    driftIn(undisturbed, 'p99Ms', { atLeastMs: 50 }),
    backlogIn(soak, warm),
  ]
  return { findings: [...findings, ...trends.filter((trend) => trend !== null)], notes: [] }
}

function incidentsIn({ unended, mishaps, firstMishap, broken }: Incidents): readonly string[] {
  const findings: string[] = []
  if (broken !== null) findings.push(`It ended before its time: ${broken}`)
  if (mishaps > 0) findings.push(`${inUnit(mishaps, 'runs')} mishaps; the first: ${firstMishap}`)
  if (unended > 0) findings.push(`${inUnit(unended, 'runs')} runs have not ended after the load had.`)
  return findings
}

function violationsIn({ visits }: Soak): readonly string[] {
  const found = new Map<string, readonly string[]>()
  for (const { violations } of visits) {
    for (const { name, offenders } of violations) if (!found.has(name)) found.set(name, offenders)
  }
  return Array.from(found, ([name, offenders]) => `The doctor found ${name} violated, by ${offenders.join(', ')}.`)
}

/** A leak goes on: what has come to rest in the second half was a cache that filled. */
function leakIn(samples: readonly Sample[], measure: Measure, what: string): string | null {
  const points = seriesOf(samples, measure)
  const quarters = quartersOf(points)
  const whole = risePerHour(points)
  const late = risePerHour(secondHalf(points))
  if (quarters === null || whole === null || late === null) return null
  const growth = quarters.last - quarters.first
  if (growth < Math.max(16 * mebibyte, 0.15 * quarters.first) || late < whole / 2) return null
  return `A leak is suspected: ${what} ${fromTo(quarters, 'bytes')}, ${inUnit(whole, 'bytes')} an hour, and goes on.`
}

function driftIn(
  samples: readonly Sample[],
  measure: 'p50Ms' | 'p99Ms',
  { atLeastMs }: { readonly atLeastMs: number },
): string | null {
  const quarters = quartersOf(seriesOf(samples, measure))
  if (quarters === null || quarters.last < 2 * quarters.first || quarters.last < quarters.first + atLeastMs) return null
  return `Latency drifts: its ${measure.slice(0, 3)} ${fromTo(quarters, 'ms')}.`
}

/** More than a second's worth of arrivals on top: it is not chance that they came together. */
function backlogIn({ setting: { rate } }: Soak, samples: readonly Sample[]): string | null {
  const quarters = quartersOf(seriesOf(samples, 'open'))
  if (quarters === null || quarters.last < 1.5 * quarters.first || quarters.last < quarters.first + rate) return null
  return `The backlog grows: the number of open runs ${fromTo(quarters, 'runs')}.`
}

function fromTo({ first, last }: Quarters, unit: 'bytes' | 'ms' | 'runs'): string {
  return `went from ${inUnit(first, unit)} in the first quarter to ${inUnit(last, unit)} in the last`
}

function secondHalf(points: readonly Point[]): readonly Point[] {
  const begin = points[0]?.seconds ?? 0
  const end = points.at(-1)?.seconds ?? 0
  return points.filter(({ seconds }) => seconds >= (begin + end) / 2)
}
