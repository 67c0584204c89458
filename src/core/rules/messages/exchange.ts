// The messages between runs, and between runs and topics. These rules are decided here, once, for every store: which runs are
// notified of an end, which get a broadcast, and how unread messages are settled. A store calls them inside the transaction
// in which the rest of the same operation takes place, and lends them its rows as `UnitOfWork`.
//
// A run that waits on a run or a topic registers under the lock of that target, and then reads it; a transaction that ends a
// run or sends to a topic takes the same lock, and then reads which runs wait. So one of the two sees the other. Locks are
// taken in one order everywhere: runs by their id, then topics by their name.
//
// The writes of one transaction for other runs are bounded: those beyond a page are left as a chore, see
// `core/model/chore.ts`. So are messages to a run that a foreign transaction has locked.

import type { UnitOfWork, UnreadPage, WaitRow, WaiterPage } from './unit-of-work.ts'
import { broadcastMessage, catchUp, passOn } from './broadcast.ts'
import { deliverPage } from './send.ts'
import { settleUnread } from './settle.ts'
import { comeBackAt, isSameChore, placeOf, type Chore } from '../../model/chore.ts'
import type { Crowded, Ended, Message, Refused } from '../../model/message.ts'
import { isEffectType } from '../effect-type.ts'
import { isTerminal, type Run } from '../../model/run.ts'
import { cancelForParent } from '../control.ts'
import type { ChildBond } from '../../model/transition.ts'
import { targetOf, type WaitTarget } from '../../model/wait-target.ts'

/**
 * A run waits on the end of another run, or on a topic, from here on. Messages that it has missed are put into its mailbox
 * now.
 */
export function watch(unitOfWork: UnitOfWork, run: Run, watched: WaitTarget): void {
  if (watched.kind === 'run') return watchRun(unitOfWork, run, watched.runId)
  const { name, delivery, retainMs, mostSubscribers } = watched
  const backlog = delivery === 'all' && retainMs === 0 ? [] : unitOfWork.backlog(name, delivery)
  if (delivery === 'one') {
    const [first] = backlog
    if (first !== undefined) {
      unitOfWork.takeBroadcast(first, run.id)
      return unitOfWork.put(broadcastMessage(run.id, first))
    }
  }
  if (mostSubscribers !== undefined && unitOfWork.isCrowded(name, run.id, mostSubscribers)) {
    return refuseWait(unitOfWork, run, name, { subscribers: mostSubscribers })
  }
  if (delivery === 'all') {
    for (const broadcast of backlog) {
      const draft = broadcastMessage(run.id, broadcast)
      const isKept = broadcast.at > unitOfWork.now - retainMs
      if (isKept && !unitOfWork.hasMessage(run.id, draft.id)) unitOfWork.put(draft)
    }
  }
  const since = unitOfWork.topicPosition(name)
  unitOfWork.addWait({
    kind: 'topic',
    target: name,
    runId: run.id,
    effect: 'notify',
    delivery,
    openedAt: unitOfWork.now,
    since,
    missed: null,
  })
}

function watchRun(unitOfWork: UnitOfWork, run: Run, runId: string): void {
  const target = unitOfWork.run(runId)
  if (target === undefined || isTerminal(target.status)) return notifyEnd(unitOfWork, run, runId, target)
  // The same message as for the runs that waited for it when it was removed.
  if (target.deletedAt !== null) return notifyEnd(unitOfWork, run, runId, undefined)
  unitOfWork.markWatched(target)
  unitOfWork.addWait({ ...notifyWait(run.id, runId), openedAt: unitOfWork.now })
}

/** A run waits no more on that. */
export function unwatch(
  unitOfWork: Pick<UnitOfWork, 'now' | 'deleteWait'>,
  run: Pick<Run, 'id'>,
  watched: WaitTarget,
): void {
  // The row is computed, not searched among all that wait there: they may be thousands, and each of them leaves like this.
  unitOfWork.deleteWait({ ...notifyWait(run.id, targetOf(watched)), kind: watched.kind, openedAt: unitOfWork.now })
}

