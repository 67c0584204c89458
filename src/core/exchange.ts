// What passes between runs, and between runs and topics. These rules are decided here, once, for every store: who is told
// of an end, who gets a broadcast, what becomes of what nobody read. A store calls them inside the transaction in which the
// rest of the same operation takes place, and lends them its rows as `Books`.
//
// Whoever waits on something registers under the lock of that (the run, the topic), and looks then; whoever ends or sends
// takes the same lock, and then looks who waits. So one of the two sees the other. Locks are taken in one order everywhere:
// runs by their id, then topics by their name.
//
// What one transaction writes for others is bounded: what is more than a page is left as a chore, see `chore.ts`. So is what
// somebody was to get whom a stranger has locked.

import type { Books, Unread, WaitRow, Waiters } from './books.ts'
import { broadcast, broadcastLetter, catchUp, passOn } from './broadcasting.ts'
import { comeBackAt, isSameChore, placeOf, type Chore } from './chore.ts'
import { passedOnId, type Crowded, type Ended, type Message, type Refused } from './message.ts'
import { isTerminal, type Run } from './run.ts'
import { cancelForParent } from './steering.ts'
import { targetOf, type Watched } from './watched.ts'

/** A run waits on the end of another run, or on a topic, from here on. What it has missed is put into its mailbox now. */
export function watch(books: Books, run: Run, watched: Watched): void {
  if (watched.kind === 'run') return watchRun(books, run, watched.runId)
  const { name, delivery, retainMs, mostSubscribers } = watched
  const backlog = delivery === 'all' && retainMs === 0 ? [] : books.backlog(name, delivery)
  if (delivery === 'one') {
    const [first] = backlog
    if (first !== undefined) {
      books.takeBroadcast(first, run.id)
      return books.put(broadcastLetter(run.id, first))
    }
  }
  if (mostSubscribers !== undefined && books.isCrowded(name, run.id, mostSubscribers)) {
    return refuseWait(books, run, name, { subscribers: mostSubscribers })
  }
  if (delivery === 'all') {
    for (const broadcast of backlog) {
      const letter = broadcastLetter(run.id, broadcast)
      const isKept = broadcast.at > books.now - retainMs
      if (isKept && !books.hasMessage(run.id, letter.id)) books.put(letter)
    }
  }
  const since = books.topicPosition(name)
  books.addWait({
    kind: 'topic',
    target: name,
    runId: run.id,
    effect: 'tell',
    delivery,
    openedAt: books.now,
    since,
    missed: null,
  })
}

function watchRun(books: Books, run: Run, runId: string): void {
  const target = books.run(runId)
  if (target === undefined || isTerminal(target.status)) return tellEnd(books, run, runId, target)
  // As those were told who waited for it when it was removed.
  if (target.deletedAt !== null) return tellEnd(books, run, runId, undefined)
  books.markWatched(target)
  books.addWait({ ...tell(run.id, runId), openedAt: books.now })
}

/** A run waits no more on that. */
export function unwatch(books: Pick<Books, 'now' | 'deleteWait'>, run: Pick<Run, 'id'>, watched: Watched): void {
  // Not found by looking at all who wait there: they may be thousands, and each of them leaves like this.
  books.deleteWait({ ...tell(run.id, targetOf(watched)), kind: watched.kind, openedAt: books.now })
}

function tell(runId: string, target: string): Omit<WaitRow, 'openedAt'> {
  return { kind: 'run', target, runId, effect: 'tell', delivery: null, since: 0, missed: null }
}

/** A run was started by another one: it is told of its end, and ends it with its own, as far as it wants that. */
export function bindChild(books: Books, parent: Run, child: Run, how: ChildBond): void {
  if (how.awaited) watchRun(books, parent, child.id)
  if (how.onParentEnd !== 'cancel') return
  books.markWatched(books.run(parent.id) ?? parent)
  books.addWait({ ...tell(child.id, parent.id), effect: 'cancel', openedAt: books.now })
}

export interface ChildBond {
  /** Its parent watches it. */
  readonly awaited: boolean
  /** What becomes of it when its parent ends first. */
  readonly onParentEnd: 'cancel' | 'abandon'
}

/** A child could not be started. */
export function refuseChild(books: Books, parent: Run, childId: string, refused: Refused): void {
  const data = JSON.stringify(refused)
  books.put({ id: `refused:${childId}`, runId: parent.id, kind: 'refused', name: childId, data, policy: null })
}

/** A topic has no room for a run that would wait on it: its wait is over with that. */
function refuseWait(books: Books, run: Run, topic: string, crowded: Crowded): void {
  // A run may be refused again, and is told again.
  const id = `refused:${topic}:${(books.run(run.id) ?? run).inbox + 1}`
  const data = JSON.stringify(crowded)
  books.put({ id, runId: run.id, kind: 'refused', name: topic, data, policy: null })
}

