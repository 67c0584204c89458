// Draws the journal of a run as a timeline for a terminal: one line for each thing that happened, with a bar from its
// beginning to its end.

import type { JournalEntry } from '../src/index.ts'

const width = 44

export type Paint = ReturnType<typeof painter>

/** Colours for a terminal that shows them; plain text for everything else. */
export function painter(isColoured: boolean) {
  const style = (code: number) => (text: string) => (isColoured ? `\u001B[${code}m${text}\u001B[0m` : text)
  return { bold: style(1), dim: style(2), red: style(31), green: style(32), yellow: style(33) }
}

export function timeline(journal: readonly JournalEntry[], paint: Paint): readonly string[] {
  const began = journal[0]?.at.getTime() ?? 0
  const span = Math.max(1, (journal.at(-1)?.at.getTime() ?? began) - began)
  const column = (at: number): number => Math.round(((at - began) / span) * width)
  return journal
    .filter(({ kind }) => kind !== 'waiting')
    .map((entry) => {
      const end = entry.at.getTime()
      const { label, mark, colour, ms, told } = picture(entry, journal, paint)
      const from = Math.min(column(end - ms), width - 1)
      const bar = mark.repeat(Math.max(1, column(end) - from)).padStart(Math.max(from + 1, column(end)))
      const offset = `${((end - began) / 1000).toFixed(2)} s`.padStart(7)
      return `${offset}  ${label.padEnd(9)} ${colour(bar.padEnd(width + 1))} ${told}`.trimEnd()
    })
}

interface Picture {
  readonly label: string
  readonly mark: string
  readonly colour: (text: string) => string
  /** How far the bar looks back. */
  readonly ms: number
  readonly told: string
}

function picture(entry: JournalEntry, journal: readonly JournalEntry[], paint: Paint): Picture {
  const { kind, name } = entry
  switch (kind) {
    case 'step-succeeded': {
      const { attempt, ms } = entry.meta
      const told = `${ms} ms${attempt > 1 ? `, attempt ${attempt}` : ''}`
      return { label: entry.name, mark: '█', colour: paint.green, ms, told }
    }
    case 'step-failed':
    case 'attempt-failed': {
      const { attempt, ms } = entry.meta
      const told = `${ms} ms, attempt ${attempt} failed: ${messageOf(entry.data)}`
      return { label: name ?? 'body', mark: '░', colour: paint.red, ms, told }
    }
    case 'woken': {
      const ms = sinceWaiting(entry, journal)
      return { label: entry.name, mark: '·', colour: paint.dim, ms, told: `${ms} ms, holding no process` }
    }
    case 'crashed': {
      // Nobody could write down when it died; the time since the last entry is what the crash cost.
      const ms = entry.at.getTime() - (journal[entry.seq - 2]?.at.getTime() ?? 0)
      const told = `${ms} ms lost: its process died, another took over`
      return { label: 'crashed', mark: '╳', colour: paint.yellow, ms, told }
    }
    case 'started':
    case 'succeeded':
    case 'failed':
      return { label: kind, mark: kind === 'failed' ? '✗' : '●', colour: paint.bold, ms: 0, told: '' }
    default:
      return { label: name ?? kind, mark: '○', colour: paint.dim, ms: 0, told: kind }
  }
}

function sinceWaiting({ name, at }: JournalEntry, journal: readonly JournalEntry[]): number {
  const waiting = journal.find((entry) => entry.kind === 'waiting' && entry.name === name)
  return at.getTime() - (waiting?.at ?? at).getTime()
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
