// What an end or a broadcast leaves to be written later, because it is more than one transaction may write for others. A chore
// is a row: whoever dies leaves it behind, and any worker goes on with it, page by page, each page in a short transaction of
// its own. There is at most one for each target.
//
// `mail`   A run has ended with more unread messages than go into its last commit. The run counts as ended at once. What is left
//          of its mailbox is settled first in, first out; dead letters appear page by page.
//            (none)     → position    an end found more unread than it settles: all up to this position is settled
//            position   → position    a page was settled
//            position   → (none)      nothing unread is left; or the run lives again, because somebody retried it: then what is
//                                     left is unread mail of a live run, and it may still take it
// `topic`  A broadcast with `topic` delivery goes to more subscribers than one transaction may write to. They are walked in the
//          order in which they subscribed, `after` the last one who got it.
//            (none)     → p, after    the broadcast at position p went to the first page of subscribers
//            p, after   → p, after    it went to another page
//            p, after   → q, null     it went to all of them, and q was sent meanwhile: q goes to nobody before p went to all
//            p, after   → (none)      it went to all of them, and nothing was sent meanwhile
//          While there is such a chore, what is sent to the topic is only kept, so that no broadcast overtakes another at any
//          subscriber. A broadcast goes to those who subscribed before it was sent and are still subscribed when their page
//          comes: who unsubscribes before that has unsubscribed before the broadcast, and who subscribes later, or again, gets it
//          only if the topic retains it. Nobody gets it after it has expired.
//
// A `mail` chore is read and written under the lock of its run, a `topic` chore under the lock of its topic. Who goes on with one
// takes it for a few seconds, so that others take another one; a page that fails is tried again after that.

import type { Broadcast } from './topic.ts'

export interface Chore {
  readonly kind: 'mail' | 'topic'
  /** The id of a run, or the name of a topic. */
  readonly target: string
  /** Of the last message that is settled; of the broadcast that is being passed on. */
  readonly position: number
  /** The last subscriber who got it; null if nobody has, and always of mail. */
  readonly after: Subscribed | null
}

/** A place in the order in which runs subscribed to a topic. */
export interface Subscribed {
  readonly openedAt: number
  readonly runId: string
}

/** How much one transaction may write for others. */
export interface Pages {
  /** Unread messages that are settled together with the end of their run. */
  readonly withEnd: number
  /** Unread messages that are settled by one page of a chore. */
  readonly mail: number
  /** Subscribers who get a broadcast together with its commit, and by one page of a chore. */
  readonly subscribers: number
  /** Subscribers who get an unread message that goes on to its topic, together with its commit: there may be a page of those. */
  readonly passedOn: number
}

export const usualPages: Pages = { withEnd: 100, mail: 500, subscribers: 1_000, passedOn: 10 }

/** For how long a chore belongs to who has taken it. Two at once would only wait for one another. */
export const choreTakenMs = 5_000

/** A chore that a store keeps. */
export interface ChoreRow extends Chore {
  /** From when on it may be taken. */
  readonly due: number
}

/** In how many milliseconds the first of these may be taken. */
export function nextChoreInMs(dues: readonly number[], now: number): number | null {
  return dues.length === 0 ? null : Math.max(0, Math.min(...dues) - now)
}

/** Tells whether nobody has gone on with it since it was taken. */
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

/** Tells whether somebody who subscribed there comes after that place. */
export function isAfter({ openedAt, runId }: Subscribed, place: Subscribed | null): boolean {
  if (place === null) return true
  return openedAt > place.openedAt || (openedAt === place.openedAt && runId > place.runId)
}

/** Tells whether nobody may get it any more. */
export function hasExpired({ expiresAt }: Pick<Broadcast, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}
