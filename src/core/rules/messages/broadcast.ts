// Which runs get a broadcast. `exchange.ts` has the rules for all messages between runs.
//
// No broadcast waits for a foreign transaction that has locked a subscriber. Such a subscriber is late: its wait says which
// broadcast it missed first, later broadcasts skip it as well, and the chore `late` of the topic delivers all of them in
// their order once its row is free. Messages that a queue keeps while its only takers are locked are delivered by the same
// chore.

import type { UnitOfWork, BroadcastResult, WaitRow, WaiterPage } from './unit-of-work.ts'
import { hasExpired, lateAgainMs, placeOf, type Chore, type WaitPosition } from '../../model/chore.ts'
import { broadcastMessageId, type MessageDraft } from '../../model/message.ts'
import { isTerminal } from '../../model/run.ts'
import type { Broadcast, TopicRules } from '../../model/topic.ts'

type New = Omit<Broadcast, 'takenBy' | 'deliveredTo'>

/** Sends to a topic; with its commit the broadcast goes to `most` subscribers at most. */
export function broadcast(
  unitOfWork: UnitOfWork,
  { name, delivery, retainMs }: TopicRules,
  sent: Pick<Broadcast, 'id' | 'data' | 'policy' | 'expiresAt'>,
  most = unitOfWork.pages.subscribers,
): BroadcastResult {
  const known = unitOfWork.broadcast(name, sent.id)
  if (known !== undefined) return { ...outcomeOf(known.deliveredTo), repeated: true }
  const row = { ...sent, topic: name, position: unitOfWork.topicPosition(name) + 1, delivery, at: unitOfWork.now }
  const reached =
    delivery === 'one' ? toQueue(unitOfWork, row, retainMs) : toSubscribers(unitOfWork, row, retainMs, most)
  // A broadcast that is still to be delivered must not be forgotten, however old it is.
  const isOwed = (['topic', 'late'] as const).some((kind) => unitOfWork.chore(kind, name) !== undefined)
  if (!isOwed) unitOfWork.forgetBroadcasts(name, unitOfWork.now - Math.max(retainMs, unitOfWork.pages.rememberedMs))
  return outcomeOf(reached)
}

function toSubscribers(unitOfWork: UnitOfWork, row: New, retainMs: number, most: number): number {
  // An earlier broadcast has not reached all subscribers yet: it comes first, for each of them.
  const isBehind = unitOfWork.chore('topic', row.topic) !== undefined
  const { waits, more } = isBehind ? noWaiters : unitOfWork.waitersOf(row.topic, 'all', null, most)
  const live = punctual(unitOfWork, waits, row)
  unitOfWork.addBroadcast({ ...row, takenBy: null, deliveredTo: live.length }, retainMs)
  for (const { runId } of live) unitOfWork.put(broadcastMessage(runId, row))
  const last = waits.at(-1)
  if (more && last !== undefined) {
    unitOfWork.setChore({ kind: 'topic', target: row.topic, position: row.position, after: placeOf(last) })
  }
  return live.length
}

/**
 * Those that get it now. A locked subscriber has missed it, if it is meant; one that is late already gets it after those that
 * it missed.
 */
function punctual(
  unitOfWork: UnitOfWork,
  waits: readonly WaitRow[],
  { topic, position }: Pick<Broadcast, 'topic' | 'position'>,
  isMeant: (wait: WaitRow) => boolean = () => true,
): readonly WaitRow[] {
  const inTime = waits.filter(({ missed }) => missed === null)
  for (const wait of inTime) {
    if (unitOfWork.canHave(wait.runId) || !isMeant(wait)) continue
    unitOfWork.setMissed(wait, position)
    comeBack(unitOfWork, topic)
  }
  return liveOf(
    unitOfWork,
    inTime.filter(({ runId }) => unitOfWork.canHave(runId)),
  ).filter(isMeant)
}

