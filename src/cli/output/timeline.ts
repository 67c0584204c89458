// Draws a run: its facts and its status, then its steps, waits, crashes and undo work as bars over time. A pure function of
// the run, its journal and the width.

import type { JournalEntry, RunView } from '../../client/read/run-view.ts'
import type { UnreadMessages } from '../../client/read/unread.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { visible } from '../../core/text/printable.ts'
import { causeLines } from './error-lines.ts'
import { pauseLines } from './pause-lines.ts'
import { jsonLine } from './plain-json.ts'
import { colourOfStatus } from './run-lines.ts'
import { amount, cut, cutBetweenIds, padEnd, padStart, pointInTime, widthOf, type Paint } from './text.ts'
import { rowsOf, type Row, type Stretch } from './timeline-rows.ts'

export interface TimelineOptions {
  readonly width: number
  readonly paint: Paint
  /** The time at which the bars of a live run end. */
  readonly now: number
  /** Shows every row, however many there are. @default false */
  readonly all?: boolean
  /** Does not cut facts that are longer than a line, for a pipe or a file. @default false */
  readonly wholeFacts?: boolean
  /** What the run has not read. @default nothing */
  readonly unread?: UnreadMessages
  /** The stack of its error, line by line. Without it only the causes are shown. */
  readonly stack?: readonly string[]
}

/** More rows than this are summarised. */
const mostRows = 60
const shownAtStart = 20
const shownAtEnd = 20
const widestPicture = 160

export function timeline(view: RunView, entries: readonly JournalEntry[], options: TimelineOptions): readonly string[] {
  const width = Math.min(options.width, widestPicture)
  const rows = rowsOf(view, entries, options.now)
  return [...header(view, entries, { ...options, width }), '', ...drawing(view, rows, { ...options, width })]
}

function header(view: RunView, entries: readonly JournalEntry[], options: TimelineOptions): string[] {
  const { width, paint, now, wholeFacts = false } = options
  const { type, version, status, createdAt, endedAt } = view
  const took = formatMs((endedAt?.getTime() ?? now) - createdAt.getTime())
  const facts: readonly Fact[] = [
    ['run', visible(view.id)],
    ['key', view.key === null ? null : `${visible(view.key)} (unique in: ${view.keyScope})`],
    ['idempotency', view.idempotencyKey === null ? null : visible(view.idempotencyKey)],
    ['parent', view.parentId === null ? null : visible(view.parentId)],
    ['tags', view.tags.length === 0 ? null : view.tags.map(visible).join(', ')],
    ['metadata', Object.keys(view.metadata).length === 0 ? null : jsonLine(view.metadata)],
    ['created', `${pointInTime(createdAt)}, ${endedAt === null ? `${took} ago` : `took ${took}`}`],
    ['due', view.dueAt === null ? null : pointInTime(view.dueAt)],
    [
      'asked to',
      view.controlRequest === null
        ? null
        : view.controlRequest.kind +
          (view.controlRequest.reason === null ? '' : `: ${visible(view.controlRequest.reason)}`),
    ],
    ['journal', amount(entries.length, 'entry', 'entries')],
    ['removed', view.deletedAt === null ? null : pointInTime(view.deletedAt) + deleteReasonText(view)],
    ['error', view.lastError === null ? null : visible(view.lastError)],
    ...underError(view, options).map((line): Fact => ['', line]),
    ['output', 'output' in view ? jsonLine(view.output) : null],
  ]
  const title = `${paint('bold', visible(type))} v${version}  ${paint(colourOfStatus(status), status)}`
  const room = wholeFacts ? Infinity : Math.max(20, width - 14)
  const known = [...facts, ...unreadFacts(options.unread, now)]
  const lines = known.flatMap(([name, fact]) =>
    fact === null ? [] : [factLine(name, cutBetweenIds(fact, room), paint)],
  )
  const [since = '', ...note] = view.pause === null ? [] : pauseLines(view.pause)
  if (view.pause === null) return [title, ...lines]
  const advice =
    view.pause.reason === 'drift'
      ? [
          `Once the code fits: holdfast resume ${view.id}`,
          'Repair its journal: the same with --drop <seq>, or --result <seq=json>.',
        ]
      : []
  return [
    title,
    ...lines,
    factLine('paused for', since, paint),
    ...[...note, ...advice].map((line) => ' '.repeat(14) + line),
  ]
}

function underError({ error }: RunView, { stack = [] }: TimelineOptions): readonly string[] {
  return stack.length > 0 ? stack : causeLines(error)
}

type Fact = readonly [name: string, text: string | null]

/** A line for each name. A wait that is made later may still ask for it, so this only asks whether it is misspelt. */
function unreadFacts(unread: UnreadMessages | undefined, now: number): readonly Fact[] {
  if (unread === undefined) return []
  const lines = unread.names.map(({ name, count, since, isAwaited }) => {
    const age = formatMs(Math.max(0, now - since.getTime()))
    const guess = isAwaited ? '' : '; no wait has asked for this name so far: misspelt?'
    return `${visible(name)}: ${amount(count, 'message')}, ${count > 1 ? 'the oldest ' : ''}for ${age}${guess}`
  })
  const all = unread.isCapped ? [...lines, 'there are more'] : lines
  return all.map((line, at): Fact => [at === 0 ? 'unread' : '', line])
}

