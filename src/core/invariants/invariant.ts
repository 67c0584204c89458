// What must be true of every run, whatever crashed, raced or came twice. An invariant has a name, which is what a report
// tells, and a check that says what is wrong. Those of this folder look at what is committed (kind S); stores run them on
// themselves, in their own language where they have one, under the same names.

import type { Entry, EntryKind } from '../model/entry.ts'
import type { Message } from '../model/message.ts'
import type { Run } from '../model/run.ts'

/** `S`: true of every committed state. `T`: true of two states that follow each other. `H`: true of what was answered. */
export type InvariantKind = 'S' | 'T' | 'H'

export interface Violation {
  /** The invariant that does not hold. */
  readonly name: string
  /** Whose; null if it belongs to no run. */
  readonly runId: string | null
  /** What was found. */
  readonly message: string
}

/** One run, whole. */
export interface RunState {
  readonly run: Run
  /** All of them. */
  readonly entries: readonly Entry[]
  /** What lies in its mailbox: messages that no transition has taken. */
  readonly messages: readonly Message[]
  /** Messages that were taken; undefined where a store does not tell. */
  readonly taken?: readonly TakenMessage[]
}

export interface TakenMessage {
  readonly id: string
  readonly position: number
  /** The first entry of the transition that took it; the last entry of its run, if that ended without reading it. */
  readonly takenBy: number
}

interface Named {
  readonly name: string
  readonly kind: InvariantKind
  /** What it says, in a sentence. */
  readonly about: string
}

/** Of one run. `check` says what is wrong, or null. */
export interface RunInvariant extends Named {
  readonly kind: 'S'
  readonly check: (state: RunState, now: number) => string | null
}

/** Of all runs together. */
export interface FleetInvariant extends Named {
  readonly kind: 'S'
  readonly check: (states: readonly RunState[]) => readonly Omit<Violation, 'name'>[]
}

export type EntryOf<Kind extends EntryKind> = Extract<Entry, { kind: Kind }>

export function isKind<Kind extends EntryKind>(entry: Entry, ...kinds: readonly Kind[]): entry is EntryOf<Kind> {
  return (kinds as readonly EntryKind[]).includes(entry.kind)
}

/** The entries of the present incarnation: what replay reads. */
export function sinceBase({ run, entries }: RunState): readonly Entry[] {
  return entries.filter(({ seq }) => seq >= run.base)
}

/** Outcomes that count: those that nobody dropped. */
export function outcomesOf<Kind extends 'step-succeeded' | 'step-failed' | 'abandoned' | 'woken'>(
  entries: readonly Entry[],
  ...kinds: readonly Kind[]
): readonly EntryOf<Kind>[] {
  const dropped = new Set<number>()
  for (const entry of entries) if (isKind(entry, 'amended') && entry.meta.dropped) dropped.add(entry.meta.seq)
  return entries.filter((entry): entry is EntryOf<Kind> => !dropped.has(entry.seq) && isKind(entry, ...kinds))
}

/** The first name that comes twice. */
export function firstTwice(names: Iterable<string>): string | undefined {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}
