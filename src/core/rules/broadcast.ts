// Who gets what is sent to a topic. `exchange.ts` tells what holds for everything that passes between runs.
//
// Nobody waits for a stranger who has locked a subscriber. Such a subscriber is late: its wait says which broadcast it missed
// first, those after it pass it over as well, and the chore `late` of the topic gives it all of them in their order once it can
// be had. What a queue keeps while somebody waits for it who cannot be had is handed out by the same chore.

import type { UnitOfWork, MessageDraft, BroadcastResult, WaitRow, WaiterPage } from './unit-of-work.ts'
import { hasExpired, lateAgainMs, placeOf, type Chore, type WaitPosition } from '../model/chore.ts'
import { broadcastMessageId } from '../model/message.ts'
import { isTerminal } from '../model/run.ts'
import { rememberedMs, type Broadcast, type TopicRules } from '../model/topic.ts'

type New = Omit<Broadcast, 'takenBy' | 'deliveredTo'>

/** Something is sent to a topic; with its commit it goes to `most` subscribers at most. */
export function broadcast(
  unitOfWork: UnitOfWork,
  { name, delivery, retainMs }: TopicRules,
  sent: Pick<Broadcast, 'id' | 'data' | 'policy' | 'expiresAt'>,
  most = unitOfWork.pages.subscribers,
): BroadcastResult {
  const known = unitOfWork.broadcast(name, sent.id)
  if (known !== undefined) return { ...outcomeOf(known.deliveredTo), repeated: true }
  const row = { ...sent, topic: name, position: unitOfWork.topicPosition(name) + 1, delivery, at: unitOfWork.now }
  const told = delivery === 'one' ? toQueue(unitOfWork, row) : toSubscribers(unitOfWork, row, most)
  // Nothing that somebody has still to get may be forgotten, however old it is.
  const isOwed = (['topic', 'late'] as const).some((kind) => unitOfWork.chore(kind, name) !== undefined)
  if (!isOwed) unitOfWork.forgetBroadcasts(name, unitOfWork.now - Math.max(retainMs, rememberedMs))
  return outcomeOf(told)
}

function toSubscribers(unitOfWork: UnitOfWork, row: New, most: number): number {
  // What was sent before has not gone to all yet: it comes first, everywhere.
  const isBehind = unitOfWork.chore('topic', row.topic) !== undefined
  const { waits, more } = isBehind ? noWaiters : unitOfWork.waitersOf(row.topic, 'all', null, most)
  const live = punctual(unitOfWork, waits, row)
  unitOfWork.addBroadcast({ ...row, takenBy: null, deliveredTo: live.length })
  for (const { runId } of live) unitOfWork.put(broadcastMessage(runId, row))
  const last = waits.at(-1)
  if (more && last !== undefined) {
    unitOfWork.setChore({ kind: 'topic', target: row.topic, position: row.position, after: placeOf(last) })
  }
  return live.length
}

/** Those that get it now. Who cannot be had has missed it, if it is meant; who is late already gets it after what it missed. */
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

/** Somebody who waits on that topic could not be had. */
function comeBack(unitOfWork: UnitOfWork, topic: string): void {
  if (unitOfWork.chore('late', topic) !== undefined) return
  unitOfWork.setChore({ kind: 'late', target: topic, position: 0, after: null }, unitOfWork.now + lateAgainMs)
}

const noWaiters: WaiterPage = { waits: [], more: false }

/** To the longest waiting one that can be had; what was sent before and is still there goes first. */
function toQueue(unitOfWork: UnitOfWork, row: New): number {
  const isLate = unitOfWork.chore('late', row.topic) !== undefined
  const [oldest] = isLate ? unitOfWork.backlog(row.topic, 'one') : []
  const { taker, isSomeoneLeft } = firstLive(unitOfWork, row.topic)
  const isTaken = taker !== undefined && oldest === undefined
  unitOfWork.addBroadcast({ ...row, takenBy: isTaken ? taker.runId : null, deliveredTo: isTaken ? 1 : 0 })
  if (taker !== undefined) {
    if (oldest !== undefined) unitOfWork.takeBroadcast(oldest, taker.runId)
    unitOfWork.put(broadcastMessage(taker.runId, oldest ?? row))
    unitOfWork.deleteWait(taker)
  } else if (isSomeoneLeft) comeBack(unitOfWork, row.topic)
  return isTaken ? 1 : 0
}

/** Those that can still get something. Runs that end while they wait leave their waits behind: they go when they are met. */
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
  /** Somebody who has waited longer could not be had. */
  readonly isSomeoneLeft: boolean
}

/** Who has waited longest on a queue, of those that can be had. */
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
    // One that has subscribed again may have got it from what the topic retains.
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

/** The next page of those who are late get what they missed, as many broadcasts of it as one transaction may write. */
export function catchUp(unitOfWork: UnitOfWork, chore: Chore): void {
  const { target: topic, after } = chore
  const queue = after === null ? handOut(unitOfWork, topic) : 'done'
  const { waits, more } = unitOfWork.lateOf(topic, after, unitOfWork.pages.late)
  const had = liveOf(
    unitOfWork,
    waits.filter(({ runId }) => unitOfWork.canHave(runId)),
  )
  const isBehind = giveMissed(unitOfWork, topic, had)
  // Behind a walk of several pages somebody may have become late again: it is looked at from the front once more.
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

/** The oldest that a queue keeps goes to who waits for it. `left`: to nobody, because those who wait cannot be had. */
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
  // What is being passed on to all goes to them with all, from the next one on.
  const passing = unitOfWork.chore('topic', topic)?.position ?? Number.POSITIVE_INFINITY
  const isOver = next === null || next > passing
  const told = new Map<Broadcast, number>()
  for (const wait of late) {
    const missed = wait.missed ?? 0
    for (const sent of found.slice(0, most)) {
      if (sent.position < missed || sent.position > passing || hasExpired(sent, unitOfWork.now)) continue
      if (unitOfWork.hasMessage(wait.runId, broadcastMessageId(sent))) continue
      unitOfWork.put(broadcastMessage(wait.runId, sent))
      told.set(sent, (told.get(sent) ?? 0) + 1)
    }
    unitOfWork.setMissed(wait, isOver ? null : Math.max(missed, next))
  }
  for (const [sent, runs] of told) unitOfWork.addDelivered(sent, runs)
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
