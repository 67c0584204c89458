// What a run sends with a transition: signals to runs and broadcasts to topics, in the commit that says so. Its entries are the
// messages (`core/model/message.ts`), and each is delivered by the rules for messages of clients, once.
//
// Nothing about a receiver fails or delays the sender. A message to a run that does not exist is dropped, and one to a run that
// has ended is settled by its policy, as if a client had sent it. If a foreign transaction has locked the receiver, or it takes
// no more messages now, the message is left to a chore of this sender and this receiver (`core/model/chore.ts`); so are the
// later ones to the same receiver, which keeps their order. In a transaction of a user everything is left to chores.

import { broadcast } from './broadcast.ts'
import type { NewMessage } from './deliver.ts'
import { isMailboxFull, isTopicFull } from './quota.ts'
import { settleLate } from './settle.ts'
import type { UnitOfWork } from './unit-of-work.ts'
import { comeBackAt, type Chore, partiesOf, sendTarget, type Receiver } from '../../model/chore.ts'
import type { Draft, Entry } from '../../model/entry.ts'
import { isTerminal, type Run } from '../../model/run.ts'
import { sentMessageId } from '../../model/message.ts'
import type { NewBroadcast } from '../../model/topic.ts'

/** A message on its way. */
export interface Outgoing {
  /** The number of the entry that says so. */
  readonly seq: number
  readonly to: Receiver
  readonly message: NewMessage | NewBroadcast
}

/** What a run sends with these entries, which follow that number. */
export function outgoingIn(runId: string, after: number, entries: readonly Draft[]): readonly Outgoing[] {
  return entries.flatMap((entry, at) => outgoingOf(runId, after + at + 1, entry) ?? [])
}

/** What a run sends with that entry; null if it sends nothing. */
export function outgoingOf(runId: string, seq: number, entry: Draft | Entry): Outgoing | null {
  const id = sentMessageId(runId, seq)
  if (entry.kind === 'broadcast-sent') {
    const { meta, data } = entry
    return { seq, to: { kind: 'topic', name: meta.topic.name }, message: { id, data, ...meta } }
  }
  if (entry.kind !== 'signal-sent' || entry.meta === null || entry.data === null) return null
  const { to, signal: name, kind, policy, mostUnread } = entry.meta
  const message = { id, runId: to, kind, name, data: entry.data, policy }
  return {
    seq,
    to: { kind: 'run', name: to },
    message: mostUnread === undefined ? message : { ...message, mostUnread },
  }
}

/** Delivers what a transition sends: `sender` is the row of its run after its entries, which follow that number. */
export function sendAll(unitOfWork: UnitOfWork, sender: Run, after: number, entries: readonly Draft[]): void {
  for (const outgoing of outgoingIn(sender.id, after, entries)) {
    const target = sendTarget(sender.id, outgoing.to)
    // The chore comes to it, after those that it has yet to deliver.
    if (unitOfWork.chore('send', target) !== undefined) continue
    const { now, sendsLater = false } = unitOfWork
    if (!sendsLater && isDelivered(unitOfWork, outgoing, now)) continue
    const chore = { kind: 'send', target, position: outgoing.seq, after: null } as const
    unitOfWork.setChore(chore, sendsLater ? now : comeBackAt(now, now))
  }
}

/** Delivers what a run has sent to one receiver, and that could not be delivered before: a page of its journal. */
export function deliverPage(unitOfWork: UnitOfWork, chore: Chore): void {
  const { senderId, receiver } = partiesOf(chore.target)
  const sender = unitOfWork.run(senderId)
  if (sender === undefined) return unitOfWork.deleteChore(chore)
  const upTo = Math.min(sender.seq, chore.position + unitOfWork.pages.sent - 1)
  for (const entry of unitOfWork.sentBetween(senderId, chore.position, upTo)) {
    const outgoing = outgoingOf(senderId, entry.seq, entry)
    if (outgoing === null || outgoing.to.kind !== receiver.kind || outgoing.to.name !== receiver.name) continue
    if (isDelivered(unitOfWork, outgoing, entry.at)) continue
    return unitOfWork.setChore({ ...chore, position: entry.seq }, comeBackAt(entry.at, unitOfWork.now))
  }
  if (upTo < sender.seq) unitOfWork.setChore({ ...chore, position: upTo + 1 })
  else unitOfWork.deleteChore(chore)
}

/** Delivers a message that was sent at that time. False if its receiver is locked, or takes no more now. */
function isDelivered(unitOfWork: UnitOfWork, { message }: Outgoing, sentAt: number): boolean {
  return 'topic' in message ? isBroadcast(unitOfWork, message, sentAt) : isPut(unitOfWork, message)
}

function isPut(unitOfWork: UnitOfWork, message: NewMessage): boolean {
  const { runId, id, policy } = message
  if (!unitOfWork.canHave(runId)) return false
  const run = unitOfWork.run(runId)
  // Nobody can read it, or it is there.
  if (run === undefined || run.deletedAt !== null || unitOfWork.hasMessage(runId, id)) return true
  if (isTerminal(run.status)) {
    if (policy === null) return true
    if (policy.onUnread === 'broadcast' && !unitOfWork.canHaveTopic(message.name)) return false
    settleLate(unitOfWork, run, message)
    return true
  }
  if (isMailboxFull(run, message, (most) => unitOfWork.depth(run, most))) return false
  unitOfWork.put(message)
  return true
}

/** A transition may send many broadcasts, so each goes to few subscribers with its commit, and to the others by a chore. */
function isBroadcast(unitOfWork: UnitOfWork, message: NewBroadcast, sentAt: number): boolean {
  const { id, topic, data, policy, expiresInMs, mostKept } = message
  if (!unitOfWork.canHaveTopic(topic.name)) return false
  const isKnown = unitOfWork.broadcast(topic.name, id) !== undefined
  if (!isKnown && mostKept !== undefined && isTopicFull(unitOfWork, topic, mostKept)) return false
  const expiresAt = expiresInMs === null ? null : sentAt + expiresInMs
  if (!isKnown) broadcast(unitOfWork, topic, { id, data, policy, expiresAt }, unitOfWork.pages.passedOn)
  return true
}
