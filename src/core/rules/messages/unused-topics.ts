// Which topics nobody uses any more: they go, with the waits and broadcasts that are left of them. Every topic is looked at now
// and then, by workers that have no chore to do, each in a short transaction.
//
//   (none)  → resting    a run waits on it, or something is sent to it: it is looked at when it has rested
//   resting → resting    a live run waits on it, a chore is left of it, or it keeps a broadcast that a run may still get, or
//                        whose id it must remember
//   resting → resting    waits of runs that are over, or broadcasts that are no longer kept, went: it is looked at again at once
//   resting → (none)     nothing is left of it
//
// The look takes place under the lock of the topic, in a statement after it: a run that begins to wait takes the same lock
// before it registers, and a sender before it sends. So one of the two sees the other. Runs are not locked: one that is over
// when its wait goes, and lives again after a retry, begins to wait anew.

import type { UnitOfWork } from './unit-of-work.ts'
import { hasExpired } from '../../model/chore.ts'

/** Looks at a topic once. */
export function tidyTopic(unitOfWork: UnitOfWork, topic: string): void {
  const { pages, now } = unitOfWork
  const use = unitOfWork.topicUse(topic, pages.topicWaits)
  if (use === undefined) return
  const { waits, more, oldest, retainMs } = use
  for (const { wait, isLive } of waits) if (!isLive) unitOfWork.deleteWait(wait)
  const isOwed = (['topic', 'late'] as const).some((kind) => unitOfWork.chore(kind, topic) !== undefined)
  const rests = (): void => unitOfWork.lookAtTopic(topic, now + pages.topicRestMs)
  if (isOwed || waits.some(({ isLive }) => isLive)) return rests()
  if (more) return unitOfWork.lookAtTopic(topic, now)
  if (oldest === undefined) return unitOfWork.deleteTopic(topic)
  const before = retainMs === null ? null : now - Math.max(retainMs, pages.rememberedMs)
  const isWanted = oldest.delivery === 'one' && oldest.takenBy === null && !hasExpired(oldest, now)
  if (before === null || oldest.at >= before || isWanted) return rests()
  unitOfWork.forgetBroadcasts(topic, before)
  unitOfWork.lookAtTopic(topic, now)
}