/** The row of a run that waits on that topic was locked. */
function comeBack(unitOfWork: UnitOfWork, topic: string): void {
  if (unitOfWork.chore('late', topic) !== undefined) return
  unitOfWork.setChore({ kind: 'late', target: topic, position: 0, after: null }, unitOfWork.now + lateAgainMs)
}

const noWaiters: WaiterPage = { waits: [], more: false }

/** To the longest waiting run that is not locked; an earlier message that is still there goes first. */
function toQueue(unitOfWork: UnitOfWork, row: New, retainMs: number): number {
  const isLate = unitOfWork.chore('late', row.topic) !== undefined
  const [oldest] = isLate ? unitOfWork.backlog(row.topic, 'one') : []
  const { taker, isSomeoneLeft } = firstLive(unitOfWork, row.topic)
  const isTaken = taker !== undefined && oldest === undefined
  const takenBy = isTaken ? taker.runId : null
  unitOfWork.addBroadcast({ ...row, takenBy, deliveredTo: isTaken ? 1 : 0 }, retainMs)
  if (taker !== undefined) {
    if (oldest !== undefined) unitOfWork.takeBroadcast(oldest, taker.runId)
    unitOfWork.put(broadcastMessage(taker.runId, oldest ?? row))
    unitOfWork.deleteWait(taker)
  } else if (isSomeoneLeft) comeBack(unitOfWork, row.topic)
  return isTaken ? 1 : 0
}

/** The waits of live runs. Runs that end while they wait leave their waits behind: those are deleted when they are met. */
function liveOf(unitOfWork: UnitOfWork, waits: readonly WaitRow[]): readonly WaitRow[] {
  return waits.filter((wait) => {
    const run = unitOfWork.run(wait.runId)
    const isLive = run !== undefined && !isTerminal(run.status) && run.deletedAt === null
    if (!isLive) unitOfWork.deleteWait(wait)
    return isLive
  })
}

interface Taker {
  readonly taker: WaitRow | undefined
  /** The row of a run that has waited longer was locked. */
  readonly isSomeoneLeft: boolean
}

/** The run that has waited longest on a queue, of those that are not locked. */
function firstLive(unitOfWork: UnitOfWork, topic: string): Taker {
  let after: WaitPosition | null = null
  let isSomeoneLeft = false
  for (;;) {
    const { waits, more }: WaiterPage = unitOfWork.waitersOf(topic, 'one', after, 1)
    const had = waits.filter(({ runId }) => unitOfWork.canHave(runId))
    isSomeoneLeft ||= had.length < waits.length
    const [taker] = liveOf(unitOfWork, had)
    const last = waits.at(-1)
    if (taker !== undefined || !more || last === undefined) return { taker, isSomeoneLeft }
    after = placeOf(last)
  }
}

/** A broadcast goes to the next page of its subscribers. */
export function passOn(unitOfWork: UnitOfWork, chore: Chore): void {
  const { target: topic, position, after } = chore
  const [sent, next] = unitOfWork.broadcastsFrom(topic, position, 2)
  if (sent?.position === position && !hasExpired(sent, unitOfWork.now)) {
    const { waits, more } = unitOfWork.waitersOf(topic, 'all', after, unitOfWork.pages.subscribers)
    // A run that has subscribed again may have got it from the retained broadcasts of the topic.
    const isMeant = ({ runId, since }: WaitRow): boolean =>
      since < position && !unitOfWork.hasMessage(runId, broadcastMessageId(sent))
    const live = punctual(unitOfWork, waits, sent, isMeant)
    for (const { runId } of live) unitOfWork.put(broadcastMessage(runId, sent))
    if (live.length > 0) unitOfWork.addDelivered(sent, live.length)
    const last = waits.at(-1)
    if (more && last !== undefined) return unitOfWork.setChore({ ...chore, after: placeOf(last) })
  }
  const following = sent?.position === position ? next : sent
  if (following === undefined) unitOfWork.deleteChore(chore)
  else unitOfWork.setChore({ ...chore, position: following.position, after: null })
}

