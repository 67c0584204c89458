// What the rules of the exchange have decided and `books-writing.ts` is to write.

import type { Draft } from '../../core/entry.ts'
import type { Fate, Message, Reception } from '../../core/message.ts'

/** A message that is put into a mailbox, and what becomes of it. */
export interface Put {
  readonly message: Message
  readonly outcome: Reception
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
  /** Of how many of them, or of the first entry, the feed is to tell. */
  readonly told: number
}
