// Who gets what is sent to a topic. `exchange.ts` tells what holds for everything that passes between runs.
//
// Nobody waits for a stranger who has locked a subscriber. Such a subscriber is late: its wait says which broadcast it missed
// first, those after it pass it over as well, and the chore `late` of the topic gives it all of them in their order once it can
// be had. What a queue keeps while somebody waits for it who cannot be had is handed out by the same chore.

import type { Books, Letter, Sent, WaitRow, Waiters } from './books.ts'
import { hasExpired, lateAgainMs, placeOf, type Chore, type Subscribed } from './chore.ts'
import { broadcastMessageId } from './message.ts'
import { isTerminal } from './run.ts'
import { rememberedMs, type Broadcast, type TopicRules } from './topic.ts'

type New = Omit<Broadcast, 'takenBy' | 'told'>

/** Something is sent to a topic; with its commit it goes to `most` subscribers at most. */
export function broadcast(
  books: Books,
  { name, delivery, retainMs }: TopicRules,
  sent: Pick<Broadcast, 'id' | 'data' | 'policy' | 'expiresAt'>,
  most = books.pages.subscribers,
): Sent {
  const known = books.broadcast(name, sent.id)
  if (known !== undefined) return { ...outcomeOf(known.told), repeated: true }
  const row = { ...sent, topic: name, position: books.topicPosition(name) + 1, delivery, at: books.now }
  const told = delivery === 'one' ? toQueue(books, row) : toSubscribers(books, row, most)
  // Nothing that somebody has still to get may be forgotten, however old it is.
  const isOwed = (['topic', 'late'] as const).some((kind) => books.chore(kind, name) !== undefined)
  if (!isOwed) books.forgetBroadcasts(name, books.now - Math.max(retainMs, rememberedMs))
  return outcomeOf(told)
}

function toSubscribers(books: Books, row: New, most: number): number {
  // What was sent before has not gone to all yet: it comes first, everywhere.
  const isBehind = books.chore('topic', row.topic) !== undefined
  const { waits, more } = isBehind ? noWaiters : books.waitersOf(row.topic, 'all', null, most)
  const live = punctual(books, waits, row)
  books.addBroadcast({ ...row, takenBy: null, told: live.length })
  for (const { runId } of live) books.put(broadcastLetter(runId, row))
  const last = waits.at(-1)
  if (more && last !== undefined) {
    books.setChore({ kind: 'topic', target: row.topic, position: row.position, after: placeOf(last) })
  }
  return live.length
}

/** Those that get it now. Who cannot be had has missed it, if it is meant; who is late already gets it after what it missed. */
function punctual(
  books: Books,
  waits: readonly WaitRow[],
  { topic, position }: Pick<Broadcast, 'topic' | 'position'>,
  isMeant: (wait: WaitRow) => boolean = () => true,
): readonly WaitRow[] {
  const inTime = waits.filter(({ missed }) => missed === null)
  for (const wait of inTime) {
    if (books.canHave(wait.runId) || !isMeant(wait)) continue
    books.setMissed(wait, position)
    comeBack(books, topic)
  }
  return liveOf(
    books,
    inTime.filter(({ runId }) => books.canHave(runId)),
  ).filter(isMeant)
}

/** Somebody who waits on that topic could not be had. */
function comeBack(books: Books, topic: string): void {
  if (books.chore('late', topic) !== undefined) return
  books.setChore({ kind: 'late', target: topic, position: 0, after: null }, books.now + lateAgainMs)
}

const noWaiters: Waiters = { waits: [], more: false }

