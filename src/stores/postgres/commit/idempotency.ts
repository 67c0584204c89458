// Idempotency keys where there are several shards. A run lives in the shard of its business key, so its idempotency key may
// belong to another shard: there, and for all runs alike, a row of `keys` names its holder. One shard needs none of this: its
// index over runs is enough.

import { shardFor } from '../../../core/model/run-id.ts'
import type { Run } from '../../../core/model/run.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'

/** A run that asks for a key, or has it. */
export interface Claimant {
  readonly id: string
  readonly type: string
  readonly idempotencyKey: string
}

export interface Taken {
  /** The id of the run that has the key: this one, or an earlier one; undefined if that one is just gone. */
  readonly holder: string | undefined
  /** It was taken just now. */
  readonly fresh: boolean
}

export interface IdempotencyQueries {
  /** Takes the keys for runs of which no two want the same, as far as they are free; by the ids of those runs. */
  take(x: Execution, runs: readonly Claimant[]): Promise<ReadonlyMap<string, Taken>>
  /** Frees the keys of these runs. */
  free(x: Execution, runs: readonly Pick<Run, 'id' | 'idempotencyKey'>[]): Promise<void>
}

export function createIdempotencyQueries({ schema, shards }: Dialect): IdempotencyQueries {
  const given = 'json_to_recordset($2::text::json) as given (type text, key text, run uuid)'
  // In the order of the keys, in which every transaction takes them.
  const insert = statement(
    [],
    `
    insert into ${schema}.keys (shard, type, key, run_id)
    select $1::smallint, type, key, run from (select * from ${given}) as given
    on conflict do nothing returning run_id`,
  )
  const look = statement(
    [],
    `
    select given.run, held.run_id from ${given} cross join lateral (
      select run_id from ${schema}.keys as held
      where held.shard = $1::smallint and held.key = given.key and held.type = given.type offset 0) as held`,
  )
  const remove = statement(
    [],
    `
    with given as materialized (select * from ${given})
    delete from ${schema}.keys as held using given
    where held.shard = $1::smallint and held.key = any(array(select key from given)) and held.key = given.key
      and held.run_id = given.run`,
  )

  /** By the shards of the keys, each in the order of its keys. */
  function placed(runs: readonly Partial<Claimant>[]): readonly (readonly [shard: number, json: string])[] {
    const found = new Map<number, { readonly type: string | null; readonly key: string; readonly run: string }[]>()
    for (const { id = '', type = null, idempotencyKey } of runs) {
      if (idempotencyKey === undefined) continue
      const shard = shardFor(idempotencyKey, shards)
      const given = { type, key: idempotencyKey, run: id }
      const some = found.get(shard)
      if (some === undefined) found.set(shard, [given])
      else some.push(given)
    }
    const inOrder = Array.from(found).sort(([one], [other]) => one - other)
    return inOrder.map(([shard, some]) => [
      shard,
      JSON.stringify(some.sort((a, b) => (`${a.type} ${a.key}` < `${b.type} ${b.key}` ? -1 : 1))),
    ])
  }

  return {
    async take(x, runs) {
      const asking = placed(runs)
      // Two statements: the insert may have waited for a transaction whose row its own snapshot does not show.
      const [made, found] = await Promise.all([
        Promise.all(asking.map(([shard, json]) => x.execute(insert, [shard, json]))),
        Promise.all(asking.map(([shard, json]) => x.execute(look, [shard, json]))),
      ])
      const fresh = new Set(made.flat().map((row) => row['run_id'] as string))
      const holders = new Map(found.flat().map((row) => [row['run'] as string, row['run_id'] as string]))
      return new Map(runs.map(({ id }) => [id, { holder: holders.get(id), fresh: fresh.has(id) }]))
    },

    async free(x, runs) {
      const held = runs.map(({ id, idempotencyKey }) => (idempotencyKey === null ? { id } : { id, idempotencyKey }))
      for (const [shard, json] of placed(held)) await x.execute(remove, [shard, json])
    },
  }
}
