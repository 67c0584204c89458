// A run and its journal as the user sees them: times are dates, payloads are decoded.

import type { Entry, EntryKind } from '../core/entry.ts'
import type { Payloads } from '../core/payload.ts'
import { isTerminal, type Run, type RunStatus } from '../core/run.ts'

export interface RunView {
  readonly id: string
  readonly type: string
  readonly version: number
  readonly status: RunStatus
  readonly priority: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly endedAt: Date | null
  /** When it will go on by itself. */
  readonly dueAt: Date | null
  /** What it returned, once it has succeeded. */
  readonly output?: unknown
  /** Why it gave up, once it has failed. */
  readonly error?: unknown
}

/** An entry as the user reads it: its `kind` tells what `name` and `meta` are. */
export type JournalEntry = {
  [Kind in EntryKind]: {
    readonly seq: number
    readonly at: Date
    readonly kind: Kind
    readonly name: Extract<Entry, { kind: Kind }>['name']
    readonly meta: Extract<Entry, { kind: Kind }>['meta']
    readonly data: unknown
  }
}[EntryKind]

export async function viewOf(run: Run, last: Entry | undefined, payloads: Payloads): Promise<RunView> {
  const { id, type, version, status, priority } = run
  const view = {
    id,
    type,
    version,
    status,
    priority,
    createdAt: new Date(run.createdAt),
    updatedAt: new Date(run.updatedAt),
    endedAt: run.endedAt === null ? null : new Date(run.endedAt),
    dueAt: run.due === null || isTerminal(status) ? null : new Date(run.due),
  }
  if (last?.kind === 'succeeded') return { ...view, output: await readData(id, last, payloads) }
  if (last?.kind === 'failed') return { ...view, error: await readData(id, last, payloads) }
  return view
}

export async function entryView(runId: string, entry: Entry, payloads: Payloads): Promise<JournalEntry> {
  const { seq, at, kind, name, meta } = entry
  return { seq, at: new Date(at), kind, name, meta, data: await readData(runId, entry, payloads) } as JournalEntry
}

async function readData(runId: string, { seq, name, data }: Entry, payloads: Payloads): Promise<unknown> {
  if (data === null) return undefined
  return payloads.decode(await payloads.fetch(data), { runId, seq, name })
}
