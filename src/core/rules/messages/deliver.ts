// Settles messages that clients send to a run or a topic, for every store. A store calls these rules with the row of the run
// locked, for one message after the other: the second sees the effect of the first.
//
// A message to a run is judged in this order: there is no such run; its id is known, and its sender gets the same answer
// again; the run was removed; the run has ended, and the message's policy decides; too many messages are unread in the
// mailbox. Otherwise it is put into the mailbox, and wakes the run if it is parked for that.

import { isMailboxFull, sendToTopic } from './quota.ts'
import { settleLate } from './settle.ts'
import { deliveryOutcomeOf, type Delivered, type DeliveryOutcome, type MessageDraft } from '../../model/message.ts'
import type { NewBroadcast } from '../../model/topic.ts'
import { isTerminal, type Run, type RunStatus } from '../../model/run.ts'
import type { UnitOfWork } from './unit-of-work.ts'

/**
 * A message to a run. Its `id` is client-made, unique within its run. Delivering an id again that was accepted changes
 * nothing and answers as the first time, in any status of the run.
 */
export interface NewMessage extends MessageDraft {
  /** It is refused if this many messages lie unread in the mailbox of its run. @default any number */
  readonly mostUnread?: number
}

/** The rows of mailboxes that the rules read and write. */
export interface MailboxWork {
  /** The answer to the sender of a message of that id when it was put into the mailbox; undefined if it never was. */
  outcomeOf(draft: NewMessage): DeliveryOutcome | undefined
  /** As `UnitOfWork` has it. */
  depth: UnitOfWork['depth']
  /**
   * Puts a message into the mailbox of that run, as it is now, and wakes the run if it is parked for that. Returns the answer
   * to the sender.
   */
  receive(draft: NewMessage, run: Run): DeliveryOutcome
}

/** The rows that the rules read and write to deliver messages. */
export interface DeliveryWork extends UnitOfWork, MailboxWork {}

/** Delivers a message to a topic, or to a run: `run` is the row of the run. */
export function deliver(work: DeliveryWork, run: Run | undefined, sent: NewMessage | NewBroadcast): Delivered {
  if ('topic' in sent) return sendToTopic(work, sent)
  return deliverToMailbox(work, run, sent) ?? settleUndelivered(work, run as Run, sent)
}

/** The answer to a message to a run; null if it has come too late, and its policy decides. Nothing was done then. */
export function deliverToMailbox(work: MailboxWork, run: Run | undefined, draft: NewMessage): Delivered | null {
  if (run === undefined) return { outcome: 'target-not-found' }
  const known = work.outcomeOf(draft)
  const { status } = run
  if (known !== undefined) return { ...answerOf(known, status), repeated: true }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  // Without a policy it would only be discarded.
  if (isTerminal(status)) return draft.policy === null ? { outcome: 'target-terminated', status } : null
  if (isMailboxFull(run, draft, (most) => work.depth(run, most))) return { outcome: 'full' }
  return answerOf(work.receive(draft, run), status)
}

/**
 * A message has come too late: it is put into the mailbox, so that its id is known, and is settled there like an unread
 * message.
 */
function settleUndelivered(work: DeliveryWork, run: Run, draft: NewMessage): Delivered {
  settleLate(work, run, draft)
  return { outcome: 'target-terminated', status: run.status }
}

type Answer = Extract<Delivered, { readonly repeated?: true }>

function answerOf(outcome: DeliveryOutcome, status: RunStatus): Answer {
  return outcome === 'target-terminated' ? { outcome, status } : { outcome }
}

/** The row of a run that has got one more message of that name, and the answer to the sender. */
export function withMessage<Row extends Run>(run: Row, name: string, now: number): MessageReceived<Row> {
  const outcome = deliveryOutcomeOf(run, name)
  const isWoken = outcome === 'delivered' && run.deletedAt === null
  const received = { ...run, inbox: run.inbox + 1 }
  // A run that is due already keeps its place: one that is written to often must not be claimed last.
  const woken = isWoken ? { ...received, readiness: 'ready' as const, due: Math.min(run.due ?? now, now) } : received
  return { run: woken, outcome, isWoken }
}

export interface MessageReceived<Row extends Run> {
  readonly run: Row
  readonly outcome: DeliveryOutcome
  /** It was parked and is woken. If it was not parked and a session holds it, its holder gets a hint of the message. */
  readonly isWoken: boolean
}
