// What an end or a broadcast leaves to be written later, because it is more than one transaction may write for others. A chore
// is a row: whoever dies leaves it behind, and any worker goes on with it, page by page, each page in a short transaction of
// its own. There is at most one of each kind for each target.
//
// `end`    A run has ended, or was removed, and more wait on it than go into its last commit: runs that are told, and children
//          that are cancelled. They are answered in pages, who has waited longest first; a wait goes with its answer, so that
//          each gets exactly one.
//            (none)     → after       an end answered the first page, up to this place
//            after      → after       a page was answered
//            after      → again       the walk came to its end, and some on its way could not be had, because a stranger has
//                                     locked their rows: it begins anew with the first who still waits, after a pause
//            again      → after       as the first page of an end
//            after      → (none)      nobody waits any more; or the run lives again, because somebody retried it: then those
//                                     who are left wait for its next end, and its children live on with it
//          Who is still registered is who is left, so the place is there for one thing only: a page need not walk past all
//          who were answered before. Whoever cannot be had keeps nobody behind it waiting, and is met again by the next walk.
//          Nobody begins to wait meanwhile: whoever asks for the end of a run that is over is told at once. The next end of a
//          run that was retried begins with all who wait by then, whatever the end before has left.
// `mail`   A run has ended with more unread messages than go into its last commit. The run counts as ended at once. What is left
//          of its mailbox is settled first in, first out; dead letters appear page by page.
//            (none)     → position    an end found more unread than it settles: all up to this position is settled
//            position   → position    a page was settled
//            position   → (none)      nothing unread is left; or the run lives again, because somebody retried it: then what is
//                                     left is unread mail of a live run, and it may still take it
// `topic`  A broadcast with `all` delivery goes to more subscribers than one transaction may write to. They are walked in the
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
// `late`   A stranger has locked a subscriber of a topic, which could not be given a broadcast: its wait says which one it missed
//          first (`missed`). Those who are late are walked in the order in which they subscribed.
//            (none)     → again       a broadcast met one who cannot be had; or a queue keeps something, and who waits for it cannot be
//                                     had
//            again      → after       a page of those who are late was met: who can be had got what it missed, in its order
//            after      → after       the same
//            after      → again       the walk came to its end: somebody could not be had, missed more than goes into a page, or
//                                     may have become late again behind a walk of several pages
//            after      → (none)      nobody is late, and nobody waits for what a queue keeps
//          While somebody is late, what is sent goes to all others at once and passes that one over, and nothing that the topic keeps
//          is forgotten. Who unsubscribes or ends before its turn comes gets nothing, as with `topic`; nor does anybody get
//          what has expired.
//
// Who only gets something, a run that waits or a child, may be locked by somebody who has nothing to do with us. A store that
// knows such locks passes over it (`UnitOfWork.canHave`), and what was to be done is done without it: no end and no broadcast, and
// nobody who comes after it, waits for a stranger. The chore comes back to it, ever less often.
//
// Chores of a run are read and written under its lock, those of a topic under the lock of that. Who goes on with one
// takes it for a few seconds, so that others take another one; a page that fails is tried again after that.

import type { Broadcast } from './topic.ts'

export interface Chore {
  readonly kind: 'end' | 'mail' | 'topic' | 'late'
  /** The id of a run, or the name of a topic. */
  readonly target: string
  /**
   * Of the last message that is settled; of the broadcast that is being passed on. Of an end, and of those who are late: 1 if
   * somebody was left since the walk began, and 0 if not.
   */
  readonly position: number
  /** The last who got it; null if nobody has, and always of mail. */
  readonly after: WaitPosition | null
}

/** A place in the order in which runs began to wait on a topic, or on a run. */
export interface WaitPosition {
  readonly openedAt: number
  readonly runId: string
}

/** Where somebody waits. */
export function placeOf({ openedAt, runId }: WaitPosition): WaitPosition {
  return { openedAt, runId }
}

/** How much one transaction may write for others. */
export interface PageLimits {
  /** Unread messages that are settled together with the end of their run; and so many of those who wait on it are answered. */
  readonly withEnd: number
  /** What all ends of one transaction may settle and answer, about; each of them one at least. */
  readonly withEnds: number
  /** Those who wait on a run that are answered by one page of a chore. */
  readonly watchers: number
  /** Unread messages that are settled by one page of a chore. */
  readonly mail: number
  /** Subscribers who get a broadcast together with its commit, and by one page of a chore. */
  readonly subscribers: number
  /** Late subscribers who get what they missed by one page of a chore. */
  readonly late: number
  /** Broadcasts that each of them gets then. */
  readonly missed: number
  /** Subscribers who get an unread message that goes on to its topic, together with its commit: there may be a page of those. */
  readonly passedOn: number
}

export const defaultPageLimits: PageLimits = {
  withEnd: 100,
  withEnds: 1_000,
  watchers: 500,
  mail: 500,
  subscribers: 1_000,
  passedOn: 10,
  late: 100,
  missed: 50,
}

/** How much of each one end does, if so many may come in one transaction. */
export function withEachEnd({ withEnd, withEnds }: PageLimits, ends: number): number {
  return Math.max(1, Math.min(withEnd, Math.floor(withEnds / Math.max(1, ends))))
}

/** The same in a transaction that has written so much for others already. */
export function afterOthers(pages: PageLimits, written: number): PageLimits {
  return { ...pages, withEnd: Math.max(1, Math.min(pages.withEnd, pages.withEnds - written)) }
}

/** For how long a chore belongs to who has taken it. Two at once would only wait for one another. */
export const choreTakenMs = 5_000

/** How long nobody comes back to those who could not be had: an eighth of how long that has been so. */
const comeBack = { part: 1 / 8, leastMs: 200, mostMs: 60_000 } as const

/** How long nobody comes back to subscribers who could not be had. What their topic keeps for them grows meanwhile. */
export const lateAgainMs = 1_000

/** When to come back to those who could not be had, of something that happened then. */
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

/** Tells whether who waits there comes at that place or after it. One run may wait twice at one place: told, and cancelled. */
export function isFrom({ openedAt, runId }: WaitPosition, place: WaitPosition | null): boolean {
  if (place === null) return true
  return openedAt > place.openedAt || (openedAt === place.openedAt && runId >= place.runId)
}

/** Tells whether somebody who subscribed there comes after that place. */
export function isAfter({ openedAt, runId }: WaitPosition, place: WaitPosition | null): boolean {
  if (place === null) return true
  return openedAt > place.openedAt || (openedAt === place.openedAt && runId > place.runId)
}

/** Tells whether nobody may get it any more. */
export function hasExpired({ expiresAt }: Pick<Broadcast, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}
