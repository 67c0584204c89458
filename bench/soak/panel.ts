// One panel of the chart: a few lines over the same time and in the same unit, each with its name and last value at its end.

import { seriesOf, type Measure, type Sample } from './sample.ts'
import type { Scale, Span } from './scale.ts'
import { element, pathOf, text } from './svg.ts'
import { inUnit, roundInUnit, type Unit } from './units.ts'

export interface Line {
  readonly measure: Measure
  readonly name: string
  /** One of the classes of the style sheet. */
  readonly look: 'one' | 'two' | 'quiet'
}

export interface Panel {
  readonly title: string
  readonly unit: Unit
  readonly lines: readonly Line[]
  readonly scale: (values: readonly number[], span: Span) => Scale
}

export interface Frame {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

/** Nearer to each other, labels could not be read. */
const labelHeight = 14

export function drawPanel(panel: Panel, samples: readonly Sample[], time: Scale, frame: Frame): string {
  const { left, right, top, bottom } = frame
  const series = panel.lines.map((line) => ({ line, points: seriesOf(samples, line.measure) }))
  const values = series.flatMap(({ points }) => points.map(({ value }) => value))
  const scale = panel.scale(values, [bottom, top])
  const grid = scale.ticks.map((tick) => {
    const y = scale.place(tick)
    return (
      element('line', { class: 'grid', x1: left, x2: right, y1: y, y2: y }) +
      text(roundInUnit(tick, panel.unit), { class: 'tick', x: left - 8, y: y + 4, 'text-anchor': 'end' })
    )
  })
  const lines = panel.lines.map(({ measure, look }) => {
    const path = pathOf(
      samples.map(({ seconds, [measure]: value }) => {
        return value === null ? null : [time.place(seconds), scale.place(value)]
      }),
    )
    return element('path', { class: `line ${look}`, d: path === '' ? 'M0 0' : path })
  })
  const ends = series.flatMap(({ line, points }) => {
    const last = points.at(-1)
    return last === undefined ? [] : [{ line, value: last.value, y: scale.place(last.value) }]
  })
  const places = apart(
    ends.map(({ y }) => y),
    [top, bottom],
  )
  const labels = ends.map(({ line, value }, index) =>
    text(`${line.name} ${inUnit(value, panel.unit)}`, {
      class: `label ${line.look}`,
      x: right + 8,
      y: places[index]! + 4,
    }),
  )
  const heading = text(panel.title, { class: 'panel', x: left, y: top - 10 })
  return element('g', {}, heading, ...grid, ...lines, ...labels)
}

/** The same places in the same order, but far enough from each other, and within the bounds if there is room. */
function apart(places: readonly number[], [top, bottom]: readonly [number, number]): readonly number[] {
  const order = places.map((_, index) => index).sort((a, b) => places[a]! - places[b]!)
  const moved = [...places]
  let above = top - labelHeight
  for (const index of order) above = moved[index] = Math.max(moved[index]!, above + labelHeight)
  let below = bottom + labelHeight
  for (const index of order.toReversed()) below = moved[index] = Math.min(moved[index]!, below - labelHeight)
  return moved
}
