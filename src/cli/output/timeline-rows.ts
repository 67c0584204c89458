// Turns a journal into the rows of a picture: one row for each step, wait, crash, pause and turn of a run, with its
// stretches of time. Independent of the width of the picture.

import type { JournalEntry, RunView } from '../../client/read/run-view.ts'
import { formatMs } from '../../core/definition/duration.ts'
import { isTerminal } from '../../core/model/run.ts'
import type { WokenBy } from '../../core/model/entry.ts'
import { visible } from '../../core/text/printable.ts'
import { pauseSummary } from './pause-lines.ts'
import { jsonLine, messageOf } from './plain-json.ts'
import type { Colour } from './text.ts'
import { conditionText, wokenText } from './wait-text.ts'

export interface Row {
  readonly label: string
  readonly stretches: Stretch[]
  detail: string
  /** Shown even when most rows are hidden. */
  isNotable: boolean
}

interface OpenWait {
  readonly row: Row
  /** It has several conditions, one of which comes first. */
  readonly isRace: boolean
}

export interface Stretch {
  readonly from: number
  to: number
  readonly mark: string
  readonly colour: Colour
}

type Of<Kind extends JournalEntry['kind']> = Extract<JournalEntry, { kind: Kind }>

/** The rows of a run, in the order in which they began. All text in them is safe to print. */
export function rowsOf(view: RunView, entries: readonly JournalEntry[], now: number): readonly Row[] {
  const picture = new Rows()
  for (const entry of entries) picture.add(entry)
  picture.close(view, now)
  // Steps are recorded when they end; in the picture they begin where they began.
  return picture.rows.toSorted((one, other) => beganAt(one) - beganAt(other))
}

function beganAt({ stretches }: Row): number {
  return stretches[0]?.from ?? 0
}

class Rows {
  readonly rows: Row[] = []
  /** Steps and waits of the present incarnation, which may get more stretches. */
  private byName = new Map<string, Row>()
  private openWaits = new Map<string, OpenWait>()
  private pause: Row | null = null
  private lastAt: number | null = null

  add(entry: JournalEntry): void {
    const at = entry.at.getTime()
    this.lastAt ??= at
    if (entry.kind !== 'crashed' && entry.kind !== 'amended') this.endPause(at)
    switch (entry.kind) {
      case 'step-succeeded':
      case 'step-failed':
      case 'attempt-failed':
        this.addAttempt(entry, at)
        break
      case 'abandoned':
        this.addAbandoned(entry, at)
        break
      case 'begun':
        // An attempt begins: the entry with its outcome says how long it took.
        break
      case 'undone':
      case 'undo-failed':
      case 'undo-attempt-failed':
        this.addUndo(entry, at)
        break
      case 'waiting':
        this.addWait(entry, at)
        break
      case 'woken':
        this.endWait(entry, at)
        break
      case 'crashed':
        // The time of the crash is not recorded: everything since the last entry may be lost.
        this.point('crashed', { from: this.lastAt, to: at, mark: '╳', colour: 'yellow' }, crashText(entry)).isNotable =
          true
        break
      case 'paused':
        this.pause = this.point('paused', { from: at, to: at, mark: '‖', colour: 'yellow' }, pauseText(entry))
        this.pause.isNotable = true
        break
      default:
        this.addTurn(entry, at)
    }
    this.lastAt = at
  }

  /** Open stretches last until now. */
  close(view: RunView, now: number): void {
    const end = view.endedAt?.getTime() ?? now
    for (const row of [
      ...[...this.openWaits.values()].map((wait) => wait.row),
      ...(this.pause === null ? [] : [this.pause]),
    ]) {
      const stretch = row.stretches.at(-1)
      if (stretch !== undefined) stretch.to = Math.max(stretch.to, end)
    }
    if (isTerminal(view.status) || view.status === 'waiting' || view.status === 'paused') return
    const { dueAt, controlRequest } = view
    const isLater = dueAt !== null && dueAt.getTime() > now
    const detail = isLater ? `goes on in ${formatMs(dueAt.getTime() - now)}` : liveText[view.status]
    const requested = controlRequest === null ? '' : `, asked to ${controlRequest.kind}`
    const from = Math.min(this.lastAt ?? end, end)
    this.point(view.status, { from, to: end, mark: '▷', colour: 'cyan' }, detail + requested)
  }

