// Which shard a new run belongs to: that of its unique key, so that one shard can decide whether it is unique.

import { shardFor } from '../model/run-id.ts'
import type { Random } from '../runtime/ports.ts'

export interface Routed {
  readonly key: string | null
  readonly idempotencyKey: string | null
}

/** The shard of a new run: that of its business key, else that of its idempotency key, else any. */
export function shardForNew({ key, idempotencyKey }: Routed, shards: number, random: Random): number {
  if (shards === 1) return 0
  const routing = key ?? idempotencyKey
  return routing === null ? random.uint32() % shards : shardFor(routing, shards)
}