function notifyWait(runId: string, target: string): Omit<WaitRow, 'openedAt'> {
  return { kind: 'run', target, runId, effect: 'notify', delivery: null, since: 0, missed: null }
}

/**
 * A parent has started a child: the parent is notified of the child's end, and the child is cancelled with the parent's, as
 * far as the bond says so.
 */
export function bindChild(unitOfWork: UnitOfWork, parent: Run, child: Run, how: ChildBond): void {
  if (how.awaited) watchRun(unitOfWork, parent, child.id)
  if (how.onParentEnd !== 'cancel') return
  unitOfWork.markWatched(unitOfWork.run(parent.id) ?? parent)
  unitOfWork.addWait({ ...notifyWait(child.id, parent.id), effect: 'cancel', openedAt: unitOfWork.now })
}

/** A child could not be started. */
export function refuseChild(unitOfWork: UnitOfWork, parent: Run, childId: string, refused: Refused): void {
  const data = JSON.stringify(refused)
  unitOfWork.put({ id: `refused:${childId}`, runId: parent.id, kind: 'refused', name: childId, data, policy: null })
}

/** A topic has no room for a run that would wait on it: its wait is over with that. */
function refuseWait(unitOfWork: UnitOfWork, run: Run, topic: string, crowded: Crowded): void {
  // A run may be refused again, with another message.
  const id = `refused:${topic}:${(unitOfWork.run(run.id) ?? run).inbox + 1}`
  const data = JSON.stringify(crowded)
  unitOfWork.put({ id, runId: run.id, kind: 'refused', name: topic, data, policy: null })
}

