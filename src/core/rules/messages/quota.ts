// How many messages may be unread before more are refused. Each sender names its bound with each message, so that every
// process can have its own, and a store that knows nothing of bounds refuses nothing. Only messages of clients are refused:
// messages of the engine itself (ends, refused children, copies of a broadcast that was accepted) are always accepted.
//
// Mailbox. A run's `inbox` counts all messages ever. A run that never got as many as the bound cannot have so many unread, so
// the usual delivery costs a comparison; only beyond that a store counts the unread ones, and no further than the bound. A
// flood of messages does not keep out the message that the run waits for.
//
// Topic. Broadcasts have positions, and go in their order: those of a queue are taken from the front, those that are retained
// age from the front. So the topic is full if a run can still get the broadcast that many positions back: one look-up by its
// key. That is exact as long as the broadcasts of a topic expire alike.

import { hasExpired } from '../../model/chore.ts'
import { broadcast } from './broadcast.ts'
import type { UnitOfWork } from './unit-of-work.ts'
import { deliveryOutcomeOf, type Delivered } from '../../model/message.ts'
import type { Run } from '../../model/run.ts'
import type { NewBroadcast, TopicRules } from '../../model/topic.ts'

/**
 * Whether a run takes no more. The one message that it is parked for is accepted regardless of the bound: it wakes the
 * run, so the next one finds it awake. `unread` counts unread messages, and need not count further than the bound.
 */
export function isMailboxFull(
  run: Pick<Run, 'inbox' | 'status' | 'readiness' | 'wakeNames'>,
  { name, mostUnread: most }: { readonly name: string; readonly mostUnread?: number },
  unread: (most: number) => number,
): boolean {
  if (most === undefined || run.inbox < most) return false
  const isAwaited = run.wakeNames !== null && deliveryOutcomeOf(run, name) === 'delivered'
  return !isAwaited && unread(most) >= most
}

/** A client sends to a topic. */
export function sendToTopic(unitOfWork: UnitOfWork, sent: NewBroadcast): Delivered {
  const { id, topic, data, policy, expiresInMs, mostKept } = sent
  // A known broadcast is answered as the first time, regardless of the backlog.
  if (
    mostKept !== undefined &&
    isTopicFull(unitOfWork, topic, mostKept) &&
    unitOfWork.broadcast(topic.name, id) === undefined
  ) {
    return { outcome: 'full' }
  }
  return broadcast(unitOfWork, topic, {
    id,
    data,
    policy,
    expiresAt: expiresInMs === null ? null : unitOfWork.now + expiresInMs,
  })
}

/** Whether a topic keeps that many broadcasts that a run may still get. */
export function isTopicFull(unitOfWork: UnitOfWork, { name, delivery, retainMs }: TopicRules, most: number): boolean {
  if (delivery === 'all' && retainMs === 0) return false
  const position = unitOfWork.topicPosition(name) - most + 1
  if (position < 1) return false
  const kept = unitOfWork.broadcastAt(name, position)
  if (kept === undefined || kept.delivery !== delivery || hasExpired(kept, unitOfWork.now)) return false
  return delivery === 'one' ? kept.takenBy === null : kept.at > unitOfWork.now - retainMs
}
