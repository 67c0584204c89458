// A chore is the work that an end or a broadcast leaves for later, because it is more than one transaction may write for other
// runs. It is a row: if its worker dies, any other worker continues it, page by page, each page in a short transaction. There is
// at most one chore of each kind for each target.
//
// `end`    A run has ended, or was removed, and more runs wait for it than its last commit may settle: runs to notify, and
//          children to cancel. They are settled in pages, the longest waiting first. A wait is deleted with its notification, so
//          that each run gets exactly one.
//            (none)     → after       an end settled the first page, up to this place
//            after      → after       a page was settled
//            after      → again       the pass is complete, and skipped some runs, because a foreign transaction has locked
//                                     their rows: after a pause it starts over with the first run that still waits
//            again      → after       like the first page of an end
//            after      → (none)      no run waits any more; or the run lives again after a retry: then the remaining runs wait
//                                     for its next end, and its children live on with it
//          The waits that are still registered are the remaining ones, so the place has one purpose: a page need not scan all
//          waits that were settled before. A skipped run delays no run behind it, and the next pass reaches it again.
//          No run is added meanwhile: a run that begins to wait for an ended run is notified at once. The next end of a
//          retried run begins with all runs that wait by then, regardless of what the previous end has left.
// `messages` A run has ended with more unread messages than its last commit may settle. The run counts as ended at once. The rest
//          of its mailbox is settled first in, first out; dead letters appear page by page.
//            (none)     → position    an end found more unread messages than it settles: all up to this position are settled
//            position   → position    a page was settled
//            position   → (none)      no unread message is left; or the run lives again after a retry: then the rest are
//                                     unread messages of a live run, which may still take them
// `topic`  A broadcast with `all` delivery has more subscribers than one transaction may write to. They are processed in the
//          order in which they subscribed, `after` the last one that got it.
//            (none)     → p, after    the broadcast at position p went to the first page of subscribers
//            p, after   → p, after    it went to another page
//            p, after   → q, null     it went to all of them, and q was sent meanwhile: q goes to no run before p went to all
//            p, after   → (none)      it went to all of them, and nothing was sent meanwhile
//          While there is such a chore, a new broadcast of the topic is only stored, so that no broadcast overtakes another at
//          any subscriber. A broadcast goes to the runs that subscribed before it was sent and are still subscribed when their
//          page is processed: a run that unsubscribes before that counts as unsubscribed before the broadcast, and a run that
//          subscribes later, or again, gets it only if the topic retains it. No run gets it after it has expired.
//
// `late`   A foreign transaction has locked a subscriber of a topic, so that a broadcast skipped it: its wait records the first
//          broadcast that it missed (`missed`). Late runs are processed in the order in which they subscribed.
//            (none)     → again       a broadcast skipped a locked run; or a queue keeps a message, and the runs that wait for
//                                     it are locked
//            again      → after       a page of late runs was processed: those that are free got what they missed, in order
//            after      → after       the same
//            after      → again       the pass is complete: a run was locked, missed more than fits into a page, or may have
//                                     become late again behind a pass of several pages
//            after      → (none)      no run is late, and no run waits for a message that a queue keeps
//          While a run is late, new broadcasts go to all other subscribers at once and skip that one, and the topic deletes no
//          broadcast. A run that unsubscribes or ends before its turn gets nothing, as with `topic`; no run gets an expired
//          broadcast.
// `send`   A run has sent a message that could not be delivered with its commit: a foreign transaction has locked the run or the
//          topic that it is for, or that takes no more now (`limits.mailbox`, `limits.retained`). The target of the chore
//          names the sender and the receiver, so that no receiver delays what is sent to another. The messages are entries of
//          the sender's journal, and are delivered in its order.
//            (none)     → position    the message of that entry could not be delivered: it is the first of those
//            position   → position    a page of the journal was read, up to there; or the same message has to wait again
//            position   → (none)      the journal has no later entry
//          While there is such a chore, what the run sends to that receiver is only appended to its journal. A receiver that
//          has ended, or does not exist, gets its messages by the rules for late ones, and so ends the chore. The chore goes
//          on when the sender has ended.
//
// A foreign transaction may have locked a run that only receives something: a waiting run, or a child. A store that has such locks
// skips it (`UnitOfWork.canHave`), and the rest is done without it: no end and no broadcast, and nothing behind them, waits for a
// foreign lock. The chore returns to the run, less and less often.
//
// Chores of a run are read and written under its lock, those of a topic under the lock of the topic. A worker takes a chore for a
// few seconds, so that other workers take other chores; a page that fails is tried again after that.

import { rememberedMs, type Broadcast } from './topic.ts'

export interface Chore {
  readonly kind: 'end' | 'messages' | 'topic' | 'late' | 'send'
  /** The id of a run, or the name of a topic; of `send` both parties: see `partiesOf`. */
  readonly target: string
  /**
   * Of the last message that is settled; of the broadcast that is being passed on; of the first entry that may have to be
   * delivered. Of `end` and `late`: 1 if the current pass has skipped a run, and 0 if not.
   */
  readonly position: number
  /** The last run that got it; null if none has, and always null for `messages` and `send`. */
  readonly after: WaitPosition | null
}

/** A place in the order in which runs began to wait on a topic, or on a run. */
export interface WaitPosition {
  readonly openedAt: number
  readonly runId: string
}

