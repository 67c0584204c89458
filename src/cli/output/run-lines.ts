// Runs and journal entries as lines of text, shared by the commands that print them.

import type { JournalEntry, RunView } from '../../client/read/run-view.ts'
import { formatMs } from '../../core/definition/duration.ts'
import type { RunStatus } from '../../core/model/run.ts'
import { visible } from '../../core/text/printable.ts'
import { pauseSummary } from './pause-lines.ts'
import { jsonLine } from './plain-json.ts'
import { conditionText, wokenText } from './wait-text.ts'
import { cut, padEnd, padStart, pointInTime, table, type Colour, type Column, type Paint } from './text.ts'

const statusColours: Readonly<Record<RunStatus, Colour>> = {
  pending: 'none',
  running: 'cyan',
  waiting: 'dim',
  paused: 'yellow',
  cancelling: 'yellow',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'yellow',
}

export function colourOfStatus(status: string): Colour {
  return statusColours[status as RunStatus] ?? 'none'
}

/** A table of runs. Ids are never cut: the next command needs them. */
export function runLines(
  runs: readonly RunView[],
  { width, paint, now }: { readonly width: number; readonly paint: Paint; readonly now: number },
): readonly string[] {
  const columns: readonly Column[] = [
    { title: 'RUN' },
    { title: 'STATUS', colour: colourOfStatus },
    { title: 'TYPE', least: 16 },
    { title: 'ID', least: 10, dispensable: 2 },
    { title: 'KEY', least: 10, dispensable: 2 },
    { title: 'AGE', dispensable: 4 },
    { title: 'TOOK', dispensable: 5 },
    { title: 'PAUSED FOR', least: 12, dispensable: 1, colour: () => 'yellow' },
    { title: 'ERROR', least: 16, dispensable: 3, colour: () => 'red' },
    { title: 'PARENT', dispensable: 6 },
  ]
  const rows = runs.map((run) => [
    visible(run.id),
    run.status,
    visible(run.type) + (run.version === 1 ? '' : ` v${run.version}`),
    visible(instanceIdOf(run)),
    run.key === null ? '' : visible(run.key),
    formatMs(Math.max(0, now - run.createdAt.getTime())),
    run.endedAt === null ? '' : formatMs(run.endedAt.getTime() - run.createdAt.getTime()),
    run.pause === null ? '' : pauseSummary(run.pause.reason, run.pause.note),
    run.lastError === null ? '' : visible(run.lastError),
    run.parentId === null ? '' : visible(run.parentId),
  ])
  // An empty column only takes room from the others.
  const used = columns.map((_, at) => at < 3 || rows.some((row) => row[at] !== ''))
  const only = <Cell>(cells: readonly Cell[]): Cell[] => cells.filter((_, at) => used[at])
  return table(only(columns), rows.map(only), width, paint)
}

/** The id of the instance of a decider, also for the runs of its effects. Of other runs it is their idempotency key. */
function instanceIdOf({ idempotencyKey, metadata }: RunView): string {
  const { id, effect } = metadata
  return typeof effect === 'string' && typeof id === 'string' ? id : (idempotencyKey ?? '')
}

/**
 * One entry on one line: number, time, kind, name, meta, and the payload as far as there is room. With `inWords` the meta of
 * waits is in words, and progress is drawn as a bar.
 */
export function entryLine(
  entry: JournalEntry,
  { width, paint, inWords = false }: { readonly width: number; readonly paint: Paint; readonly inWords?: boolean },
): string {
  const { seq, at, kind, name, meta, data } = entry
  const start = `${padStart(String(seq), 5)}  ${pointInTime(at, { isExact: true })}  `
  const text = `${padEnd(kind, 14)}  ${name === null ? '' : visible(name)}`
  const words = inWords ? metaInWords(entry) : null
  const noted = words !== null ? `  ${words}` : meta === null ? '' : `  ${jsonLine(meta)}`
  const payload = data === undefined ? '' : `  ${jsonLine(data)}`
  const room = width - start.length
  const rest = cut(text + noted + payload, Math.max(20, room))
  const named = rest.slice(0, Math.min(rest.length, text.length))
  return `${paint('dim', start)}${paint(colourOfKind(kind), named)}${rest.slice(named.length)}`.trimEnd()
}

/** The meta of an entry for a person to read; null if there is nothing better than its JSON. */
function metaInWords(entry: JournalEntry): string | null {
  switch (entry.kind) {
    case 'progressed':
      return bar(entry.meta.fraction)
    case 'waiting':
      return entry.meta.conditions.map(conditionText).join(', or ')
    case 'woken':
      return wokenText(entry.meta, true).replace(/^: /, '')
    default:
      return null
  }
}

const barWidth = 20

/** `█████░░░░░ 50 %` */
function bar(fraction: number): string {
  const full = Math.round(Math.max(0, Math.min(1, fraction)) * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${Math.round(fraction * 100)} %`
}

/** A line that belongs to the entry above it. */
export function underEntry(line: string): string {
  return `       ${line}`
}

function colourOfKind(kind: JournalEntry['kind']): Colour {
  if (kind === 'succeeded' || kind === 'step-succeeded') return 'green'
  if (kind.endsWith('failed') || kind === 'failing') return 'red'
  if (kind === 'crashed' || kind === 'paused' || kind === 'cancelling' || kind === 'cancelled') return 'yellow'
  return 'none'
}
