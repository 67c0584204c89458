// What others leave for a run, in the order in which they left it: signals, what a topic passes on, and what became of
// other runs. All of it lies in one mailbox, so there is one way in which a run is woken from outside.

import { isTerminal, type Run, type RunStatus } from './run.ts'
import type { Broadcast, MessagePolicy } from './topic.ts'

export interface Message {
  /** Client-made, unique within its run. */
  readonly id: string
  readonly runId: string
  readonly kind: MessageKind
  /** What a wait asks for: the name of a signal or a topic, or the id of another run. */
  readonly name: string
  /** The payload after the codec; of a run that has ended, the text of an `Ended`; of what was refused, of a `Refused` or a `Crowded`. */
  readonly data: string
  readonly policy: MessagePolicy | null
  /** The run's `inbox` after this message: first in, first out. */
  readonly position: number
  readonly at: number
}

export type MessageKind =
  /** Somebody sent it to this run. */
  | 'signal'
  /** Somebody sent it to this run in the name of a topic, whose policy it takes. */
  | 'topic-signal'
  /** A topic passed it on. */
  | 'broadcast'
  /** A run that this one watches has ended, or never existed. */
  | 'ended'
  /**
   * A run that this one wanted to start could not be: `name` is the id that it would have had. Or a topic has no room for another
   * subscriber: `name` is the topic.
   */
  | 'refused'

/** How many messages are read at once: of a whole mailbox, or of each name that was asked for. */
export const messagesAtOnce = 1_000

/** What became of a message that nobody waits for any more. */
export type Fate = 'discarded' | 'broadcast' | 'dead' | 'retried'

/** What the sender of a message is told. */
export type Delivered =
  | {
      /**
       * `delivered`: a run that was waiting for it has been woken, or at least one was subscribed to the topic. `queued`: it
       * lies in the mailbox of a run that is busy, woken already, not begun, paused, or waiting for something else; or it
       * waits for somebody who waits on its topic, or until what was sent to its topic before has gone to all subscribers.
       */
      readonly outcome: 'delivered' | 'queued'
      /**
       * To how many runs it has gone by the time of this answer; only of what was sent to a topic. With its commit it goes to
       * the first 1,000 subscribers, and to the others in pages after that; a repeated send tells how far it has come.
       */
      readonly runs?: number
      /** This id was known: nothing has changed. */
      readonly repeated?: true
    }
  /** The run is over. What becomes of the message is what its policy says. */
  | { readonly outcome: 'target-terminated'; readonly status: RunStatus; readonly repeated?: true }
  | { readonly outcome: 'target-not-found' }
  /** As much as its sender allows lies unread in the mailbox or the topic: it was not accepted, and its id is not known. */
  | { readonly outcome: 'full' }

/** What became of a message when it was put into the mailbox of a run. */
export type DeliveryOutcome = 'delivered' | 'queued' | 'target-terminated'

/**
 * What the sender of a message of that name to that run is told; `delivered` wakes it. One that has been woken already is not
 * woken again, and one that waits for other messages sleeps on: a wait that wants this one will find it.
 */
export function deliveryOutcomeOf(
  { status, readiness, wakeNames }: Pick<Run, 'status' | 'readiness' | 'wakeNames'>,
  name: string,
): DeliveryOutcome {
  if (isTerminal(status)) return 'target-terminated'
  const isAsleep = status === 'waiting' && readiness !== 'ready'
  return isAsleep && (wakeNames === null || wakeNames.includes(name)) ? 'delivered' : 'queued'
}

/** How a run ended, for those who watch it. */
export type Ended =
  | {
      readonly status: 'succeeded' | 'failed' | 'cancelled'
      /** The last entry of its journal: its payload belongs to that place. */
      readonly seq: number
      readonly data: string | null
      /** Why it was cancelled, if somebody said so. */
      readonly reason: string | null
    }
  | { readonly status: 'not-found' }

/** Why a child could not be started: what it needs to have for itself is taken by that run. */
export interface Refused {
  readonly taken: 'id' | 'idempotency-key' | 'key'
  readonly by: string
}

/** Why a run could not subscribe to a topic: so many others have. */
export interface Crowded {
  readonly subscribers: number
}

/**
 * The id that a broadcast has in the mailbox of a run: no message that somebody sends to the run can have it, nor a
 * broadcast of another topic, whatever colons are in their names. With the position, because a run may outlive what its topic
 * knows of ids: one that is sent again after that is another broadcast.
 */
export function broadcastMessageId({ topic, id, position }: Pick<Broadcast, 'topic' | 'id' | 'position'>): string {
  return `broadcast:${position}:${topic.length}:${topic}:${id}`
}

/**
 * The id under which what a run did not read goes to its topic, as it is: with the run that it was sent to, because its payload
 * was written for that, and with who passed it on, because one id may have gone to several runs, and each passes on its own.
 */
export function passedOnId(message: Message): string {
  const { kind, runId, position } = message
  const sent = kind === 'broadcast' ? originOf(sentId(message)) : { id: message.id, runId }
  return `${sent.id}@${sent.runId ?? atTopic}/${runId}.${position}`
}

/** The id under which a dead letter is sent again: its payload is written anew then, so nothing of its way has to be known. */
export function retriedId(letter: Message): string {
  const { id } = originOf(sentId(letter))
  return `${id.replace(retried, '')}@${letter.runId}.${letter.position}`
}

/** The id with which it was sent: to the run, or to its topic. */
export function sentId({ kind, id, name }: Pick<Message, 'kind' | 'id' | 'name'>): string {
  if (kind !== 'broadcast') return id
  const [prefix = ''] = /^broadcast:\d+:\d+:/.exec(id) ?? []
  return id.slice(prefix.length + name.length + 1)
}

const atTopic = 'topic'
const passedOn = /^(.*)@(topic|[0-9a-f-]{36})\/[0-9a-f-]{36}\.\d+$/s
const retried = /@[0-9a-f-]{36}\.\d+$/

/** What was sent to a topic first had this id: it was sent to the topic, or to that run, which did not read it. */
export function originOf(id: string): { readonly id: string; readonly runId: string | null } {
  const [, original, runId] = passedOn.exec(id) ?? []
  if (original === undefined || runId === undefined) return { id, runId: null }
  return { id: original, runId: runId === atTopic ? null : runId }
}

/** Tells whether only the engine may give that id to something. */
export function isPassedOnId(id: string): boolean {
  return passedOn.test(id)
}