  private addAttempt(entry: Of<'step-succeeded' | 'step-failed' | 'attempt-failed'>, at: number): void {
    const { attempt, ms } = entry.meta
    const row = this.named(entry.name ?? 'body')
    const isGood = entry.kind === 'step-succeeded'
    row.stretches.push({ from: at - ms, to: at, mark: isGood ? '█' : '░', colour: isGood ? 'green' : 'red' })
    if (isGood) row.detail = formatMs(ms) + (attempt > 1 ? `, attempt ${attempt}` : '')
    else {
      const again = 'delayMs' in entry.meta ? `, again in ${formatMs(entry.meta.delayMs)}` : ''
      const gaveUp = entry.kind === 'step-failed' ? 'gave up at' : 'failed at'
      row.detail = `${gaveUp} attempt ${attempt}${again}: ${visible(messageOf(entry.data))}`
    }
    row.isNotable ||= !isGood
  }

  private addAbandoned({ name, meta: { attempt, ms, undo } }: Of<'abandoned'>, at: number): void {
    const row = this.named(name)
    row.stretches.push({ from: at - ms, to: at, mark: '░', colour: 'red' })
    row.detail = `attempt ${attempt} was abandoned${undo === true ? ': its outcome is unknown' : ''}`
    row.isNotable = true
  }

  private addUndo(entry: Of<'undone' | 'undo-failed' | 'undo-attempt-failed'>, at: number): void {
    const { attempt, ms } = entry.meta
    const row = this.named(`undo ${entry.name}`)
    const isGood = entry.kind === 'undone'
    row.stretches.push({ from: at - ms, to: at, mark: isGood ? '▒' : '░', colour: isGood ? 'yellow' : 'red' })
    const which = attempt > 1 ? `, attempt ${attempt}` : ''
    if (isGood) row.detail = formatMs(ms) + which
    else {
      const end = entry.kind === 'undo-failed' ? 'could not be undone' : 'failed, and is tried again'
      row.detail = `${end}${which}: ${visible(messageOf(entry.data))}`
    }
    row.isNotable = true
  }

  private addWait({ name, meta }: Of<'waiting'>, at: number): void {
    const row = this.named(name)
    row.stretches.push({ from: at, to: at, mark: '·', colour: 'dim' })
    row.detail = `waits ${meta.conditions.map(conditionText).join(', or ')}`
    this.openWaits.set(name, { row, isRace: meta.conditions.length > 1 })
  }

  private endWait({ name, meta }: Of<'woken'>, at: number): void {
    const { row, isRace } = this.openWaits.get(name) ?? { row: this.named(name), isRace: false }
    this.openWaits.delete(name)
    const stretch = row.stretches.at(-1)
    if (stretch !== undefined) stretch.to = at
    row.detail = `waited ${formatMs(at - (stretch?.from ?? at))}${wokenText(meta, isRace)}`
    if (meta.by === undefined || !isFailure(meta.by)) return
    row.stretches.push({ from: at, to: at, mark: '✗', colour: 'red' })
    row.isNotable = true
  }

  /** Rows of a single moment. */
  private addTurn(entry: JournalEntry, at: number): void {
    if (entry.kind === 'continued') {
      // Later steps are different ones, even under the same names.
      this.byName = new Map()
      this.openWaits = new Map()
    }
    const { label, mark, colour, detail, isNotable } = turnOf(entry)
    this.point(label, { from: at, to: at, mark, colour }, detail).isNotable = isNotable
  }

  private endPause(at: number): void {
    const stretch = this.pause?.stretches.at(-1)
    if (stretch !== undefined) stretch.to = at
    this.pause = null
  }

  private named(name: string): Row {
    const known = this.byName.get(name)
    if (known !== undefined) return known
    const row: Row = { label: visible(name), stretches: [], detail: '', isNotable: false }
    this.byName.set(name, row)
    this.rows.push(row)
    return row
  }