/** The next page of late subscribers get the broadcasts that they missed, as many as one transaction may write. */
export function catchUp(unitOfWork: UnitOfWork, chore: Chore): void {
  const { target: topic, after } = chore
  const queue = after === null ? handOut(unitOfWork, topic) : 'done'
  const { waits, more } = unitOfWork.lateOf(topic, after, unitOfWork.pages.late)
  const had = liveOf(
    unitOfWork,
    waits.filter(({ runId }) => unitOfWork.canHave(runId)),
  )
  const isBehind = giveMissed(unitOfWork, topic, had)
  // During a walk of several pages another subscriber may have become late: the walk starts from the front once more.
  const mayBeLeft = chore.position === 1 || after !== null
  const isSomeoneLeft = mayBeLeft || queue === 'left' || waits.some(({ runId }) => !unitOfWork.canHave(runId))
  const last = waits.at(-1)
  const again = { ...chore, position: 0, after: null }
  if (more && last !== undefined) {
    unitOfWork.setChore({ ...chore, position: isSomeoneLeft || isBehind ? 1 : 0, after: placeOf(last) })
  } else if (isBehind || queue === 'given') unitOfWork.setChore(again)
  else if (isSomeoneLeft) unitOfWork.setChore(again, unitOfWork.now + lateAgainMs)
  else unitOfWork.deleteChore(chore)
}

/** Delivers the oldest message of a queue to a run that waits for it. `left`: the rows of all that wait are locked. */
function handOut(unitOfWork: UnitOfWork, topic: string): 'given' | 'left' | 'done' {
  const [oldest] = unitOfWork.backlog(topic, 'one')
  if (oldest === undefined) return 'done'
  const { taker, isSomeoneLeft } = firstLive(unitOfWork, topic)
  if (taker === undefined) return isSomeoneLeft ? 'left' : 'done'
  unitOfWork.takeBroadcast(oldest, taker.runId)
  unitOfWork.put(broadcastMessage(taker.runId, oldest))
  unitOfWork.deleteWait(taker)
  return 'given'
}

/** True if they have missed more than they get now. */
function giveMissed(unitOfWork: UnitOfWork, topic: string, late: readonly WaitRow[]): boolean {
  if (late.length === 0) return false
  const first = late.reduce((least, { missed }) => Math.min(least, missed ?? least), Number.POSITIVE_INFINITY)
  const most = unitOfWork.pages.missed
  const found = unitOfWork.broadcastsFrom(topic, first, most + 1)
  const next = found[most]?.position ?? null
  // A broadcast that is being passed on reaches them with all other subscribers, and so do the later ones.
  const passing = unitOfWork.chore('topic', topic)?.position ?? Number.POSITIVE_INFINITY
  const isOver = next === null || next > passing
  const delivered = new Map<Broadcast, number>()
  for (const wait of late) {
    const missed = wait.missed ?? 0
    for (const sent of found.slice(0, most)) {
      if (sent.position < missed || sent.position > passing || hasExpired(sent, unitOfWork.now)) continue
      if (unitOfWork.hasMessage(wait.runId, broadcastMessageId(sent))) continue
      unitOfWork.put(broadcastMessage(wait.runId, sent))
      delivered.set(sent, (delivered.get(sent) ?? 0) + 1)
    }
    unitOfWork.setMissed(wait, isOver ? null : Math.max(missed, next))
  }
  for (const [sent, runs] of delivered) unitOfWork.addDelivered(sent, runs)
  return !isOver
}

function outcomeOf(runs: number): BroadcastResult {
  return { outcome: runs === 0 ? 'queued' : 'delivered', runs }
}

export function broadcastMessage(
  runId: string,
  sent: Pick<Broadcast, 'topic' | 'id' | 'position' | 'data' | 'policy'>,
): MessageDraft {
  const { topic, data, policy } = sent
  return { id: broadcastMessageId(sent), runId, kind: 'broadcast', name: topic, data, policy }
}
