// The rows that the rules of `exchange.ts` read and write, as every store lends them: from inside the transaction in which
// the rest of the same operation takes place.

import type { Chore, PageLimits, WaitPosition } from '../../model/chore.ts'
import type { Entry } from '../../model/entry.ts'
import type { Fate, Message, MessageDraft } from '../../model/message.ts'
import type { Rewrite } from '../rewrite.ts'
import type { Run } from '../../model/run.ts'
import type { Broadcast, Delivery } from '../../model/topic.ts'

/** A run waits on the end of another one or on a topic. */
export interface WaitRow {
  readonly kind: 'run' | 'topic'
  /** The id of that run, or the name of that topic. */
  readonly target: string
  /** The run that waits. */
  readonly runId: string
  /** The effect of the end on the waiting run: it is notified, or it is cancelled because its parent has ended. */
  readonly effect: 'notify' | 'cancel'
  /** How the topic delivers; null of a run. */
  readonly delivery: Delivery | null
  readonly openedAt: number
  /** The position of the topic's last broadcast when the run subscribed: it gets those after it. 0 of a run. */
  readonly since: number
  /**
   * The position of the first broadcast that it has not got, because it could not be had: it gets that and all after it once it
   * can be. Null if it is not late, and always of a run and of a queue.
   */
  readonly missed: number | null
}

/** The outcome of a broadcast. */
export interface BroadcastResult {
  readonly outcome: 'delivered' | 'queued'
  /** To how many runs it has gone by now: with its commit to a page of its subscribers at most. */
  readonly runs: number
  readonly repeated?: true
}

/** A page of unread messages, first in first out. */
export interface UnreadPage {
  readonly messages: readonly Message[]
  /** There may be others after this position; null if these are all. */
  readonly after: number | null
}

/** The runs that wait on a topic or a run, the longest first; equal ones by the id of the waiting run. */
export interface WaiterPage {
  readonly waits: readonly WaitRow[]
  /** There may be others after these. */
  readonly more: boolean
}

/** The columns that decide whether a run may still get a broadcast. */
export type KeptBroadcast = Pick<Broadcast, 'delivery' | 'at' | 'expiresAt' | 'takenBy'>

/** The rows that the rules read and write. Every run and topic that they name is locked, but for runs that cannot be had. */
export interface UnitOfWork {
  readonly now: number
  /** How much one transaction may write for others. */
  readonly pages: PageLimits
  /** The run as it is by now. */
  run(id: string): Run | undefined
  /**
   * Whether this transaction holds the row of that run. It does not if a foreign transaction has locked the row: a store with
   * such locks skips runs that only receive a message, and waits for those that the transaction is about.
   */
  canHave(runId: string): boolean
  /** Whether it holds the row of that topic: the same of a topic that only receives a broadcast. */
  canHaveTopic(topic: string): boolean
  /** The last entry of a run that has ended. */
  lastEntry(run: Run): Pick<Entry, 'seq' | 'kind' | 'meta' | 'data'>
  /** The first `most` messages after a position that no transition has taken, or fewer: they may be a million. */
  unread(runId: string, after: number, most: number): UnreadPage
  /** Whether a message of that id was ever put into the mailbox of that run. */
  hasMessage(runId: string, id: string): boolean
  /** How many messages of that run are unread, counted up to that many. A store may answer less if they cannot be so many. */
  depth(run: Run, most: number): number
  /**
   * What a run sends is left to a chore: the transaction is that of a user, and locks no receiver. @default it is delivered
   * with the transaction
   */
  readonly sendsLater?: boolean
  /** The entries with which a run has sent messages, of those between two numbers, both included. */
  sentBetween(runId: string, from: number, to: number): readonly Entry[]
  /** The first `most` from that place on that wait on the end of that run, or fewer: they may be a million. */
  waitsOnRun(runId: string, from: WaitPosition | null, most: number): WaiterPage
  /** The first `most` after that place that wait on a topic for this delivery. */
  waitersOf(topic: string, delivery: Delivery, after: WaitPosition | null, most: number): WaiterPage
  /** The pending chore of that run or topic. */
  chore(kind: Chore['kind'], target: string): Chore | undefined
  /** The position of the last broadcast of a topic; 0 if there was none. */
  topicPosition(topic: string): number
  broadcast(topic: string, id: string): Broadcast | undefined
  /** The broadcast of that position, as far as it says whether a run may still get it. */
  broadcastAt(topic: string, position: number): KeptBroadcast | undefined
  /** Whether this many live runs wait on a topic, and this one is not among them. A store may count now and then. */
  isCrowded(topic: string, runId: string, most: number): boolean
  /** The late subscribers of a topic: the first `most` after that place. */
  lateOf(topic: string, after: WaitPosition | null, most: number): WaiterPage
  /** The first `most` with `all` delivery from that position on. */
  broadcastsFrom(topic: string, position: number, most: number): readonly Broadcast[]
  /** The broadcasts of a topic of that delivery that no run has taken, and that have not expired; the oldest first. */
  backlog(topic: string, delivery: Delivery): readonly Broadcast[]

  /** Puts a message into a mailbox, at the next position, and wakes the run if it waits. */
  put(draft: MessageDraft): void
  /** A message leaves the mailbox of a run that has ended, with its last entry. */
  settle(message: Message, fate: Fate): void
  /** Writes the decided row of another run, and appends to its journal. No run ends with that. */
  rewrite(before: Run, write: Rewrite): void
  /** From here on its end must be reported. */
  markWatched(run: Run): void
  /** The same wait again changes nothing. */
  addWait(wait: WaitRow): void
  /** The run that waits so on that, since whenever, does no more. */
  deleteWait(wait: WaitRow): void
  /** It has missed that broadcast; null if it is late no more. */
  setMissed(wait: WaitRow, position: number | null): void
  addBroadcast(broadcast: Broadcast): void
  takeBroadcast(broadcast: Broadcast, runId: string): void
  /** It has gone to this many more runs. */
  addDelivered(broadcast: Broadcast, runs: number): void
  /** This is left to do, from now on or from that time on. */
  setChore(chore: Chore, due?: number): void
  /** Nothing is left to do. */
  deleteChore(chore: Chore): void
  /** Broadcasts that a topic has kept since before that time may be deleted: those that no run can get any more. */
  forgetBroadcasts(topic: string, before: number): void
}