  private point(label: string, stretch: Stretch, detail: string): Row {
    const row: Row = { label, stretches: [stretch], detail, isNotable: false }
    this.rows.push(row)
    return row
  }
}

const liveText: Readonly<Partial<Record<RunView['status'], string>>> & Record<string, string> = {
  pending: 'a worker has yet to take it',
  running: 'a worker holds it',
  cancelling: 'a worker has yet to stop and undo it',
}

interface Turn {
  readonly label: string
  readonly mark: string
  readonly colour: Colour
  readonly detail: string
  readonly isNotable: boolean
}

function turnOf(entry: JournalEntry): Turn {
  const quiet = { label: visible(entry.name ?? entry.kind), mark: '○', colour: 'dim', detail: entry.kind } as const
  const loud = { label: entry.kind, mark: '●', colour: 'bold', detail: '', isNotable: true } as const
  switch (entry.kind) {
    case 'started':
      return { ...loud, isNotable: false }
    case 'succeeded':
      return { ...loud, colour: 'green' }
    case 'failing':
    case 'failed': {
      const left = notUndone(entry.meta?.notUndone ?? [])
      return { ...loud, mark: '✗', colour: 'red', detail: visible(messageOf(entry.data)) + left }
    }
    case 'cancelling':
    case 'cancelled': {
      const left = entry.kind === 'cancelled' ? notUndone(entry.meta.notUndone) : ''
      return { ...loud, mark: '■', colour: 'yellow', detail: visible(entry.meta.reason ?? '') + left }
    }
    case 'continued':
      return { ...loud, detail: `as ${visible(entry.meta.type)} v${entry.meta.version}` }
    case 'resumed':
    case 'retried':
      return { ...loud, mark: '▶', detail: visible(entry.meta.note ?? '') }
    case 'damaged':
      return { ...loud, mark: '✗', colour: 'red', detail: visible(entry.meta.why) }
    case 'amended': {
      const detail = `entry ${entry.meta.seq} ${entry.meta.dropped ? 'was dropped' : 'has another result'}`
      return { ...loud, mark: '✎', colour: 'yellow', detail }
    }
    case 'progressed': {
      const text = entry.data === undefined ? '' : ` ${visible(messageOf(entry.data))}`
      const detail = `${Math.round(entry.meta.fraction * 100)} %${text}`
      return { ...quiet, label: 'progress', detail, isNotable: false }
    }
    case 'logged':
      return { ...quiet, detail: visible(messageOf(entry.data)), isNotable: false }
    case 'issued':
      return { ...quiet, detail: 'a completion token was issued', isNotable: false }
    case 'signal-sent': {
      const to = entry.meta === null ? 'to no run: none has that key' : `to run ${visible(entry.meta.to)}`
      return { ...quiet, detail: `a signal ${to}`, isNotable: false }
    }
    case 'broadcast-sent':
      return { ...quiet, detail: `a broadcast to the topic ${visible(entry.meta.topic.name)}`, isNotable: false }
    case 'replied':
      return {
        ...quiet,
        detail: entry.meta.refused === true ? 'a question was refused' : 'a question was answered',
        isNotable: false,
      }
    case 'exposed':
      return { ...quiet, detail: `exposed ${jsonLine(entry.data)}`, isNotable: false }
    default:
      return { ...quiet, isNotable: false }
  }
}

function notUndone(names: readonly string[]): string {
  return names.length === 0 ? '' : ` (not undone: ${names.map(visible).join(', ')})`
}

function crashText({ meta }: Of<'crashed'>): string {
  return `its process died; another took over${meta.crashes > 1 ? `: ${meta.crashes} times in a row by now` : ''}`
}

function pauseText({ meta }: Of<'paused'>): string {
  return pauseSummary(meta.reason, meta.reason === 'drift' ? meta.message : meta.note)
}

/** The run that was waited for has no result. */
function isFailure({ ended, refused }: WokenBy): boolean {
  return refused !== undefined || (ended !== undefined && ended.status !== 'succeeded')
}