/** The longest waiting comes first. One run may both be notified of an end and be cancelled for it. */
export function longestFirst(a: WaitRow, b: WaitRow): number {
  return a.openedAt - b.openedAt || compared(a.runId, b.runId) || compared(a.effect, b.effect)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The first this many of a list, as a page. */
export function firstWaiters(waits: readonly WaitRow[], most: number): WaiterPage {
  return { waits: waits.slice(0, most), more: waits.length > most }
}

/** Does one page of a chore, as it was when it was taken. If others have gone on with it since, it is left to them. */
export function doChore(unitOfWork: UnitOfWork, taken: Chore): void {
  const chore = unitOfWork.chore(taken.kind, taken.target)
  if (chore === undefined || !isSameChore(chore, taken)) return
  if (chore.kind === 'topic') return passOn(unitOfWork, chore)
  if (chore.kind === 'late') return catchUp(unitOfWork, chore)
  if (chore.kind === 'send') return deliverPage(unitOfWork, chore)
  const run = unitOfWork.run(chore.target)
  const isRemoved = chore.kind === 'end' && run !== undefined && run.deletedAt !== null
  if (run === undefined || !(isTerminal(run.status) || isRemoved)) return unitOfWork.deleteChore(chore)
  if (chore.kind === 'end') answerPage(unitOfWork, run, chore, unitOfWork.pages.watchers)
  else settlePage(unitOfWork, run, chore, unitOfWork.pages.messages)
}

/** Whether other runs must be notified of a run: it has ended, or was removed before it could. */
export function hasParted(before: Pick<Run, 'status' | 'deletedAt'>, { status, deletedAt }: Run): boolean {
  if (isTerminal(before.status)) return false
  return isTerminal(status) || (deletedAt !== null && before.deletedAt === null)
}

/** A run has ended, in any way, or was removed. Call it once, when its row and its last entry are written. */
export function conclude(unitOfWork: UnitOfWork, run: Run): void {
  if (run.watched) {
    answerPage(unitOfWork, run, null, unitOfWork.pages.withEnd)
    if (run.parentId !== null) forgetChild(unitOfWork, run.parentId, run.id)
  }
  if (run.inbox === 0 || !isTerminal(run.status)) return
  settlePage(unitOfWork, run, null, unitOfWork.pages.withEnd)
}

/** Runs that wait on a run that is over are notified, or end with it: this many at once, and the rest is a chore. */
function answerPage(unitOfWork: UnitOfWork, run: Run, chore: Chore | null, most: number): void {
  const from = chore?.after ?? null
  // At the place where a page begins up to two may stand that were passed over: one notified, one cancelled.
  const { waits, more } = unitOfWork.waitsOnRun(run.id, from, chore?.position === 1 ? most + 2 : most)
  const had = waits.filter(({ runId }) => unitOfWork.canHave(runId))
  for (const wait of had) answer(unitOfWork, run, wait)
  const isSomeoneLeft = had.length < waits.length || chore?.position === 1
  const last = waits.at(-1)
  const after = last === undefined ? from : placeOf(last)
  const left = { kind: 'end', target: run.id } as const
  if (more) unitOfWork.setChore({ ...left, position: isSomeoneLeft ? 1 : 0, after })
  else if (isSomeoneLeft)
    unitOfWork.setChore({ ...left, position: 0, after: null }, comeBackAt(partedAt(run), unitOfWork.now))
  else if (chore !== null) unitOfWork.deleteChore(chore)
}

function partedAt({ endedAt, deletedAt, updatedAt }: Run): number {
  return endedAt ?? deletedAt ?? updatedAt
}

function answer(unitOfWork: UnitOfWork, run: Run, wait: WaitRow): void {
  unitOfWork.deleteWait(wait)
  const other = unitOfWork.run(wait.runId)
  if (other === undefined || isTerminal(other.status)) return
  // A removed run will never end: for the runs that wait, it does not exist.
  if (wait.effect === 'notify') notifyEnd(unitOfWork, other, run.id, isTerminal(run.status) ? run : undefined)
  else cancelChild(unitOfWork, other, run)
}

/** Unread messages of a run that has ended are given up: this many at once, and the rest is a chore. */
function settlePage(unitOfWork: UnitOfWork, run: Run, chore: Chore | null, most: number): void {
  const { messages, after } = unitOfWork.unread(run.id, chore?.position ?? 0, most)
  for (const message of messages) settleUnread(unitOfWork, message)
  if (after !== null) unitOfWork.setChore({ kind: 'messages', target: run.id, position: after, after: null })
  else if (chore !== null) unitOfWork.deleteChore(chore)
}

/** A child that is over need not be cancelled any more: a run may start thousands, one after the other. */
function forgetChild(unitOfWork: UnitOfWork, parentId: string, runId: string): void {
  unitOfWork.deleteWait({ ...notifyWait(runId, parentId), effect: 'cancel', openedAt: unitOfWork.now })
}

/** What an instance has asked for is done, also when the instance is over; but not for one that was cancelled. */
function cancelChild(unitOfWork: UnitOfWork, child: Run, parent: Run): void {
  const isDone = parent.status === 'succeeded' || parent.status === 'failed'
  if (isDone && isEffectType(child.type)) return
  const write = cancelForParent(child, `Its parent ${parent.id} has ended.`, unitOfWork.now)
  if (write !== null) unitOfWork.rewrite(child, write)
}

/** The first this many of a list, as a page. */
export function firstUnread(messages: readonly Message[], most: number): UnreadPage {
  const page = messages.slice(0, most)
  return { messages: page, after: messages.length > most ? (page.at(-1)?.position ?? null) : null }
}

function notifyEnd(unitOfWork: UnitOfWork, run: Run, endedId: string, ended: Run | undefined): void {
  const data = JSON.stringify(endOf(unitOfWork, ended))
  // A run may watch the same run again, and get another message.
  const id = `ended:${endedId}:${(unitOfWork.run(run.id) ?? run).inbox + 1}`
  unitOfWork.put({ id, runId: run.id, kind: 'ended', name: endedId, data, policy: null })
}

function endOf(unitOfWork: UnitOfWork, run: Run | undefined): Ended {
  if (run === undefined) return { status: 'not-found' }
  const { seq, kind, meta, data } = unitOfWork.lastEntry(run)
  const reason = kind === 'cancelled' ? (meta as { readonly reason: string | null }).reason : null
  return { status: run.status as 'succeeded' | 'failed' | 'cancelled', seq, data, reason }
}