/** To the longest waiting one that can be had; what was sent before and is still there goes first. */
function toQueue(books: Books, row: New): number {
  const isLate = books.chore('late', row.topic) !== undefined
  const [oldest] = isLate ? books.backlog(row.topic, 'one') : []
  const { taker, isSomeoneLeft } = firstLive(books, row.topic)
  const isTaken = taker !== undefined && oldest === undefined
  books.addBroadcast({ ...row, takenBy: isTaken ? taker.runId : null, told: isTaken ? 1 : 0 })
  if (taker !== undefined) {
    if (oldest !== undefined) books.takeBroadcast(oldest, taker.runId)
    books.put(broadcastLetter(taker.runId, oldest ?? row))
    books.deleteWait(taker)
  } else if (isSomeoneLeft) comeBack(books, row.topic)
  return isTaken ? 1 : 0
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

interface Taker {
  readonly taker: WaitRow | undefined
  /** Somebody who has waited longer could not be had. */
  readonly isSomeoneLeft: boolean
}

/** Who has waited longest on a queue, of those that can be had. */
function firstLive(books: Books, topic: string): Taker {
  let after: Subscribed | null = null
  let isSomeoneLeft = false
  for (;;) {
    const { waits, more }: Waiters = books.waitersOf(topic, 'one', after, 1)
    const had = waits.filter(({ runId }) => books.canHave(runId))
    isSomeoneLeft ||= had.length < waits.length
    const [taker] = liveOf(books, had)
    const last = waits.at(-1)
    if (taker !== undefined || !more || last === undefined) return { taker, isSomeoneLeft }
    after = placeOf(last)
  }
}

/** A broadcast goes to the next page of its subscribers. */
export function passOn(books: Books, chore: Chore): void {
  const { target: topic, position, after } = chore
  const [sent, next] = books.broadcastsFrom(topic, position, 2)
  if (sent?.position === position && !hasExpired(sent, books.now)) {
    const { waits, more } = books.waitersOf(topic, 'all', after, books.pages.subscribers)
    // One that has subscribed again may have got it from what the topic retains.
    const isMeant = ({ runId, since }: WaitRow): boolean =>
      since < position && !books.hasMessage(runId, broadcastMessageId(sent))
    const live = punctual(books, waits, sent, isMeant)
    for (const { runId } of live) books.put(broadcastLetter(runId, sent))
    if (live.length > 0) books.countTold(sent, live.length)
    const last = waits.at(-1)
    if (more && last !== undefined) return books.setChore({ ...chore, after: placeOf(last) })
  }
  const following = sent?.position === position ? next : sent
  if (following === undefined) books.deleteChore(chore)
  else books.setChore({ ...chore, position: following.position, after: null })
}

/** The next page of those who are late get what they missed, as many broadcasts of it as one transaction may write. */
export function catchUp(books: Books, chore: Chore): void {
  const { target: topic, after } = chore
  const queue = after === null ? handOut(books, topic) : 'done'
  const { waits, more } = books.lateOf(topic, after, books.pages.late)
  const had = liveOf(
    books,
    waits.filter(({ runId }) => books.canHave(runId)),
  )
  const isBehind = giveMissed(books, topic, had)
  // Behind a walk of several pages somebody may have become late again: it is looked at from the front once more.
  const mayBeLeft = chore.position === 1 || after !== null
  const isSomeoneLeft = mayBeLeft || queue === 'left' || waits.some(({ runId }) => !books.canHave(runId))
  const last = waits.at(-1)
  const again = { ...chore, position: 0, after: null }
  if (more && last !== undefined) {
    books.setChore({ ...chore, position: isSomeoneLeft || isBehind ? 1 : 0, after: placeOf(last) })
  } else if (isBehind || queue === 'given') books.setChore(again)
  else if (isSomeoneLeft) books.setChore(again, books.now + lateAgainMs)
  else books.deleteChore(chore)
}

/** The oldest that a queue keeps goes to who waits for it. `left`: to nobody, because those who wait cannot be had. */
function handOut(books: Books, topic: string): 'given' | 'left' | 'done' {
  const [oldest] = books.backlog(topic, 'one')
  if (oldest === undefined) return 'done'
  const { taker, isSomeoneLeft } = firstLive(books, topic)
  if (taker === undefined) return isSomeoneLeft ? 'left' : 'done'
  books.takeBroadcast(oldest, taker.runId)
  books.put(broadcastLetter(taker.runId, oldest))
  books.deleteWait(taker)
  return 'given'
}

/** True if they have missed more than they get now. */
function giveMissed(books: Books, topic: string, late: readonly WaitRow[]): boolean {
  if (late.length === 0) return false
  const first = late.reduce((least, { missed }) => Math.min(least, missed ?? least), Number.POSITIVE_INFINITY)
  const most = books.pages.missed
  const found = books.broadcastsFrom(topic, first, most + 1)
  const next = found[most]?.position ?? null
  // What is being passed on to all goes to them with all, from the next one on.
  const passing = books.chore('topic', topic)?.position ?? Number.POSITIVE_INFINITY
  const isOver = next === null || next > passing
  const told = new Map<Broadcast, number>()
  for (const wait of late) {
    const missed = wait.missed ?? 0
    for (const sent of found.slice(0, most)) {
      if (sent.position < missed || sent.position > passing || hasExpired(sent, books.now)) continue
      if (books.hasMessage(wait.runId, broadcastMessageId(sent))) continue
      books.put(broadcastLetter(wait.runId, sent))
      told.set(sent, (told.get(sent) ?? 0) + 1)
    }
    books.setMissed(wait, isOver ? null : Math.max(missed, next))
  }
  for (const [sent, runs] of told) books.countTold(sent, runs)
  return !isOver
}

function outcomeOf(runs: number): Sent {
  return { outcome: runs === 0 ? 'queued' : 'delivered', runs }
}

export function broadcastLetter(
  runId: string,
  sent: Pick<Broadcast, 'topic' | 'id' | 'position' | 'data' | 'policy'>,
): Letter {
  const { topic, data, policy } = sent
  return { id: broadcastMessageId(sent), runId, kind: 'broadcast', name: topic, data, policy }
}
