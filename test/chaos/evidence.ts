// What is left after a chaos run, and all that its checker may look at: what the clients were answered, what the sink saw, and
// every run with its journal.

import { acquittalNote } from '../../src/core/rows/engine-notes.ts'
import type { Holdfast, JournalEntry, RunStatus } from '../../src/index.ts'
import type { StoreCall } from './store-call-log.ts'
import type { Effect } from './testbed.ts'
import type { HistoryEvent, Operation } from './history.ts'
import { offers, typePrefix, type Inputs, type Kind, type Trace } from './workload.ts'

export interface Evidence {
  readonly operations: readonly Operation[]
  readonly effects: readonly Effect[]
  /** Until when the leases of a tenure could be valid; see the testbed. */
  readonly goneAt: ReadonlyMap<string, number>
  readonly runs: readonly FinalRun[]
  /** What was sent to runs and kept when they had ended. */
  readonly deadLetters: readonly { readonly runId: string; readonly id: string }[]
  /** Everything that happened to processes. */
  readonly happened: readonly HistoryEvent[]
  readonly leaseMs: number
  /** Everything that workers have asked of the store. */
  readonly calls: readonly StoreCall[]
}

export interface FinalRun {
  readonly id: string
  readonly kind: Kind
  readonly status: RunStatus
  readonly tags: readonly string[]
  readonly idempotencyKey: string | null
  readonly parentId: string | null
  readonly journal: readonly JournalEntry[]
}

/** Something that must not be. */
export interface Violation {
  /** The promise that is broken. */
  readonly name: string
  readonly text: string
  /** The runs that it is about. */
  readonly runs: readonly string[]
}

type Named<Of extends JournalEntry['kind']> = Extract<JournalEntry, { readonly kind: Of }>

export function entries<Of extends JournalEntry['kind']>(
  { journal }: Pick<FinalRun, 'journal'>,
  ...kinds: readonly Of[]
): readonly Named<Of>[] {
  return journal.filter((entry): entry is Named<Of> => kinds.includes(entry.kind as Of))
}

/** What a run of that kind was started with. */
export function inputOf<K extends Kind>({ journal }: FinalRun, _kind: K): Inputs[K] {
  return journal[0]?.data as Inputs[K]
}

export function traceOf(entry: Named<'step-succeeded'>): Trace {
  return entry.data as Trace
}

/** It was paused, or given up, because too many of its holders died, and none of those took the pause back. */
export function isBlamed(run: Pick<FinalRun, 'journal'>): boolean {
  const { journal } = run
  return (
    isPoisoned(run) ||
    journal.some((entry, index) => {
      if (entry.kind !== 'paused' || entry.meta.reason !== 'crashes') return false
      const next = journal[index + 1]
      return next?.kind !== 'resumed' || next.meta.note !== acquittalNote
    })
  )
}

/** Its holders died so often that it was given up: only a cancellation, which cannot be paused, is. */
export function isPoisoned({ journal }: Pick<FinalRun, 'journal'>): boolean {
  return journal.some((entry, index) => {
    const next = journal[index + 1]?.kind
    return entry.kind === 'crashed' && entry.meta.crashes >= 5 && (next === 'cancelled' || next === 'failed')
  })
}

export function grouped<Item>(items: Iterable<Item>, keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

/** Every run of the workload, with its journal. */
export async function readRuns(client: Holdfast): Promise<readonly FinalRun[]> {
  const found: FinalRun[] = []
  for (let after: string | null | undefined; after !== null;) {
    const page = await client.find({ typePrefix, limit: 100, ...(after === undefined ? {} : { after }) })
    const journals = await Promise.all(page.runs.map(({ id }) => client.journal(id)))
    page.runs.forEach(({ id, type, status, tags, idempotencyKey, parentId }, index) => {
      const kind = type.slice(typePrefix.length) as Kind
      found.push({ id, kind, status, tags, idempotencyKey, parentId, journal: journals[index] ?? [] })
    })
    after = page.next
  }
  return found
}

export async function readDeadLetters(client: Holdfast): Promise<Evidence['deadLetters']> {
  const found: { runId: string; id: string }[] = []
  for (let after: string | null | undefined; after !== null;) {
    const page = await client.deadLetters({ name: offers, limit: 100, ...(after === undefined ? {} : { after }) })
    found.push(...page.letters.map(({ runId, id }) => ({ runId, id })))
    after = page.next
  }
  return found
}