/** The place of a wait. */
export function placeOf({ openedAt, runId }: WaitPosition): WaitPosition {
  return { openedAt, runId }
}

/** How much one transaction may write for other runs. */
export interface PageLimits {
  /** Unread messages, and waiting runs, that are settled in the commit of an end. */
  readonly withEnd: number
  /** The approximate bound for all ends of one transaction together; each of them settles one at least. */
  readonly withEnds: number
  /** Waiting runs that one page of a chore settles. */
  readonly watchers: number
  /** Unread messages that one page of a chore settles. */
  readonly messages: number
  /** Subscribers that get a broadcast in its commit, and in one page of a chore. */
  readonly subscribers: number
  /** Late subscribers that one page of a chore processes. */
  readonly late: number
  /** Missed broadcasts that each of them gets in one page. */
  readonly missed: number
  /**
   * Subscribers that get an unread message that is passed on to its topic, in the same commit: there may be a page of such
   * messages.
   */
  readonly passedOn: number
  /** Entries of the sender's journal that one page of a chore reads for what is to be delivered. */
  readonly sent: number
  /** Waits that one look at a topic goes through, to see whether it is used. */
  readonly topicWaits: number
  /** How long a topic that is used rests until the next look. */
  readonly topicRestMs: number
  /** The least time for which a topic remembers the ids of its broadcasts. */
  readonly rememberedMs: number
}

export const defaultPageLimits: PageLimits = {
  withEnd: 100,
  withEnds: 1_000,
  watchers: 500,
  messages: 500,
  subscribers: 1_000,
  passedOn: 10,
  late: 100,
  missed: 50,
  sent: 500,
  topicWaits: 500,
  topicRestMs: rememberedMs,
  rememberedMs,
}

/** How much each end settles, if one transaction may have this many ends. */
export function withEachEnd({ withEnd, withEnds }: PageLimits, ends: number): number {
  return Math.max(1, Math.min(withEnd, Math.floor(withEnds / Math.max(1, ends))))
}

/** The same in a transaction that has already written this much for other runs. */
export function afterOthers(pages: PageLimits, written: number): PageLimits {
  return { ...pages, withEnd: Math.max(1, Math.min(pages.withEnd, pages.withEnds - written)) }
}

/** How long a chore belongs to the worker that took it. Two workers at once would only wait for each other. */
export const choreTakenMs = 5_000

/** The pause before skipped runs are tried again: an eighth of the time for which they have been locked. */
const comeBack = { part: 1 / 8, leastMs: 200, mostMs: 60_000 } as const

/** The pause before skipped subscribers are tried again. Their topic keeps more broadcasts for them meanwhile. */
export const lateAgainMs = 1_000

/** When to try skipped receivers again, of an end or a message of that time. */
export function comeBackAt(happenedAt: number, now: number): number {
  const { part, leastMs, mostMs } = comeBack
  return now + Math.round(Math.min(Math.max((now - happenedAt) * part, leastMs), mostMs))
}

/** A chore that a store keeps. */
export interface ChoreRow extends Chore {
  /** From when on it may be taken. */
  readonly due: number
}

/** In how many milliseconds the first of these may be taken. */
export function nextChoreInMs(dues: readonly number[], now: number): number | null {
  return dues.length === 0 ? null : Math.max(0, Math.min(...dues) - now)
}

/** Whether no other worker has continued it since it was taken. */
export function isSameChore(a: Chore | undefined, b: Chore): boolean {
  return (
    a?.kind === b.kind &&
    a.target === b.target &&
    a.position === b.position &&
    a.after?.openedAt === b.after?.openedAt &&
    a.after?.runId === b.after?.runId
  )
}

/** The first that may be taken: the longest due, then by kind and target. */
export function choreOrder(a: ChoreRow, b: ChoreRow): number {
  return a.due - b.due || compared(a.kind, b.kind) || compared(a.target, b.target)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * Whether the wait is at that place or after it. One run may have two waits at one place: one to be notified, one to
 * be cancelled.
 */
export function isFrom({ openedAt, runId }: WaitPosition, place: WaitPosition | null): boolean {
  if (place === null) return true
  return openedAt > place.openedAt || (openedAt === place.openedAt && runId >= place.runId)
}

/** Whether a subscription is after that place. */
export function isAfter({ openedAt, runId }: WaitPosition, place: WaitPosition | null): boolean {
  if (place === null) return true
  return openedAt > place.openedAt || (openedAt === place.openedAt && runId > place.runId)
}

/** Whether it has expired, so that no run may get it. */
export function hasExpired({ expiresAt }: Pick<Broadcast, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}

/** A run or a topic that a message is for. */
export interface Receiver {
  readonly kind: 'run' | 'topic'
  /** The id of the run, or the name of the topic. */
  readonly name: string
}

/** The target of the chore that delivers what a run could not send to a receiver at once. */
export function sendTarget(senderId: string, { kind, name }: Receiver): string {
  return `${senderId}${kind === 'topic' ? topicMark : ' '}${name}`
}

/** The run that sends, and its receiver, of the target of such a chore. */
export function partiesOf(target: string): { readonly senderId: string; readonly receiver: Receiver } {
  const kind = target.charAt(idLength) === topicMark ? 'topic' : 'run'
  return { senderId: target.slice(0, idLength), receiver: { kind, name: target.slice(idLength + 1) } }
}

const topicMark = '/'
const idLength = 36
