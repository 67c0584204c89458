// Messages to a run, in the order of their arrival: signals, broadcasts of topics, and the ends of other runs. All of them
// are in one mailbox, so there is one way in which a run is woken from outside.

import { isTerminal, type Run, type RunStatus } from './run.ts'
import type { Broadcast, MessagePolicy, TopicRules } from './topic.ts'

export interface Message {
  /** Client-made, unique within its run. */
  readonly id: string
  readonly runId: string
  readonly kind: MessageKind
  /** The name that a wait asks for: that of a signal or a topic, or the id of another run. */
  readonly name: string
  /**
   * The payload after the codec; of an ended run, the text of an `Ended`; of a refusal, that of a `Refused` or a `Crowded`.
   */
  readonly data: string
  readonly policy: MessagePolicy | null
  /** The run's `inbox` after this message: first in, first out. */
  readonly position: number
  readonly at: number
}

/** A message before it has its place in a mailbox. */
export type MessageDraft = Omit<Message, 'position' | 'at'>

export type MessageKind =
  /** A client sent it to this run. */
  | 'signal'
  /** A client sent it to this run under the name of a topic, whose policy applies. */
  | 'topic-signal'
  /** The wait of a completion token is to fail: the payload is the error. */
  | 'failure'
  /** A topic passed it on. */
  | 'broadcast'
  /** A run that this one watches has ended, or never existed. */
  | 'ended'
  /**
   * A run that this one wanted to start was refused: `name` is the id that it would have had. Or a topic has no room for
   * another subscriber: `name` is the topic.
   */
  | 'refused'

/** The name of the messages that bring an input to an instance of a decider. */
export const inputName = 'input'

/** How many messages are read at once: of a whole mailbox, or of each name that was asked for. */
export const messagesAtOnce = 1_000

/** The settlement of a message that no run will read. */
export type Fate = 'discarded' | 'broadcast' | 'dead' | 'retried'

/** The answer to the sender of a message. */
export type Delivered =
  | {
      /**
       * `delivered`: a run that was waiting for it has been woken, or at least one was subscribed to the topic. `queued`: it
       * is in the mailbox of a run that is busy, woken already, not begun, paused, or waiting for something else; or its
       * topic keeps it for the next run that waits, or until earlier broadcasts have gone to all subscribers.
       */
      readonly outcome: 'delivered' | 'queued'
      /**
       * How many runs it has reached by the time of this answer; only for a broadcast. Its commit reaches the first 1,000
       * subscribers, and the others follow in pages; a repeated send returns the current number.
       */
      readonly runs?: number
      /** This id was known: nothing has changed. */
      readonly repeated?: true
    }
  /** The run is over. The message is settled by its policy. */
  | { readonly outcome: 'target-terminated'; readonly status: RunStatus; readonly repeated?: true }
  | { readonly outcome: 'target-not-found' }
  /**
   * The mailbox or the topic already holds as many unread messages as the sender allows: it was not accepted, and its id is
   * not known.
   */
  | { readonly outcome: 'full' }

/** The outcome of putting a message into the mailbox of a run. */
export type DeliveryOutcome = 'delivered' | 'queued' | 'target-terminated'

/**
 * The answer to the sender of a message of that name to that run; `delivered` wakes the run. A run that has been woken
 * already is not woken again, and a run that waits for other messages stays parked: a later wait will find this one.
 */
export function deliveryOutcomeOf(
  { status, readiness, wakeNames }: Pick<Run, 'status' | 'readiness' | 'wakeNames'>,
  name: string,
): DeliveryOutcome {
  if (isTerminal(status)) return 'target-terminated'
  const isAsleep = status === 'waiting' && readiness !== 'ready'
  return isAsleep && (wakeNames === null || wakeNames.includes(name)) ? 'delivered' : 'queued'
}

/** How a run ended, for the runs that watch it. */
export type Ended =
  | {
      readonly status: 'succeeded' | 'failed' | 'cancelled'
      /** The last entry of its journal: its payload belongs to that place. */
      readonly seq: number
      readonly data: string | null
      /** Why it was cancelled, if the request gave a reason. */
      readonly reason: string | null
    }
  | { readonly status: 'not-found' }

