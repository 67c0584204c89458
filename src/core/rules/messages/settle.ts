// What happens to a message that no run will read, because its run has ended: its policy says so. The message keeps its place
// in the mailbox, so that its id stays known.

import type { UnitOfWork } from './unit-of-work.ts'
import { broadcast } from './broadcast.ts'
import { passedOnId, type Message, type MessageDraft } from '../../model/message.ts'
import type { Run } from '../../model/run.ts'

/** Settles a message whose run has ended. */
export function settleUnread(unitOfWork: UnitOfWork, message: Message): void {
  const { policy, name, data } = message
  if (policy === null) return unitOfWork.settle(message, 'discarded')
  if (policy.onUnread === 'dead-letter') return unitOfWork.settle(message, 'dead')
  unitOfWork.settle(message, 'broadcast')
  const { delivery, retainMs } = policy
  const sent = { id: passedOnId(message), data, policy, expiresAt: null }
  broadcast(unitOfWork, { name, delivery, retainMs }, sent, unitOfWork.pages.passedOn)
}

/** A message has come for a run that has ended: it is put into the mailbox, so that its id is known, and settled there. */
export function settleLate(unitOfWork: UnitOfWork, { id: runId, inbox }: Run, draft: MessageDraft): void {
  const { id, kind, name, data, policy } = draft
  const message = { id, runId, kind, name, data, policy, position: inbox + 1, at: unitOfWork.now }
  unitOfWork.put(draft)
  // Only this one: other unread messages may be left to a chore.
  settleUnread(unitOfWork, message)
}
