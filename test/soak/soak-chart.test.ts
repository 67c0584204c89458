// The picture of a soak: whole, readable by anything that reads XML, and without a number that is none.

import { describe, expect, it } from 'vitest'
import { drawChart } from '../../bench/soak/chart.ts'
import { binaryScale, linearScale, logScale, timeScale } from '../../bench/soak/scale.ts'
import { renderSummary } from '../../bench/soak/summary.ts'
import { elementsOf, type Element } from './xml.ts'
import { soakOf } from './soaks.ts'

const sound = { findings: [], notes: [] }
const visits = [
  { from: 60, to: 64, violations: [] },
  { from: 120, to: 130, violations: [{ name: 'a<b & "c"', offenders: ['x'] }] },
]
const changed = (share: number) => ({ p99Ms: 20 + 4_000 * share, databaseBytes: 2 ** 20 + share * 2 ** 31 })

const drawn = {
  'a long soak on Postgres': drawChart(soakOf({ minutes: 30, changed, visits }), sound),
  'one on SQLite, without rows': drawChart(
    soakOf({
      minutes: 5,
      store: 'sqlite',
      changed: () => ({ liveRows: null, deadRows: null, vacuums: null }),
    }),
    sound,
  ),
  'one that found something': drawChart(soakOf({ minutes: 5 }), {
    findings: ['<leak> & "drift" '.repeat(20)],
    notes: [],
  }),
  'one in which nothing ended for a while': drawChart(
    soakOf({
      minutes: 5,
      changed: (share) => (share > 0.4 && share < 0.6 ? { p50Ms: null, p99Ms: null, longestMs: null } : {}),
    }),
    sound,
  ),
  'one of zeros': drawChart(
    soakOf({
      minutes: 5,
      changed: () => ({ arrived: 0, ended: 0, open: 0, p50Ms: 0, p99Ms: 0, deadRows: 0, logBytes: 0 }),
    }),
    sound,
  ),
  'one with a single sample': drawChart(soakOf({ minutes: 1 / 12 }), sound),
  'one that was over before the first sample': drawChart(soakOf({ minutes: 0 }), sound),
}

const numbersIn = ({ attributes }: Element): readonly number[] =>
  Object.entries(attributes).flatMap(([name, value]) => {
    if (['x', 'y', 'x1', 'x2', 'y1', 'y2', 'width', 'height', 'rx'].includes(name)) return [Number(value)]
    if (name === 'd') return value.split(/[MLh ]/).flatMap((part) => (part === '' ? [] : [Number(part)]))
    return name === 'viewBox' ? value.split(' ').map(Number) : []
  })

const titles = (svg: string): readonly string[] =>
  elementsOf(svg)
    .filter(({ name, attributes }) => name === 'text' && attributes['class'] === 'panel')
    .map(({ text }) => text)

