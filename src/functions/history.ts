// What a run's journal already says, arranged for replay: outcomes in the order in which the body must see them again,
// everything else by the identity of the call that it belongs to.

import type { Entry } from '../core/entry.ts'
import { bug } from '../core/error.ts'

/** An entry that settles a call of the body. */
export type Outcome = Extract<Entry, { kind: 'step-succeeded' | 'step-failed' | 'woken' }>

type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

type CallKind = 'step' | 'wait'

export class History {
  readonly input: EntryOf<'started'>
  /** How often the body has failed. */
  readonly bodyFailures: number
  private readonly recorded: Recorded | null
  private at = 0

  constructor(entries: readonly Entry[]) {
    const [first] = entries
    if (first?.kind !== 'started') throw bug('A journal must begin with its input', { first })
    this.input = first
    // A run that has just begun has nothing to replay, and there are many of those.
    this.recorded = entries.length === 1 ? null : arrange(entries)
    this.bodyFailures = this.recorded?.bodyFailures ?? 0
  }

  /** The next recorded outcome that the body has not seen, if any. */
  next(): Outcome | undefined {
    return this.recorded?.outcomes[this.at]
  }

  advance(): void {
    this.at += 1
  }

  /** Tells whether the journal has the outcome of this call. */
  has(kind: CallKind, name: string): boolean {
    return this.recorded?.settled[kind].has(name) ?? false
  }

  /** The last failed attempt of a step that may still be tried again. */
  failedAttempt(step: string): EntryOf<'attempt-failed'> | undefined {
    return this.recorded?.attempts.get(step)
  }

  wait(name: string): EntryOf<'waiting'> | undefined {
    return this.recorded?.waits.get(name)
  }

  value(name: string): EntryOf<'recorded'> | undefined {
    return this.recorded?.values.get(name)
  }

  hasNote(name: string): boolean {
    return this.recorded?.notes.has(name) ?? false
  }

  /** The first outcome left whose call is not among those that the body made. */
  firstWithout(made: (kind: CallKind, name: string) => boolean): Outcome | undefined {
    return this.recorded?.outcomes.slice(this.at).find((outcome) => !made(callKind(outcome), outcome.name))
  }
}

export function callKind(outcome: Outcome): CallKind {
  return outcome.kind === 'woken' ? 'wait' : 'step'
}

interface Recorded {
  readonly outcomes: Outcome[]
  readonly settled: Readonly<Record<CallKind, Set<string>>>
  readonly attempts: Map<string, EntryOf<'attempt-failed'>>
  readonly waits: Map<string, EntryOf<'waiting'>>
  readonly values: Map<string, EntryOf<'recorded'>>
  readonly notes: Set<string>
  bodyFailures: number
}

function arrange(entries: readonly Entry[]): Recorded {
  const recorded: Recorded = {
    outcomes: [],
    settled: { step: new Set(), wait: new Set() },
    attempts: new Map(),
    waits: new Map(),
    values: new Map(),
    notes: new Set(),
    bodyFailures: 0,
  }
  for (const entry of entries) add(recorded, entry)
  return recorded
}

function add(recorded: Recorded, entry: Entry): void {
  switch (entry.kind) {
    case 'step-succeeded':
    case 'step-failed':
    case 'woken':
      recorded.outcomes.push(entry)
      recorded.settled[callKind(entry)].add(entry.name)
      return
    case 'attempt-failed':
      if (entry.name === null) recorded.bodyFailures = entry.meta.attempt
      else recorded.attempts.set(entry.name, entry)
      return
    case 'waiting':
      recorded.waits.set(entry.name, entry)
      return
    case 'recorded':
      recorded.values.set(entry.name, entry)
      return
    case 'logged':
    case 'progressed':
      recorded.notes.add(entry.name)
      return
    default:
      return
  }
}