/** Why a child could not be started: that run has its id or one of its keys. */
export interface Refused {
  readonly taken: 'id' | 'idempotency-key' | 'key'
  readonly by: string
}

/** Why a run could not subscribe to a topic: the number of its subscribers. */
export interface Crowded {
  readonly subscribers: number
}

/**
 * The id that a broadcast has in the mailbox of a run: no message that a client sends to the run can have it, nor a
 * broadcast of another topic, even if their names contain colons. It includes the position, because a run may outlive the
 * ids that its topic remembers: the same id sent after that is another broadcast.
 */
export function broadcastMessageId({ topic, id, position }: Pick<Broadcast, 'topic' | 'id' | 'position'>): string {
  return `broadcast:${position}:${topic.length}:${topic}:${id}`
}

/**
 * The id under which a message that a run did not read goes to its topic unchanged: it includes the run that it was sent to,
 * because its payload was encoded for that run, and the run that passed it on, because one id may have gone to several runs,
 * and each passes on its own copy.
 */
export function passedOnId(message: Message): string {
  const { kind, runId, position } = message
  const sent = kind === 'broadcast' ? originOf(sentId(message)) : { id: message.id, runId }
  return `${sent.id}@${sent.runId ?? atTopic}/${runId}.${position}`
}

/** The id under which a dead message is sent again: its payload is encoded again, so the id need not contain its origin. */
export function retriedId(message: Message): string {
  const { id } = originOf(sentId(message))
  return `${id.replace(retried, '')}@${message.runId}.${message.position}`
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

/** The original id and target of a broadcast: it was sent to the topic, or to that run, which did not read it. */
export function originOf(id: string): { readonly id: string; readonly runId: string | null } {
  const [, original, runId] = passedOn.exec(id) ?? []
  if (original === undefined || runId === undefined) return { id, runId: null }
  return { id: original, runId: runId === atTopic ? null : runId }
}

/** Whether the id has the form that is reserved for messages that the engine passes on. */
export function isPassedOnId(id: string): boolean {
  return passedOn.test(id)
}

// What a run sends: signals to runs, broadcasts to topics, and answers. The entry of the sender's journal is the message: it has
// all that a store needs to deliver it, so a message that could not be delivered with the commit that sent it is read again
// from there. Its id follows from the run and the number of the entry, so no message is ever sent twice. Its payload is encoded
// for the place where it will be read: the mailbox of its target, or its topic.

/** A signal that a run sends to a run. */
export interface SignalMeta {
  /** The run that it is for. */
  readonly to: string
  /** The name of the signal, or of the topic in whose name it was sent. */
  readonly signal: string
  readonly kind: 'signal' | 'topic-signal'
  readonly policy: MessagePolicy | null
  /** It waits while this many messages lie unread in the mailbox of its target. @default any number */
  readonly mostUnread?: number
}

/** A broadcast that a run sends to a topic. */
export interface BroadcastMeta {
  readonly topic: TopicRules
  readonly policy: MessagePolicy | null
  /** No run gets it after that time, counted from the commit of the entry; null for never. */
  readonly expiresInMs: number | null
  /** It waits while its topic keeps this many broadcasts that a run may still get. @default any number */
  readonly mostKept?: number
}

/** An answer to a message. */
export interface ReplyMeta {
  /** The id of the message. */
  readonly to: string
  /** The answer is an error. */
  readonly refused?: true
}

/** Every id of a message that a run has sent begins like this. */
export const sentPrefix = 'sent:'

/** The id of the message that a run sends with the entry of that number. */
export function sentMessageId(runId: string, seq: number): string {
  return `${sentPrefix}${runId}:${seq}`
}

/** Whether a transition that appends this entry sends a message. */
export function isSending({ kind }: { readonly kind: string }): boolean {
  return kind === 'signal-sent' || kind === 'broadcast-sent'
}
