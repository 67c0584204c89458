// A claim of a store with several shards: it asks one after the other, beginning with any, so that no shard is always first,
// until there are enough. If one of them fails, the runs of the others are returned: they are leased, and would otherwise be
// unknown leases. The first entries that come along are bounded for all shards together: a run without its entry is loaded.

import { mostFreshBytes } from '../../../core/rules/claims/claim.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Claimed, Fresh } from '../../../store.ts'
import type { ShardLook } from './shard-look.ts'

export interface ClaimInTurn {
  readonly shards: number
  /** From 0 to less than 1. */
  readonly random: () => number
  /** The shards that are worth asking; null if all are asked. */
  readonly look: Promise<ShardLook | null> | null
  /** Claims that many runs of one shard. */
  readonly claim: (shard: number, limit: number) => Promise<Claimed>
  readonly limit: number
}

export async function claimInTurn({ shards, random, look, claim, limit: most }: ClaimInTurn): Promise<Claimed> {
  const first = Math.floor(random() * shards)
  const seen = await look
  const order = Array.from({ length: shards }, (_, turn) => (first + turn) % shards).filter(
    (shard) => seen?.shards.has(shard) !== false,
  )
  const runs: Run[] = []
  const fresh: Fresh[] = []
  let bytes = 0
  let more = false
  let nextDue = seen?.nextDue ?? null
  let now = seen?.now ?? 0
  for (const [turn, shard] of order.entries()) {
    const claimed = await claim(shard, most - runs.length).catch((error: unknown) => {
      if (runs.length === 0) throw error
      return null
    })
    if (claimed === null) {
      more = true
      break
    }
    runs.push(...claimed.runs)
    for (const one of claimed.fresh ?? []) {
      const size = bytes + Buffer.byteLength(one.entry.data ?? '')
      if (size > mostFreshBytes) continue
      fresh.push(one)
      bytes = size
    }
    more ||= claimed.more
    now = claimed.now
    if (claimed.nextDue !== null) nextDue = Math.min(nextDue ?? claimed.nextDue, claimed.nextDue)
    const isFull = most > 0 && runs.length === most
    if (isFull && turn < order.length - 1) {
      // The other shards were not asked: the next claim does.
      more = true
      break
    }
  }
  const all = { runs, more, nextDue, now }
  return fresh.length === 0 ? all : { ...all, fresh }
}
