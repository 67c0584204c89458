// What a replay finds.

import type { Drift } from '../../core/model/entry.ts'

export type ReplayResult =
  /** The body asked for all that was recorded and, if it came to an end of its own then, comes to the same. */
  | { readonly outcome: 'same' }
  | { readonly outcome: 'drift'; readonly drift: Drift }
  /** The body came to an end, and would come to another one now. */
  | { readonly outcome: 'ends-otherwise'; readonly recorded: BodyOutcome; readonly now: BodyOutcome | UnfinishedBody }
  /** Of an instance of a decider: its events give another state now than the one that was kept at that entry. */
  | { readonly outcome: 'folds-otherwise'; readonly seq: number; readonly recorded: unknown; readonly now: unknown }
  /** The body throws where it did not throw before or does not come to rest, or a payload cannot be read. */
  | { readonly outcome: 'throws'; readonly error: unknown }

/** How a body ended. Errors count as equal: their messages may differ from one attempt to the next. */
export type BodyOutcome =
  { readonly status: 'succeeded'; readonly output: unknown } | { readonly status: 'failed'; readonly error: unknown }

/** The body goes on where it had ended: it asks for more, or begins anew. */
export interface UnfinishedBody {
  readonly status: 'waiting' | 'continued'
}
