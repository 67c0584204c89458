// What a run waits on, in the one representation that every style and store shares: a list of conditions with tags.
// The first condition that came true in store time wins; equal times go to the one declared first. Whoever next
// holds the run decides that, from facts, and journals the winner: this file is that decision, and it is pure.

export type Condition =
  /** True at a point in time. */
  | { readonly tag: string; readonly kind: 'time'; readonly at: number }
  /** True some time after the entry that registered it. */
  | { readonly tag: string; readonly kind: 'delay'; readonly ms: number }
  /** True when a signal of that name was accepted. */
  | { readonly tag: string; readonly kind: 'signal'; readonly name: string }
  /** True when that run has ended. */
  | { readonly tag: string; readonly kind: 'run'; readonly runId: string }

export interface Facts {
  readonly now: number
  /** Store time at which the wait was registered. */
  readonly registeredAt: number
  /** Unconsumed signals, oldest first. */
  readonly signals: readonly { readonly name: string; readonly at: number }[]
  readonly ended: readonly { readonly runId: string; readonly at: number }[]
}

export interface Winner {
  readonly tag: string
  readonly trueAt: number
}

/** The point in time at which a condition comes true by itself, or null if only somebody else can make it true. */
export function dueOf(condition: Condition, registeredAt: number): number | null {
  if (condition.kind === 'time') return condition.at
  if (condition.kind === 'delay') return registeredAt + condition.ms
  return null
}

/** The earliest point in time at which one of the conditions comes true by itself. */
export function earliestDue(conditions: readonly Condition[], registeredAt: number): number | null {
  let earliest: number | null = null
  for (const condition of conditions) {
    const due = dueOf(condition, registeredAt)
    if (due !== null && (earliest === null || due < earliest)) earliest = due
  }
  return earliest
}

/** The condition that came true first, or null while none has. */
export function winnerOf(conditions: readonly Condition[], facts: Facts): Winner | null {
  let winner: Winner | null = null
  for (const condition of conditions) {
    const trueAt = trueSince(condition, facts)
    if (trueAt !== null && (winner === null || trueAt < winner.trueAt)) winner = { tag: condition.tag, trueAt }
  }
  return winner
}

function trueSince(condition: Condition, facts: Facts): number | null {
  switch (condition.kind) {
    case 'time':
    case 'delay': {
      const due = dueOf(condition, facts.registeredAt)
      return due !== null && due <= facts.now ? due : null
    }
    case 'signal':
      return facts.signals.find((signal) => signal.name === condition.name)?.at ?? null
    case 'run':
      return facts.ended.find((end) => end.runId === condition.runId)?.at ?? null
  }
}
