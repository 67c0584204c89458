// What becomes of a number over time: a straight line through all of it, and its beginning beside its end.

import { median } from '../numbers.ts'

export interface Point {
  readonly seconds: number
  readonly value: number
}

/** By how much the line through the points rises in an hour, by least squares; null where no line can be drawn. */
export function risePerHour(points: readonly Point[]): number | null {
  const { length } = points
  if (length < 2) return null
  const meanTime = points.reduce((sum, { seconds }) => sum + seconds, 0) / length
  const meanValue = points.reduce((sum, { value }) => sum + value, 0) / length
  let spread = 0
  let together = 0
  for (const { seconds, value } of points) {
    spread += (seconds - meanTime) ** 2
    together += (seconds - meanTime) * (value - meanValue)
  }
  return spread === 0 ? null : (together / spread) * 3_600
}

export interface Quarters {
  readonly first: number
  readonly last: number
}

/** The median of the first quarter of the points, by time, and that of the last; null if one of them is empty. */
export function quartersOf(points: readonly Point[]): Quarters | null {
  const begin = points[0]?.seconds ?? 0
  const end = points.at(-1)?.seconds ?? 0
  const quarter = (end - begin) / 4
  if (quarter === 0) return null
  const medianOf = (isIn: (seconds: number) => boolean): number =>
    median(points.filter(({ seconds }) => isIn(seconds)).map(({ value }) => value))
  return {
    first: medianOf((seconds) => seconds <= begin + quarter),
    last: medianOf((seconds) => seconds >= end - quarter),
  }
}
