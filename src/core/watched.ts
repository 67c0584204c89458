// What a run may wait on besides time and what is sent to it: the end of another run, and topics.

import type { TopicRules } from './topic.ts'

/** What a run may watch. */
export type Watched = { readonly kind: 'run'; readonly runId: string } | ({ readonly kind: 'topic' } & TopicRules)

/** Under which name somebody waits on it. */
export function targetOf(watched: Watched): string {
  return watched.kind === 'run' ? watched.runId : watched.name
}
