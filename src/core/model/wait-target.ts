// What a run may wait on besides time and what is sent to it: the end of another run, and topics.

import type { TopicRules } from './topic.ts'

/** What a run may watch. */
export type WaitTarget = { readonly kind: 'run'; readonly runId: string } | WaitTopic

export interface WaitTopic extends TopicRules {
  readonly kind: 'topic'
  /** The run is refused if so many others have subscribed; its mailbox tells it. @default any number */
  readonly mostSubscribers?: number
}

/** Under which name somebody waits on it. */
export function targetOf(watched: WaitTarget): string {
  return watched.kind === 'run' ? watched.runId : watched.name
}