function factLine(name: string, fact: string, paint: Paint): string {
  return `  ${paint('dim', padEnd(name, 11))} ${fact}`
}

function deleteReasonText({ deleteReason }: RunView): string {
  return deleteReason === null ? '' : `: ${visible(deleteReason)}`
}

function drawing(view: RunView, rows: readonly Row[], { width, paint, now, all = false }: TimelineOptions): string[] {
  const began = Math.min(
    view.createdAt.getTime(),
    ...rows.slice(0, 1).flatMap(({ stretches }) => stretches.map(({ from }) => from)),
  )
  const end = Math.max(view.endedAt?.getTime() ?? now, began + 1)
  const isWhole = all || rows.length <= mostRows
  const parts = isWhole ? [{ shown: rows, hidden: [] }] : summarised(rows)
  const shown = parts.flatMap((part) => part.shown)
  const times = shown.map((row) => formatMs((row.stretches[0]?.from ?? began) - began))
  const columns = columnsFor(shown, times, width)
  const axis = formatMs(end - began)
  const lines =
    columns.bar === 0
      ? []
      : [
          ' '.repeat(columns.time + columns.label + 4) +
            paint('dim', `0${padStart(axis, Math.max(0, columns.bar - 1))}`),
        ]
  let at = 0
  for (const part of parts) {
    for (const row of part.shown) {
      const time = padStart(times[at] ?? '', columns.time)
      const label = padEnd(cut(row.label, columns.label), columns.label)
      const bar = columns.bar === 0 ? '' : `${painted(row.stretches, columns.bar, began, end, paint)}  `
      lines.push(`${paint('dim', time)}  ${label}  ${bar}${cutBetweenIds(row.detail, columns.detail)}`.trimEnd())
      at += 1
    }
    if (part.hidden.length > 0) lines.push(paint('dim', hiddenText(part.hidden, columns.time)))
  }
  if (!isWhole) {
    const hidden = rows.length - shown.length
    lines.push(
      '',
      `${amount(hidden, 'line is', 'lines are')} hidden. See all: holdfast show ${view.id} --all, or holdfast journal ${view.id}`,
    )
  }
  return lines
}

interface Part {
  readonly shown: readonly Row[]
  /** The rows after those, which are not shown. */
  readonly hidden: readonly Row[]
}

/** The beginning, the end, and the notable rows in between; the last of these if there are too many. */
function summarised(rows: readonly Row[]): readonly Part[] {
  const middle = rows.slice(shownAtStart, rows.length - shownAtEnd)
  const room = mostRows - shownAtStart - shownAtEnd
  const notable = new Set(middle.filter(({ isNotable }) => isNotable).slice(-room))
  const parts: { shown: Row[]; hidden: Row[] }[] = [{ shown: rows.slice(0, shownAtStart), hidden: [] }]
  for (const row of middle) {
    const last = parts.at(-1)
    if (!notable.has(row)) last?.hidden.push(row)
    else if (last?.hidden.length === 0) last.shown.push(row)
    else parts.push({ shown: [row], hidden: [] })
  }
  parts.push({ shown: rows.slice(rows.length - shownAtEnd), hidden: [] })
  return parts
}

function hiddenText(hidden: readonly Row[], indent: number): string {
  const failed = hidden.filter(({ stretches }) => stretches.some(({ mark }) => mark === '░')).length
  const failures = failed === 0 ? '' : `, ${failed.toLocaleString('en-GB')} of them with failures`
  return `${' '.repeat(indent)}  ⋮ ${amount(hidden.length, 'line')} more${failures}`
}

interface Columns {
  readonly time: number
  readonly label: number
  readonly bar: number
  readonly detail: number
}

/** The bar gets the width that the text leaves; on a narrow terminal there is none. */
function columnsFor(rows: readonly Row[], times: readonly string[], width: number): Columns {
  const widest = (texts: readonly string[]): number => texts.reduce((most, text) => Math.max(most, widthOf(text)), 0)
  const time = Math.max(6, widest(times))
  const label = Math.min(widest(rows.map((row) => row.label)), Math.max(10, Math.floor(width / 4)))
  const free = width - time - label - 6
  const leastBar = Math.max(16, Math.floor(width * 0.3))
  const detail = widest(rows.map((row) => row.detail))
  const bar = Math.min(60, Math.max(leastBar, free - detail))
  if (free - bar < Math.min(20, detail)) return { time, label, bar: 0, detail: Math.max(10, width - time - label - 4) }
  return { time, label, bar, detail: free - bar }
}

function painted(stretches: readonly Stretch[], width: number, began: number, end: number, paint: Paint): string {
  const cells: (Stretch | null)[] = Array.from({ length: width }, () => null)
  const scale = width / (end - began)
  const columnOf = (at: number): number => Math.max(0, Math.min(width - 1, Math.floor((at - began) * scale)))
  for (const stretch of stretches) {
    const first = columnOf(stretch.from)
    const last = Math.max(first, Math.min(width - 1, Math.ceil((stretch.to - began) * scale) - 1))
    cells.fill(stretch, first, last + 1)
  }
  let bar = ''
  for (let from = 0; from < width;) {
    const stretch = cells[from] ?? null
    let to = from
    while (to < width && (cells[to] ?? null) === stretch) to += 1
    bar += stretch === null ? ' '.repeat(to - from) : paint(stretch.colour, stretch.mark.repeat(to - from))
    from = to
  }
  return bar
}
