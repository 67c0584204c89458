// From numbers to places in a picture, with ticks at numbers that people like.

export interface Scale {
  /** The place of a value; one that lies beyond an end is put there. */
  readonly place: (value: number) => number
  readonly ticks: readonly number[]
}

/** Where the first value of a scale lies, and where the last. */
export type Span = readonly [from: number, to: number]

/** From 0 to a round number that is not below the greatest. */
export function linearScale(values: readonly number[], span: Span, count = 3): Scale {
  const step = roundStep(Math.max(0, ...values) / count)
  const top = step * Math.max(1, Math.ceil(Math.max(0, ...values) / step - 1e-9))
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step)
  return { ticks, place: (value) => between(span, value / top) }
}

/** As `linearScale`, but by powers of two, for bytes. */
export function binaryScale(values: readonly number[], span: Span, count = 3): Scale {
  const most = Math.max(1, ...values)
  const unit = 1_024 ** Math.floor(Math.log(most) / Math.log(1_024))
  const { ticks, place } = linearScale(
    values.map((value) => value / unit),
    span,
    count,
  )
  return { ticks: ticks.map((tick) => tick * unit), place: (value) => place(value / unit) }
}

/** Powers of ten around all values above 0; the others lie at its beginning. */
export function logScale(values: readonly number[], span: Span): Scale {
  const positive = values.filter((value) => value > 0)
  const low = positive.length === 0 ? 0 : Math.floor(Math.log10(Math.min(...positive)) + 1e-9)
  const high = Math.max(low + 1, positive.length === 0 ? 1 : Math.ceil(Math.log10(Math.max(...positive)) - 1e-9))
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index))
  return {
    ticks,
    place: (value) => between(span, value <= 0 ? 0 : (Math.log10(value) - low) / (high - low)),
  }
}

/** From 0 to the last second exactly. */
export function timeScale(seconds: number, span: Span): Scale {
  const end = seconds > 0 ? seconds : 1
  const step = timeSteps.find((size) => end / size <= 10) ?? 3_600 * Math.ceil(end / 36_000)
  const ticks = Array.from({ length: Math.floor(end / step) + 1 }, (_, index) => index * step)
  return { ticks, place: (value) => between(span, value / end) }
}

const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600]

/** 1, 2 or 5 times a power of ten, the nearest that is not below. */
function roundStep(least: number): number {
  if (least <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(least))
  return power * ([1, 2, 5].find((digit) => digit * power >= least * (1 - 1e-9)) ?? 10)
}

function between([from, to]: Span, fraction: number): number {
  return from + (to - from) * Math.min(1, Math.max(0, fraction))
}
