// Idempotency keys where there are several shards. A run lives in the shard of its business key, so its idempotency key may
// belong to another shard: there, and for all runs alike, a row of `keys` says who has it. One shard needs none of this: its
// index over runs is enough.

import { shardFor } from '../../core/id.ts'
import type { Run } from '../../core/run.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'

/** Who asks for a key, or has it. */
export interface Claimant {
  readonly id: string
  readonly type: string
  readonly idempotencyKey: string
}

export interface Taken {
  /** The id of the run that has the key: this one, or who was before it; undefined if that one is just gone. */
  readonly holder: string | undefined
  /** It was taken just now. */
  readonly fresh: boolean
}

export interface Idempotency {
  /** Takes the key for a run if nobody has it. */
  take(x: Execution, run: Claimant): Promise<Taken>
  /** Frees the keys of these runs. */
  free(x: Execution, runs: readonly Pick<Run, 'id' | 'idempotencyKey'>[]): Promise<void>
}

export function idempotency({ schema, shards }: Dialect): Idempotency {
  const insert = statement(
    [],
    `
    insert into ${schema}.keys (shard, type, key, run_id)
    select $1::smallint, type, key, run from json_to_record($2::text::json) as given (type text, key text, run uuid)
    on conflict do nothing returning run_id`,
  )
  const look = statement(
    [],
    `
    select run_id from ${schema}.keys
    where shard = $1::smallint and key = $2::text::json ->> 'key' and type = $2::text::json ->> 'type'`,
  )
  const remove = statement(
    [],
    `
    delete from ${schema}.keys
    where shard = $1::smallint and key = $2::text::json ->> 'key' and run_id = ($2::text::json ->> 'run')::uuid`,
  )

  return {
    async take(x, { id, type, idempotencyKey }) {
      const given = JSON.stringify({ type, key: idempotencyKey, run: id })
      const shard = shardFor(idempotencyKey, shards)
      // Two statements: the insert may have waited for somebody whose row its own snapshot does not show.
      const [made, rows] = await Promise.all([x.execute(insert, [shard, given]), x.execute(look, [shard, given])])
      return { holder: rows[0]?.['run_id'] as string | undefined, fresh: made.length > 0 }
    },

    async free(x, runs) {
      for (const { id, idempotencyKey } of runs) {
        if (idempotencyKey === null) continue
        const given = JSON.stringify({ key: idempotencyKey, run: id })
        await x.execute(remove, [shardFor(idempotencyKey, shards), given])
      }
    },
  }
}