describe.each(Object.entries(drawn))('the chart of %s', (_, svg) => {
  const elements = elementsOf(svg)

  it('is one SVG element that needs nothing from elsewhere', () => {
    expect(elements[0]).toMatchObject({ name: 'svg', attributes: { xmlns: 'http://www.w3.org/2000/svg' } })
    expect(svg.match(/(?:href|src|url\(|@import|<script)/g)).toBeNull()
    expect(svg).toContain('prefers-color-scheme: dark')
  })

  it('has only numbers that are some', () => {
    expect(svg).not.toMatch(/NaN|Infinity|undefined|null/)
    const numbers = elements.flatMap(numbersIn)
    expect(numbers.length).toBeGreaterThan(20)
    expect(numbers.filter((number) => !Number.isFinite(number))).toEqual([])
  })

  it('stays within its frame', () => {
    const [, , width = 0, height = 0] = elements[0]!.attributes['viewBox']!.split(' ').map(Number)
    const outside = elements.filter(({ attributes: { x = '0', y = '0', width: wide = '0', height: high = '0' } }) => {
      return Number(x) < 0 || Number(y) < 0 || Number(x) + Number(wide) > width || Number(y) + Number(high) > height
    })
    expect(outside).toEqual([])
  })

  it('lets no two texts lie upon each other', () => {
    const boxes = elements.filter(({ name }) => name === 'text').map(boxOf)
    const clashes = boxes.flatMap((one, index) =>
      boxes
        .slice(index + 1)
        .filter((other) => one.left < other.right && other.left < one.right)
        .filter((other) => Math.abs(one.y - other.y) < 10)
        .map((other) => [one.text, other.text]),
    )
    expect(clashes).toEqual([])
  })
})

/** Where a text is, at about the width that letters have. */
function boxOf({ text, attributes }: Element) {
  const size = attributes['class'] === 'head' ? 20 : 12
  const width = text.length * size * 0.52
  const x = Number(attributes['x'])
  const left = { end: x - width, middle: x - width / 2 }[attributes['text-anchor'] ?? ''] ?? x
  return { text, left, right: left + width, y: Number(attributes['y']) }
}

describe('the chart', () => {
  it('has a panel for each unit, and the doctor below', () => {
    expect(titles(drawn['a long soak on Postgres'])).toEqual([
      'Runs per second',
      'Open runs',
      'Latency, without the time that runs were to wait',
      'Memory of the worker',
      'Size of the database: ended runs are kept',
      'Dead rows that wait for a vacuum',
      'Doctor, whose work is shaded above',
    ])
    expect(titles(drawn['one on SQLite, without rows'])).not.toContain('Dead rows that wait for a vacuum')
  })

  it('names each line at its end, with its last value', () => {
    const labels = elementsOf(drawn['a long soak on Postgres']).filter(({ attributes }) =>
      attributes['class']?.startsWith('label'),
    )
    expect(labels.map(({ text }) => text)).toEqual([
      'arrived 700',
      'ended 700',
      'open 300',
      'p99 4,020 ms',
      'p50 10.0 ms',
      'RSS 160 MiB',
      'heap 50.0 MiB',
      'WAL 1.95 GiB',
      'data 2.00 GiB',
      'dead 20,000',
      '1 × something wrong',
    ])
  })

  it('says its ticks in round numbers', () => {
    const ticks = elementsOf(drawn['a long soak on Postgres']).filter(
      ({ attributes }) => attributes['class'] === 'tick',
    )
    expect(ticks.map(({ text }) => text).filter((text) => text.includes('.'))).toEqual([])
    expect(ticks.map(({ text }) => text)).toEqual(expect.arrayContaining(['0', '10 s', '200 MiB', '0:00', '30:00']))
  })

  it('marks what the doctor found, and for how long he was at work', () => {
    const rects = elementsOf(drawn['a long soak on Postgres']).filter(({ name }) => name === 'rect')
    expect(rects.map(({ attributes }) => attributes['class'])).toEqual(['paper', 'shade', 'shade', 'good', 'bad'])
    expect(drawn['a long soak on Postgres']).toContain('a&lt;b &amp; &quot;c&quot;')
  })

  it('breaks a line where nothing is known', () => {
    const paths = (svg: string) => elementsOf(svg).filter(({ name }) => name === 'path')
    const pieces = paths(drawn['one in which nothing ended for a while']).map(
      ({ attributes }) => attributes['d']!.match(/M/g)!.length,
    )
    expect(pieces).toEqual([1, 1, 1, 2, 2, 1, 1, 1, 1, 1])
  })
})

describe('a scale', () => {
  it('ends at a round number that nothing exceeds', () => {
    expect(linearScale([0, 873], [100, 0]).ticks).toEqual([0, 500, 1_000])
    expect(linearScale([0, 500], [100, 0]).ticks).toEqual([0, 200, 400, 600])
    expect(linearScale([], [100, 0]).ticks).toEqual([0, 1])
    expect(binaryScale([5 * 2 ** 20], [100, 0]).ticks.map((tick) => tick / 2 ** 20)).toEqual([0, 2, 4, 6])
  })

  it('puts decades around everything that is above 0', () => {
    const scale = logScale([3, 0, 450], [100, 0])
    expect(scale.ticks).toEqual([1, 10, 100, 1_000])
    expect([0, 1, 1_000, 1e9].map((value) => scale.place(value))).toEqual([100, 100, 0, 0])
    expect(logScale([10], [100, 0]).ticks).toEqual([10, 100])
  })

  it('has at most eleven times', () => {
    for (const seconds of [0, 1, 23, 100, 1_800, 86_400, 900_000]) {
      expect(timeScale(seconds, [0, 100]).ticks.length).toBeLessThanOrEqual(11)
    }
    expect(timeScale(1_800, [0, 100]).ticks.slice(0, 3)).toEqual([0, 300, 600])
  })
})

describe('the summary', () => {
  const kinds = [{ name: 'order', about: 'three steps', ended: 9, p50Ms: 4, p99Ms: 9, longestMs: null }]
  const tables = [{ name: 'runs', bytes: 2 ** 21, liveRows: 10, deadRows: 2, vacuums: 1 }]

  it('compares the first quarter with the last, and says what an hour would add', () => {
    const soak = soakOf({ minutes: 30, changed: (share) => ({ rssBytes: 2 ** 27 + share * 2 ** 27 }), visits })
    const text = renderSummary({ soak, kinds, tables })
    expect(text).toMatch(/worker RSS +14\d MiB +2[34]\d MiB +\+\d\d % +\+256 MiB +▁.*█/)
    expect(text).toMatch(/order +9 +4\.00 ms +9\.00 ms +three steps/)
    expect(text).toMatch(/runs +2\.00 MiB +10 +2 +1\n/)
    expect(text).toContain('read everything 2 times, the last time in 10.0 s, and found something wrong 1 times')
    expect(text).not.toMatch(/NaN|undefined|Infinity/)
  })

  it('says what there is when there is hardly anything', () => {
    const text = renderSummary({ soak: soakOf({ minutes: 0 }), kinds, tables: [] })
    expect(text).toContain('The doctor came to no end.')
    expect(text).not.toMatch(/NaN|undefined|Infinity/)
  })
})