/** Who has waited longest comes first. One run may be told of an end and be cancelled for it. */
export function longestFirst(a: WaitRow, b: WaitRow): number {
  return a.openedAt - b.openedAt || compared(a.runId, b.runId) || compared(a.effect, b.effect)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The first so many of a list, as a page. */
export function firstWaiters(waits: readonly WaitRow[], most: number): Waiters {
  return { waits: waits.slice(0, most), more: waits.length > most }
}

/** Does one page of a chore, as it was when it was taken. If others have gone on with it since, it is left to them. */
export function doChore(books: Books, taken: Chore): void {
  const chore = books.chore(taken.kind, taken.target)
  if (chore === undefined || !isSameChore(chore, taken)) return
  if (chore.kind === 'topic') return passOn(books, chore)
  if (chore.kind === 'late') return catchUp(books, chore)
  const run = books.run(chore.target)
  const isRemoved = chore.kind === 'end' && run !== undefined && run.deletedAt !== null
  if (run === undefined || !(isTerminal(run.status) || isRemoved)) return books.deleteChore(chore)
  if (chore.kind === 'end') answerPage(books, run, chore, books.pages.watchers)
  else settlePage(books, run, chore, books.pages.mail)
}

/** Tells whether others have to know what has just become of a run: it has ended, or was removed before it could. */
export function hasParted(before: Pick<Run, 'status' | 'deletedAt'>, { status, deletedAt }: Run): boolean {
  if (isTerminal(before.status)) return false
  return isTerminal(status) || (deletedAt !== null && before.deletedAt === null)
}

/** A run has come to its end, in whatever way, or was removed. Call it once, when its row and its last entry say so. */
export function conclude(books: Books, run: Run): void {
  if (run.watched) {
    answerPage(books, run, null, books.pages.withEnd)
    if (run.parentId !== null) forgetChild(books, run.parentId, run.id)
  }
  if (run.inbox === 0 || !isTerminal(run.status)) return
  settlePage(books, run, null, books.pages.withEnd)
}

/** Those who wait on a run that is over are told, or end with it: so many, and who is left is a chore. */
function answerPage(books: Books, run: Run, chore: Chore | null, most: number): void {
  const from = chore?.after ?? null
  // At the place where a page begins up to two may stand that were passed over: told, and cancelled.
  const { waits, more } = books.waitsOnRun(run.id, from, chore?.position === 1 ? most + 2 : most)
  const had = waits.filter(({ runId }) => books.canHave(runId))
  for (const wait of had) answer(books, run, wait)
  const isSomeoneLeft = had.length < waits.length || chore?.position === 1
  const last = waits.at(-1)
  const after = last === undefined ? from : placeOf(last)
  const left = { kind: 'end', target: run.id } as const
  if (more) books.setChore({ ...left, position: isSomeoneLeft ? 1 : 0, after })
  else if (isSomeoneLeft) books.setChore({ ...left, position: 0, after: null }, comeBackAt(partedAt(run), books.now))
  else if (chore !== null) books.deleteChore(chore)
}

function partedAt({ endedAt, deletedAt, updatedAt }: Run): number {
  return endedAt ?? deletedAt ?? updatedAt
}

function answer(books: Books, run: Run, wait: WaitRow): void {
  books.deleteWait(wait)
  const other = books.run(wait.runId)
  if (other === undefined || isTerminal(other.status)) return
  // A removed run will never come to its end: for those who wait it is not there.
  if (wait.effect === 'tell') tellEnd(books, other, run.id, isTerminal(run.status) ? run : undefined)
  else cancelChild(books, other, run)
}

/** Unread messages of a run that has ended are given up: so many, and what is left is a chore. */
function settlePage(books: Books, run: Run, chore: Chore | null, most: number): void {
  const { messages, after } = books.unread(run.id, chore?.position ?? 0, most)
  for (const message of messages) giveUp(books, message)
  if (after !== null) books.setChore({ kind: 'mail', target: run.id, position: after, after: null })
  else if (chore !== null) books.deleteChore(chore)
}

/** A child that is over need not be cancelled any more: a run may start thousands, one after the other. */
function forgetChild(books: Books, parentId: string, runId: string): void {
  books.deleteWait({ ...tell(runId, parentId), effect: 'cancel', openedAt: books.now })
}

function cancelChild(books: Books, child: Run, parent: Run): void {
  const write = cancelForParent(child, `Its parent ${parent.id} has ended.`, books.now)
  if (write !== null) books.rewrite(child, write)
}

/** What becomes of a message whose run has ended. */
export function giveUp(books: Books, message: Message): void {
  const { policy, name, data } = message
  if (policy === null) return books.settle(message, 'discarded')
  if (policy.onUnread === 'dead-letter') return books.settle(message, 'dead')
  books.settle(message, 'broadcast')
  const { delivery, retainMs } = policy
  const sent = { id: passedOnId(message), data, policy, expiresAt: null }
  broadcast(books, { name, delivery, retainMs }, sent, books.pages.passedOn)
}

/** The first so many of a list, as a page. */
export function firstUnread(messages: readonly Message[], most: number): Unread {
  const page = messages.slice(0, most)
  return { messages: page, after: messages.length > most ? (page.at(-1)?.position ?? null) : null }
}

function tellEnd(books: Books, run: Run, endedId: string, ended: Run | undefined): void {
  const data = JSON.stringify(endOf(books, ended))
  // A run may watch the same run again, and be told again.
  const id = `ended:${endedId}:${(books.run(run.id) ?? run).inbox + 1}`
  books.put({ id, runId: run.id, kind: 'ended', name: endedId, data, policy: null })
}

function endOf(books: Books, run: Run | undefined): Ended {
  if (run === undefined) return { status: 'not-found' }
  const { seq, kind, meta, data } = books.lastEntry(run)
  const reason = kind === 'cancelled' ? (meta as { readonly reason: string | null }).reason : null
  return { status: run.status as 'succeeded' | 'failed' | 'cancelled', seq, data, reason }
}
