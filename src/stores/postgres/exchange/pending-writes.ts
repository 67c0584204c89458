// The decisions of the rules of the exchange that `unit-of-work-writer.ts` is to write.

import type { Chore } from '../../../core/model/chore.ts'
import type { Draft } from '../../../core/model/entry.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
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

/** All of them, in one transaction. */
export abstract class PendingWrites {
  readonly changed = new Set<string>()
  readonly appended: Appended[] = []
  hasChildren = false
  readonly puts = new Map<string, Put>()
  readonly takes: { readonly runId: string; readonly id: string; readonly seq: number }[] = []
  readonly settled: { readonly message: Message; readonly seq: number; readonly fate: Fate }[] = []
  /** By kind and target: chores that are set; null if nothing is left to do. */
  readonly chores = new Map<string, { readonly chore: Chore; readonly due: number; readonly isOver: boolean }>()
  readonly delivered: { readonly topic: string; readonly position: number; readonly runs: number }[] = []
  readonly addedWaits = new Map<string, WaitRow>()
  readonly deletedWaits = new Map<string, WaitRow>()
  /** Waits of subscribers that missed a broadcast, or are late no more. */
  readonly missed = new Map<string, WaitRow>()
  readonly positions = new Map<string, number>()
  readonly takenBroadcasts: { readonly topic: string; readonly position: number; readonly by: string }[] = []
  readonly forgotten = new Map<string, number>()
  /** How long topics to which something is sent retain it. */
  readonly retained = new Map<string, number>()
  /** Topics that were looked at, and when the next look comes; null if they go. */
  readonly topics = new Map<string, { readonly lookAt: number | null }>()
  /** Runs that a session holds, and that have got messages. */
  readonly messageArrived = new Set<string>()
}
