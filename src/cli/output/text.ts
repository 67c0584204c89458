// Text on a terminal: how many columns it takes, cutting and padding by that, colours, and tables that fit.
// Colours are put on last: a text with colours in it is never measured or cut.

import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { visible } from '../../core/text/printable.ts'
import type { Io, Output } from '../io.ts'

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'none'

export type Paint = (colour: Colour, text: string) => string

/** Marks each colour until it is printed. Data cannot contain it, so no colour in data is mistaken for ours. */
const ours = `\u001B${randomBytes(8).toString('hex')}`

/** Colours on a terminal, unless NO_COLOR or FORCE_COLOR say otherwise. They take effect in `displayed`. */
export function painter(output: Output, env: Io['env']): Paint {
  const isColoured = wantsColour(output, env)
  return (colour, text) => {
    if (!isColoured || colour === 'none') return text
    const [begin, end] = inspect.colors[colour] ?? [0, 0]
    return `${ours}[${begin}m${text}${ours}[${end}m`
  }
}

/** A line as it goes to the terminal: only the colours of `painter` are interpreted. */
export function displayed(line: string): string {
  const [first = '', ...coloured] = line.split(ours)
  return visible(first) + coloured.map((part) => `\u001B${visible(part)}`).join('')
}

function wantsColour({ isTerminal }: Output, env: Io['env']): boolean {
  const { NO_COLOR: never, FORCE_COLOR: forced, TERM: terminal } = env
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  return isTerminal && (never === undefined || never === '') && terminal !== 'dumb'
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
// Ranges that terminals show two columns wide: East Asian scripts, full-width forms, and emoji.
const wide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|^\p{Emoji_Presentation}|\uFE0F/u
const narrow = /^[\u0020-\u02FF]*$/u

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (narrow.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1
  return width
}

/** The text itself, or as much of its beginning as fits, with `…` for the rest. */
export function cut(text: string, columns: number): string {
  // Nothing beyond this can fit, and some texts are a megabyte.
  const near = text.length > columns * 32 ? text.slice(0, columns * 32) : text
  if (near.length === text.length && widthOf(text) <= columns) return text
  if (columns <= 0) return ''
  if (narrow.test(near)) return `${near.slice(0, columns - 1)}…`
  let [kept, width] = ['', 0]
  for (const { segment } of graphemes.segment(near)) {
    width += widthOf(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

const runId = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g

/** As `cut`, but never inside the id of a run: one near the beginning is kept, even if the line gets longer, a later one is left out. */
export function cutBetweenIds(text: string, columns: number): string {
  const short = cut(text, columns)
  if (short === text || columns === Infinity) return short
  const kept = short.length - 1
  const [first, ...later] = text.slice(0, Math.max(nearEnough, kept) + idLength).matchAll(runId)
  if (first === undefined) return short
  const end = first.index + idLength
  if (end > kept) return end === text.length ? text : `${text.slice(0, end)}…`
  const split = later.find(({ index }) => index < kept && index + idLength > kept)
  return split === undefined ? short : `${text.slice(0, split.index).trimEnd()} …`
}

const idLength = 36
/** An id that begins before this is kept. */
const nearEnough = 60

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)))
}

export function padStart(text: string, columns: number): string {
  return ' '.repeat(Math.max(0, columns - widthOf(text))) + text
}

/** `1 run`, `12 runs`, `4,980 entries`. */
export function amount(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-GB')} ${count === 1 ? one : many}`
}

/** A readable point in time: `2026-11-16 00:12:01Z`, or with milliseconds. */
export function pointInTime(at: Date, { isExact = false }: { readonly isExact?: boolean } = {}): string {
  const iso = at.toISOString()
  return `${iso.slice(0, -14)} ${isExact ? iso.slice(-13) : `${iso.slice(-13, -5)}Z`}`
}

export interface Column {
  readonly title: string
  /** Shrinks down to this width when the table is too wide. @default never */
  readonly least?: number
  /** Left out when there is no room, highest first. @default never */
  readonly dispensable?: number
  readonly colour?: (cell: string) => Colour
}

const gap = 2

/** A table whose lines fit: columns are cut or left out as they allow. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  paint: Paint,
): readonly string[] {
  const all = columns.map((column, at) => {
    const cells = [column.title, ...rows.map((row) => row[at] ?? '')]
    const natural = cells.reduce((most, cell) => Math.max(most, widthOf(cell)), 0)
    return { ...column, at, width: natural, least: Math.min(natural, column.least ?? natural) }
  })
  const used = fitting(all, width)
  const line = (cells: readonly string[], colourOf: (column: Column, cell: string) => Colour): string =>
    used
      .map((column) => {
        const shown = cut(cells[column.at] ?? '', column.width)
        const padding = ' '.repeat(column.width - widthOf(shown))
        return shown === '' ? padding : paint(colourOf(column, shown), shown) + padding
      })
      .join(' '.repeat(gap))
      .trimEnd()
  return [
    line(
      columns.map(({ title }) => title),
      () => 'dim',
    ),
    ...rows.map((row) => line(row, (column, cell) => column.colour?.(cell) ?? 'none')),
  ]
}

type Fitted = Column & { readonly at: number; readonly least: number; width: number }

function fitting(all: readonly Fitted[], width: number): readonly Fitted[] {
  const excessOf = (columns: readonly Fitted[], widthIn: (column: Fitted) => number): number =>
    columns.reduce((sum, column) => sum + widthIn(column), gap * (columns.length - 1)) - width
  // The most important columns first, each if it still fits: a short column may fit where a long one does not.
  const kept = new Set<Fitted>()
  for (const column of all.toSorted((a, b) => (a.dispensable ?? 0) - (b.dispensable ?? 0))) {
    if (column.dispensable === undefined || excessOf([...kept, column], ({ least }) => least) <= 0) kept.add(column)
  }
  const used = all.filter((column) => kept.has(column))
  for (let excess = excessOf(used, (column) => column.width); excess > 0; excess -= 1) {
    // One column of the screen at a time, so that two long texts end up alike.
    const [most] = used.toSorted((a, b) => b.width - b.least - (a.width - a.least))
    if (most === undefined || most.width <= most.least) break
    most.width -= 1
  }
  return used
}
