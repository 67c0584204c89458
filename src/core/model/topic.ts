// Topics: names to which a client may send without knowing which runs wait.
//
// A broadcast has a position in its topic. With `all` delivery it goes to every run that subscribed before that position and
// did not unsubscribe before it, and to none that subscribes later, unless the topic retains it: then also to those that
// subscribe while it is kept. Each run gets it once. If there are more subscribers than one transaction may write to, it
// goes to them in pages: a run that unsubscribes before its page is processed does not get it, see `chore.ts`. With `one`
// delivery it goes to exactly one run: to the one that has waited longest, or, if none waits, to the next that does. A run
// is subscribed for as long as it waits on the topic.
//
// A topic begins when a run first waits on it or something is first sent to it. It goes when no live run waits on it, nothing is
// kept that it must remember, and no chore is left: `core/rules/messages/unused-topics.ts`. The id of a broadcast in a mailbox
// contains its position, and a mailbox outlives the topic. So a store keeps the highest position that any topic that is gone
// has given, and a topic that begins anew gives only positions behind that.

/** To every subscriber, or to one. */
export type Delivery = 'all' | 'one'

/** The policy for a message that its run has not taken when it ends; null if it is discarded. */
export type MessagePolicy =
  | { readonly onUnread: 'dead-letter' }
  /** It goes to the topic of its name. */
  | { readonly onUnread: 'broadcast'; readonly delivery: Delivery; readonly retainMs: number }

/** The rules that all senders and waiters of a topic must share. */
export interface TopicRules {
  readonly name: string
  readonly delivery: Delivery
  /** For how long a run that subscribes later still gets earlier broadcasts; only for `all` delivery. */
  readonly retainMs: number
}

/** A broadcast, as a store keeps it. */
export interface Broadcast {
  readonly topic: string
  /** One more than that of the broadcast before it. The first of a topic is behind all that topics gave which are gone. */
  readonly position: number
  /** Client-made. Sending an id that the topic already knows changes nothing. */
  readonly id: string
  readonly delivery: Delivery
  readonly data: string
  readonly policy: MessagePolicy | null
  readonly at: number
  /** No run gets it from here on; null for never. */
  readonly expiresAt: number | null
  /** The run that has taken it; null while no run has, and always with `all` delivery. */
  readonly takenBy: string | null
  /** How many of the runs that had subscribed before it was sent have got it. */
  readonly deliveredTo: number
}

/** A broadcast to send. Its `id` is client-made: a topic that knows it returns the first answer. */
export interface NewBroadcast {
  readonly id: string
  readonly topic: TopicRules
  readonly data: string
  /** The policy if a run gets it and ends without reading it; null if it is discarded. */
  readonly policy: MessagePolicy | null
  /** No run gets it after that time, counted from the commit; null for never. */
  readonly expiresInMs: number | null
  /** It is refused if its topic keeps this many broadcasts that a run may still get. @default any number */
  readonly mostKept?: number
}

/** The least time for which a topic remembers the ids of its broadcasts. */
export const rememberedMs = 24 * 60 * 60 * 1_000
