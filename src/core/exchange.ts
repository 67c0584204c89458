// What passes between runs, and between runs and topics. These rules are decided here, once, for every store: who is told
// of an end, who gets a broadcast, what becomes of what nobody read. A store calls them inside the transaction in which the
// rest of the same operation takes place, and lends them its rows as `Books`.
//
// Whoever waits on something registers under the lock of that (the run, the topic), and looks then; whoever ends or sends
// takes the same lock, and then looks who waits. So one of the two sees the other. Locks are taken in one order everywhere:
// runs by their id, then topics by their name.
//
// What one transaction writes for others is bounded: what is more than a page is left as a chore, see `chore.ts`.

import type { Books, Letter, Sent, Unread, WaitRow, Waiters } from './books.ts'
import { hasExpired, isSameChore, type Chore, type Subscribed } from './chore.ts'
import { broadcastMessageId, passedOnId, type Crowded, type Ended, type Message, type Refused } from './message.ts'
import { isTerminal, type Run } from './run.ts'
import { cancelForParent } from './steering.ts'
import { targetOf, type Watched } from './watched.ts'
import { rememberedMs, type Broadcast, type TopicRules } from './topic.ts'

/** A run waits on the end of another run, or on a topic, from here on. What it has missed is put into its mailbox now. */
export function watch(books: Books, run: Run, watched: Watched): void {
  if (watched.kind === 'run') return watchRun(books, run, watched.runId)
  const { name, delivery, retainMs, mostSubscribers } = watched
  const backlog = delivery === 'topic' && retainMs === 0 ? [] : books.backlog(name, delivery)
  if (delivery === 'queue') {
    const [first] = backlog
    if (first !== undefined) {
      books.takeBroadcast(first, run.id)
      return books.put(broadcastLetter(run.id, first))
    }
  }
  if (mostSubscribers !== undefined && books.isCrowded(name, run.id, mostSubscribers)) {
    return refuseWait(books, run, name, { subscribers: mostSubscribers })
  }
  if (delivery === 'topic') {
    for (const broadcast of backlog) {
      const letter = broadcastLetter(run.id, broadcast)
      const isKept = broadcast.at > books.now - retainMs
      if (isKept && !books.hasMessage(run.id, letter.id)) books.put(letter)
    }
  }
  const since = books.topicPosition(name)
  books.addWait({ kind: 'topic', target: name, runId: run.id, effect: 'tell', delivery, openedAt: books.now, since })
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
  return { kind: 'run', target, runId, effect: 'tell', delivery: null, since: 0 }
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

/** Something is sent to a topic; with its commit it goes to `most` subscribers at most. */
export function broadcast(
  books: Books,
  { name, delivery, retainMs }: TopicRules,
  sent: Pick<Broadcast, 'id' | 'data' | 'policy' | 'expiresAt'>,
  most = books.pages.subscribers,
): Sent {
  const known = books.broadcast(name, sent.id)
  if (known !== undefined) return { ...outcomeOf(known.told), repeated: true }
  const { now } = books
  const row = { ...sent, topic: name, position: books.topicPosition(name) + 1, delivery, at: now }
  if (delivery === 'queue') {
    const wait = firstLive(books, name)
    const to = wait === undefined ? { takenBy: null, told: 0 } : { takenBy: wait.runId, told: 1 }
    books.addBroadcast({ ...row, ...to })
    if (wait !== undefined) {
      books.put(broadcastLetter(wait.runId, row))
      books.deleteWait(wait)
    }
    books.forgetBroadcasts(name, now - Math.max(retainMs, rememberedMs))
    return outcomeOf(to.told)
  }
  // What was sent before has not gone to all yet: it comes first, everywhere.
  const isBehind = books.chore('topic', name) !== undefined
  const { waits, more } = isBehind ? noWaiters : books.waitersOf(name, delivery, null, most)
  const live = liveOf(books, waits)
  books.addBroadcast({ ...row, takenBy: null, told: live.length })
  for (const { runId } of live) books.put(broadcastLetter(runId, row))
  const last = waits.at(-1)
  const isLeft = more && last !== undefined
  if (isLeft) books.setChore({ kind: 'topic', target: name, position: row.position, after: placeOf(last) })
  // Nothing that is still being passed on may be forgotten, however old it is.
  if (!isBehind && !isLeft) books.forgetBroadcasts(name, now - Math.max(retainMs, rememberedMs))
  return outcomeOf(live.length)
}

const noWaiters: Waiters = { waits: [], more: false }

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

function placeOf({ openedAt, runId }: WaitRow): Subscribed {
  return { openedAt, runId }
}

/** Those that can still get something. Runs that end while they wait leave their waits behind: they go when they are met. */
function liveOf(books: Books, waits: readonly WaitRow[]): readonly WaitRow[] {
  return waits.filter((wait) => {
    const run = books.run(wait.runId)
    const isLive = run !== undefined && !isTerminal(run.status) && run.deletedAt === null
    if (!isLive) books.deleteWait(wait)
    return isLive
  })
}

/** Who has waited longest on a queue. */
function firstLive(books: Books, topic: string): WaitRow | undefined {
  let after: Subscribed | null = null
  for (;;) {
    const { waits, more }: Waiters = books.waitersOf(topic, 'queue', after, 1)
    const [live] = liveOf(books, waits)
    const last = waits.at(-1)
    if (live !== undefined || !more || last === undefined) return live
    after = placeOf(last)
  }
}

/** Does one page of a chore, as it was when it was taken. If others have gone on with it since, it is left to them. */
export function doChore(books: Books, taken: Chore): void {
  const chore = books.chore(taken.kind, taken.target)
  if (chore === undefined || !isSameChore(chore, taken)) return
  if (chore.kind === 'topic') return passOn(books, chore)
  const run = books.run(chore.target)
  const isRemoved = chore.kind === 'end' && run !== undefined && run.deletedAt !== null
  if (run === undefined || !(isTerminal(run.status) || isRemoved)) return books.deleteChore(chore)
  if (chore.kind === 'end') answerPage(books, run, chore, books.pages.watchers)
  else settlePage(books, run, chore, books.pages.mail)
}

/** A broadcast goes to the next page of its subscribers. */
function passOn(books: Books, chore: Chore): void {
  const { target: topic, position, after } = chore
  const [sent, next] = books.broadcastsFrom(topic, position)
  if (sent?.position === position && !hasExpired(sent, books.now)) {
    const { waits, more } = books.waitersOf(topic, 'topic', after, books.pages.subscribers)
    // One that has subscribed again may have got it from what the topic retains.
    const isMeant = ({ runId, since }: WaitRow): boolean =>
      since < position && !books.hasMessage(runId, broadcastMessageId(sent))
    const live = liveOf(books, waits).filter(isMeant)
    for (const { runId } of live) books.put(broadcastLetter(runId, sent))
    if (live.length > 0) books.countTold(sent, live.length)
    const last = waits.at(-1)
    if (more && last !== undefined) return books.setChore({ ...chore, after: placeOf(last) })
  }
  const following = sent?.position === position ? next : sent
  if (following === undefined) books.deleteChore(chore)
  else books.setChore({ ...chore, position: following.position, after: null })
}

function outcomeOf(runs: number): Sent {
  return { outcome: runs === 0 ? 'queued' : 'delivered', runs }
}

function broadcastLetter(
  runId: string,
  sent: Pick<Broadcast, 'topic' | 'id' | 'position' | 'data' | 'policy'>,
): Letter {
  const { topic, data, policy } = sent
  return { id: broadcastMessageId(sent), runId, kind: 'broadcast', name: topic, data, policy }
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
  const { waits, more } = books.waitsOnRun(run.id, from, most)
  for (const wait of waits) answer(books, run, wait)
  const last = waits.at(-1)
  const after = last === undefined ? from : placeOf(last)
  if (more) books.setChore({ kind: 'end', target: run.id, position: 0, after })
  else if (chore !== null) books.deleteChore(chore)
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
  if (policy.onTargetTerminated === 'dead-letter') return books.settle(message, 'dead')
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
