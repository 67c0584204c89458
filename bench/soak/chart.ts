// The picture of a soak: one SVG file that needs nothing else. Panels of one unit each stand above each other over the same time;
// a strip below says when the doctor came and what he found, and a shade behind the panels how long he was at work. It follows
// the reader's preference for light or dark.

import { inUnit, clock } from './units.ts'
import { drawPanel, type Panel } from './panel.ts'
import type { Sample, Soak, Visit } from './sample.ts'
import { binaryScale, linearScale, logScale, timeScale, type Scale } from './scale.ts'
import { element, text, title } from './svg.ts'
import type { SoakFindings } from './findings.ts'

const width = 960
const left = 78
const right = 800
const firstPanel = 126
const panelHeight = 92
const betweenPanels = 46
const stripHeight = 12
const shortestMark = 3

const panels: readonly Panel[] = [
  {
    title: 'Runs per second',
    unit: 'runs/s',
    scale: linearScale,
    lines: [
      { measure: 'arrived', name: 'arrived', look: 'quiet' },
      { measure: 'ended', name: 'ended', look: 'one' },
    ],
  },
  {
    title: 'Open runs',
    unit: 'runs',
    scale: linearScale,
    lines: [{ measure: 'open', name: 'open', look: 'one' }],
  },
  {
    title: 'Latency, without the time that runs were to wait',
    unit: 'ms',
    scale: logScale,
    lines: [
      { measure: 'p99Ms', name: 'p99', look: 'two' },
      { measure: 'p50Ms', name: 'p50', look: 'one' },
    ],
  },
  {
    title: 'Memory of the worker',
    unit: 'bytes',
    scale: binaryScale,
    lines: [
      { measure: 'rssBytes', name: 'RSS', look: 'two' },
      { measure: 'heapBytes', name: 'heap', look: 'one' },
    ],
  },
  {
    title: 'Size of the database: ended runs are kept',
    unit: 'bytes',
    scale: binaryScale,
    lines: [
      { measure: 'logBytes', name: 'WAL', look: 'quiet' },
      { measure: 'databaseBytes', name: 'data', look: 'one' },
    ],
  },
  {
    title: 'Dead rows that wait for a vacuum',
    unit: 'rows',
    scale: linearScale,
    lines: [{ measure: 'deadRows', name: 'dead', look: 'two' }],
  },
]

const style = `
  svg { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #e4e8ec; --one: #0969da; --two: #bc4c00;
    --good: #1a7f37; --bad: #cf222e }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --grid: #262c34; --one: #58a6ff; --two: #f0883e;
      --good: #3fb950; --bad: #f85149 }
  }
  text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: var(--soft) }
  .paper { fill: var(--paper) }
  .head { font-size: 20px; font-weight: 600; fill: var(--ink) }
  .panel { font-weight: 600; fill: var(--ink) }
  .tick { font-size: 11px; font-variant-numeric: tabular-nums }
  .label { font-variant-numeric: tabular-nums }
  .grid { stroke: var(--grid) }
  .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round }
  .line.one { stroke: var(--one) }
  .line.two { stroke: var(--two) }
  .line.quiet { stroke: var(--soft); stroke-dasharray: 2 3 }
  .label.one { fill: var(--one) }
  .label.two { fill: var(--two) }
  .shade { fill: var(--soft); opacity: .09 }
  .good { fill: var(--good) }
  .bad { fill: var(--bad) }
`

export function drawChart({ setting, samples, visits }: Soak, { findings }: SoakFindings): string {
  const shownPanels = panels.filter(({ lines }) => lines.some(({ measure }) => hasAny(samples, measure)))
  const bottom = firstPanel + shownPanels.length * (panelHeight + betweenPanels) - betweenPanels
  const strip = bottom + 34
  const height = strip + stripHeight + 44
  const seconds = Math.max(samples.at(-1)?.seconds ?? 0, ...visits.map(({ to }) => to))
  const time = timeScale(seconds, [left, right])
  const drawn = shownPanels.map((panel, index) => {
    const top = firstPanel + index * (panelHeight + betweenPanels)
    return drawPanel(panel, samples, time, { left, right, top, bottom: top + panelHeight })
  })
  return `${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': 'What became of runs, latency, memory, tables and invariants over the time of a soak',
    },
    element('style', {}, style),
    element('rect', { class: 'paper', width, height }),
    ...heading(setting, seconds, findings),
    ...visits.map((visit) => shade(visit, time, bottom)),
    ...drawn,
    ...doctorStrip(visits, time, strip),
    ...timeAxis(time, strip + stripHeight),
  )}\n`
}

function hasAny(samples: readonly Sample[], measure: Panel['lines'][number]['measure']): boolean {
  return samples.some((sample) => sample[measure] !== null)
}

function heading(setting: Soak['setting'], seconds: number, findings: readonly string[]): readonly string[] {
  const { machine, store, capacity, share, rate } = setting
  const name = { memory: 'memory', sqlite: 'SQLite', postgres: 'Postgres' }[store]
  const load = `${inUnit(rate, 'runs/s')} runs/s, ${Math.round(share * 100)} % of ${inUnit(capacity, 'runs/s')}`
  const where = `node ${machine.node}, ${machine.cores} cores, ${machine.platform}`
  const summary =
    findings.length === 0
      ? text('Nothing is wrong.', { class: 'good', x: left, y: 80 })
      : text(shortened(findings.join(' ')), { class: 'bad', x: left, y: 80 })
  return [
    text(`A soak of ${clock(seconds)} min on ${name}`, { class: 'head', x: left, y: 38 }),
    text(`Mixed work, ${load}, arriving by chance · ${where}`, { x: left, y: 60 }),
    summary,
  ]
}

const longestSummary = 130

function shortened(words: string): string {
  return words.length > longestSummary ? `${words.slice(0, longestSummary - 1)}…` : words
}

function shade({ from, to }: Visit, time: Scale, bottom: number): string {
  const x = time.place(from)
  const y = firstPanel - 4
  return element('rect', { class: 'shade', x, y, width: Math.max(1, time.place(to) - x), height: bottom - y })
}

function doctorStrip(visits: readonly Visit[], time: Scale, top: number): readonly string[] {
  const marks = visits.map(({ from, to, violations }) => {
    const x = time.place(from)
    const words = violations.length === 0 ? 'nothing wrong' : violations.map(({ name }) => name).join(', ')
    const wide = Math.max(shortestMark, time.place(to) - x)
    return element(
      'rect',
      { class: violations.length === 0 ? 'good' : 'bad', x, y: top, width: wide, height: stripHeight, rx: 1.5 },
      title(`From ${clock(from)} to ${clock(to)}: ${words}`),
    )
  })
  const withFindings = visits.filter(({ violations }) => violations.length > 0).length
  const label = withFindings === 0 ? `${visits.length} × nothing wrong` : `${withFindings} × something wrong`
  return [
    text('Doctor, whose work is shaded above', { class: 'panel', x: left, y: top - 8 }),
    element('line', { class: 'grid', x1: left, x2: right, y1: top + stripHeight, y2: top + stripHeight }),
    ...marks,
    text(label, { class: `label ${withFindings === 0 ? 'good' : 'bad'}`, x: right + 8, y: top + stripHeight - 1 }),
  ]
}

function timeAxis(time: Scale, y: number): readonly string[] {
  const ticks = time.ticks.map((tick) =>
    text(clock(tick), { class: 'tick', x: time.place(tick), y: y + 18, 'text-anchor': 'middle' }),
  )
  return [...ticks, text('min:s', { class: 'tick', x: right + 30, y: y + 18 })]
}
