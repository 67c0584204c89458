// Payloads under another key, and which runs need which key.

import { rewriteObjection } from '../../../core/rules/claims/readable.ts'
import type { KeyCount, PayloadRewrite, PayloadsRewritten } from '../../../store.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import { lockRuns, runOf } from '../schema/rows.ts'
import { everyShard, shardOfRun } from '../schema/shards.ts'

export interface PayloadQueries {
  otherKeys(x: Execution, keys: readonly string[], atMost: number): Promise<readonly KeyCount[]>
  /** Inside a transaction. */
  rewrite(x: Execution, request: PayloadRewrite): Promise<PayloadsRewritten>
}

export function createPayloadQueries(dialect: Dialect): PayloadQueries {
  const { schema } = dialect
  // Along the index of live runs that need a key.
  const others = statement(
    'otherKeys.read',
    `
    select found.key_id, count(*)::integer as runs from (
      select run.key_id from ${schema}.runs as run
      where run.shard = $1::smallint and run.key_id is not null and run.ended_at is null and run.deleted_at is null
        and run.key_id <> all(array(select value from json_array_elements_text($2::text::json) as key (value)))
      limit $3::bigint) as found
    group by found.key_id`,
  )
  const lock = statement('rewritePayloads.lock', lockRuns(schema))
  const write = statement(
    'rewritePayloads.write',
    `
    with keyed as (
      update ${schema}.runs set key_id = $3::text where shard = $1::smallint and id = $2::uuid),
    written as (
      update ${schema}.journal as entry set data = given.data
      from json_to_recordset($4::text::json) as given (seq integer, data text)
      where entry.shard = $1::smallint and entry.run_id = $2::uuid and entry.seq = given.seq and entry.data is not null)
    update ${schema}.messages as message set data = given.data
    from json_to_recordset($5::text::json) as given (id text, data text)
    where message.shard = $1::smallint and message.run_id = $2::uuid and message.id = given.id`,
  )

  return {
    async otherKeys(x, keys, atMost) {
      const requested = JSON.stringify(keys)
      const answers = await Promise.all(
        everyShard(dialect).map((shard) => x.execute(others, [shard, requested, atMost])),
      )
      const counts = new Map<string, number>()
      let left = atMost
      for (const row of answers.flat()) {
        const key = row['key_id'] as string
        const runs = Math.min(Number(row['runs']), left)
        left -= runs
        if (runs > 0) counts.set(key, (counts.get(key) ?? 0) + runs)
      }
      return Array.from(counts, ([key, runs]) => ({ key, runs })).toSorted((a, b) => (a.key < b.key ? -1 : 1))
    },

    async rewrite(x, { runId, seq, keyId, entries, messages }) {
      const shard = shardOfRun(dialect, runId)
      if (shard === undefined) return 'not-found'
      const [row] = await x.execute(lock, [shard, JSON.stringify([runId])])
      const objection = rewriteObjection(row === undefined ? undefined : runOf(row), seq)
      if (objection !== null) return objection
      await x.execute(write, [shard, runId, keyId, JSON.stringify(entries), JSON.stringify(messages)])
      return 'written'
    },
  }
}
