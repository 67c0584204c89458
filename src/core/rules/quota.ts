// How much may lie unread before more is refused. Each sender says its bound with what it sends, so that every process can
// have its own, and a store that knows nothing of bounds refuses nothing. Only what comes from outside is refused: what the
// engine itself tells a run (ends, refused children, copies of a broadcast that was accepted) always has a place.
//
// Mailbox. A run's `inbox` counts all messages ever. A run that never got as many as the bound cannot have so many unread, so
// the usual delivery costs a comparison; only beyond that a store counts what is unread, and no further than the bound. Whoever
// floods a run does not keep out what it waits for.
//
// Topic. Broadcasts have positions, and go in their order: those of a queue are taken from the front, those that are retained
// age from the front. So the topic is full if the one that many positions back can still be got by somebody: one look-up by
// its key. That is exact as long as those of a topic expire alike.

import { hasExpired } from '../model/chore.ts'
import { broadcast } from './broadcast.ts'
import type { UnitOfWork } from './unit-of-work.ts'
import { deliveryOutcomeOf, type Delivered } from '../model/message.ts'
import type { Run } from '../model/run.ts'
import type { NewBroadcast, TopicRules } from '../model/topic.ts'

/**
 * Tells whether a run takes no more. The one message that it sleeps for is taken whatever lies there: it wakes the run, so the next
 * one finds it awake. `unread` counts what is unread, and need not count further than the bound.
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

/** Something is sent to a topic from outside. */
export function sendToTopic(unitOfWork: UnitOfWork, sent: NewBroadcast): Delivered {
  const { id, topic, data, policy, expiresInMs, mostKept } = sent
  // What is known is answered as the first time, whatever lies there now.
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

function isTopicFull(unitOfWork: UnitOfWork, { name, delivery, retainMs }: TopicRules, most: number): boolean {
  if (delivery === 'all' && retainMs === 0) return false
  const position = unitOfWork.topicPosition(name) - most + 1
  if (position < 1) return false
  const kept = unitOfWork.broadcastAt(name, position)
  if (kept === undefined || kept.delivery !== delivery || hasExpired(kept, unitOfWork.now)) return false
  return delivery === 'one' ? kept.takenBy === null : kept.at > unitOfWork.now - retainMs
}
