// The targets of a wait besides times and signals: the end of another run, and topics.

import type { TopicRules } from './topic.ts'

/** A run or topic that a run may watch. */
export type WaitTarget = { readonly kind: 'run'; readonly runId: string } | WaitTopic

export interface WaitTopic extends TopicRules {
  readonly kind: 'topic'
  /** The wait is refused if this many runs have subscribed; the refusal is a message in the mailbox. @default any number */
  readonly mostSubscribers?: number
}

/** The name under which a run waits on it. */
export function targetOf(watched: WaitTarget): string {
  return watched.kind === 'run' ? watched.runId : watched.name
}
