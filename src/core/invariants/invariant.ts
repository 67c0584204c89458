// The shape of an invariant: a statement about runs that holds under every crash, race and repetition. It has a name, which
// a report gives, and a check that describes a violation. The invariants of this folder check committed state (kind S);
// stores with SQL check the same ones in SQL, under the same names.

import type { Entry, EntryKind } from '../model/entry.ts'
import type { Message } from '../model/message.ts'
import type { Run } from '../model/run.ts'

/** `S`: true of every committed state. `T`: true of two consecutive states. `H`: true of the answers of calls. */
export type InvariantKind = 'S' | 'T' | 'H'

export interface Violation {
  /** The invariant that does not hold. */
  readonly name: string
  /** The run; null if it belongs to no run. */
  readonly runId: string | null
  /** The violation, in words. */
  readonly message: string
}

/** One run, whole. */
export interface RunState {
  readonly run: Run
  /** All of them. */
  readonly entries: readonly Entry[]
  /** The messages that no transition has taken. */
  readonly messages: readonly Message[]
  /** Messages that were taken; undefined if the store does not keep them. */
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
  /** The invariant, in a sentence. */
  readonly about: string
}

/** An invariant of one run. `check` describes a violation, or returns null. */
export interface RunInvariant extends Named {
  readonly kind: 'S'
  readonly check: (state: RunState, now: number) => string | null
}

/** An invariant of all runs together. */
export interface FleetInvariant extends Named {
  readonly kind: 'S'
  readonly check: (states: readonly RunState[]) => readonly Omit<Violation, 'name'>[]
}

export type EntryOf<Kind extends EntryKind> = Extract<Entry, { kind: Kind }>

export function isKind<Kind extends EntryKind>(entry: Entry, ...kinds: readonly Kind[]): entry is EntryOf<Kind> {
  return (kinds as readonly EntryKind[]).includes(entry.kind)
}

/** The entries of the present incarnation, which a replay reads. */
export function sinceBase({ run, entries }: RunState): readonly Entry[] {
  return entries.filter(({ seq }) => seq >= run.base)
}

/** Outcomes that count: those that no repair dropped. */
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
