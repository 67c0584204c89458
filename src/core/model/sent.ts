// What a run sends: signals to runs, and broadcasts to topics. The entry of the sender's journal is the message: it has all
// that a store needs to deliver it, so a message that could not be delivered with the commit that sent it is read again from
// there. Its id follows from the run and the number of the entry, so no message is ever sent twice. Its payload is encoded for
// the place where it will be read: the mailbox of its target, or its topic.

import type { MessagePolicy, TopicRules } from './topic.ts'

/** A signal to a run. */
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

/** A broadcast to a topic. */
export interface BroadcastMeta {
  readonly topic: TopicRules
  readonly policy: MessagePolicy | null
  /** No run gets it after that time, counted from the commit of the entry; null for never. */
  readonly expiresInMs: number | null
  /** It waits while its topic keeps this many broadcasts that a run may still get. @default any number */
  readonly mostKept?: number
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

/** A run or a topic that a message is for. */
export interface Receiver {
  readonly kind: 'run' | 'topic'
  /** The id of the run, or the name of the topic. */
  readonly name: string
}

/** The target of the chore that delivers what a run could not send to a receiver at once. */
export function sendTarget(senderId: string, { kind, name }: Receiver): string {
  return `${senderId}${kind === 'topic' ? topicMark : ' '}${name}`
}

/** The run that sends, and its receiver, of the target of such a chore. */
export function partiesOf(target: string): { readonly senderId: string; readonly receiver: Receiver } {
  const kind = target.charAt(idLength) === topicMark ? 'topic' : 'run'
  return { senderId: target.slice(0, idLength), receiver: { kind, name: target.slice(idLength + 1) } }
}

const topicMark = '/'
const idLength = 36
