// A run before it exists: the insert request to a store, and its answer.

import type { Draft } from './entry.ts'
import type { MessageDraft } from './message.ts'
import type { KeyScope } from './key.ts'
import type { Lease, Run } from './run.ts'
import type { Due } from './due.ts'

export interface NewRun {
  readonly id: string
  readonly shard: number
  readonly type: string
  readonly version: number
  readonly key: string | null
  readonly keyScope: KeyScope
  readonly idempotencyKey: string | null
  readonly parentId: string | null
  readonly tags: readonly string[]
  /** The text of a JSON object. */
  readonly metadata: string | null
  /** Its journal is in the feed. */
  readonly feed: boolean
  /** The id of the key that its input was written with. @default null, it needs none */
  readonly keyId?: string | null
  readonly priority: number
  /** It is not claimed before this time; null for at once. */
  readonly due: Due | null
  /** It fails if it has not ended by then, counted from the insert; null for never. */
  readonly timeoutMs: number | null
  /** It fails if no worker has begun it by then, counted from the insert; null for never. */
  readonly expiresInMs: number | null
  /** Leases the run to the caller in the same insert, unless the caller's session has ended. */
  readonly lease: Lease | null
  /** The deadline of that lease; null if only the session's heartbeat keeps it. */
  readonly leaseMs: number | null
  /** Makes the repetition of this start a no-op: the answer is that it created the run, as long as the run exists. */
  readonly transition: string
  readonly first: Draft
  /** The messages that are in its mailbox from the beginning. @default none */
  readonly messages?: readonly MessageDraft[]
}

export interface Started {
  readonly created: boolean
  /** Why the run was not inserted; null when it was created. */
  readonly taken: 'id' | 'idempotency-key' | 'key' | null
  /**
   * The row as it is now, or that of the conflicting run; when `created` and a lease was asked for, leased to the caller if
   * its session is alive.
   */
  readonly run: Run
  /** The children of a decided start that are leased as it asked. Left out if there are none. */
  readonly leased?: readonly Run[]
}
