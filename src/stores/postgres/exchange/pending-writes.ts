// The decisions of the rules of the exchange that `unit-of-work-writer.ts` is to write.

import type { Draft } from '../../../core/model/entry.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Delivery } from '../../../core/model/topic.ts'
import type { Fate, Message, DeliveryOutcome } from '../../../core/model/message.ts'

/** A message that is put into a mailbox, and its fate. */
export interface Put {
  readonly message: Message
  readonly outcome: DeliveryOutcome
  takenBy: number | null
  fate: Fate | null
}

/** Entries that are appended, in order; none if the run was inserted with its first entry. */
export interface Appended {
  readonly runId: string
  /** After which. */
  readonly seq: number
  readonly append: readonly Draft[]
  readonly transition: string | null
  /** How many of them, or that only the first entry, go into the feed. */
  readonly delivered: number
}

/** A key that distinguishes waits. */
export function keyOf({ kind, target, runId, effect }: WaitRow): string {
  return `${kind} ${effect} ${runId} ${target}`
}

/** The list in which a wait stands, with its target. */
export function listOf({ kind, delivery }: WaitRow): 'run' | Delivery {
  return kind === 'run' ? 'run' : (delivery ?? 'all')
}
