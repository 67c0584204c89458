// Topics: names to which anybody may send without knowing who waits.
//
// A broadcast has a position in its topic. With `all` delivery it goes to every run that subscribed before that position
// and did not unsubscribe before it, and to none that subscribes later, unless the topic retains it: then also to those that
// subscribe while it is kept. Each run gets it once. If there are more subscribers than one transaction may write to, it goes to
// them in pages: who unsubscribes before its page comes gets it no more, see `chore.ts`. With `one` delivery it goes to exactly one run: to the one that has
// waited longest, or, if none waits, to the next that does. A run is subscribed for as long as it waits on the topic.

/** To every subscriber, or to one. */
export type Delivery = 'all' | 'one'

/** What becomes of a message that its run has not taken when it ends; null if it is discarded. */
export type MessagePolicy =
  | { readonly onUnread: 'dead-letter' }
  /** It goes to the topic of its name. */
  | { readonly onUnread: 'broadcast'; readonly delivery: Delivery; readonly retainMs: number }

/** What everyone who sends to a topic, or waits on it, must agree on. */
export interface TopicRules {
  readonly name: string
  readonly delivery: Delivery
  /** For how long those who come later get what was sent before; of meaning only for `all` delivery. */
  readonly retainMs: number
}

/** What was sent to a topic, as a store keeps it. */
export interface Broadcast {
  readonly topic: string
  /** 1, 2, 3 … within its topic. */
  readonly position: number
  /** Client-made. Sending an id again that the topic knows changes nothing. */
  readonly id: string
  readonly delivery: Delivery
  readonly data: string
  readonly policy: MessagePolicy | null
  readonly at: number
  /** Nobody gets it from here on; null if that never comes. */
  readonly expiresAt: number | null
  /** Who has taken it; null while it is open to anybody, and always with `all` delivery. */
  readonly takenBy: string | null
  /** To how many runs it has gone as to those who had subscribed before it was sent. */
  readonly deliveredTo: number
}

/** What is sent to a topic. Its `id` is client-made: a topic that knows it answers as the first time. */
export interface NewBroadcast {
  readonly id: string
  readonly topic: TopicRules
  readonly data: string
  /** What becomes of it if a run gets it and ends without reading it; null if it is discarded. */
  readonly policy: MessagePolicy | null
  /** Nobody gets it after that time, counted from the commit; null for never. */
  readonly expiresInMs: number | null
  /** It is refused if its topic keeps so many that somebody may still get. @default any number */
  readonly mostKept?: number
}

/** For how long a topic knows the ids of what was sent to it, at least. */
export const rememberedMs = 24 * 60 * 60 * 1_000
