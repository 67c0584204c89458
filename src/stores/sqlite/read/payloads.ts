// Payloads under another key, and which runs need which key.

import { rewriteObjection } from '../../../core/rules/claims/readable.ts'
import type { KeyCount, PayloadRewrite, PayloadsRewritten } from '../../../store.ts'
import type { Connection } from '../driver/connection.ts'
import { readRun } from './read.ts'

export const otherKeysSql = `
  select key_id, count(*) as runs from (
    select key_id from runs
    where shard = 0 and key_id is not null and ended_at is null and deleted_at is null
      and key_id not in (select value from json_each(?))
    limit ?)
  group by key_id order by key_id`

export function otherKeys(db: Connection, keys: readonly string[], atMost: number): readonly KeyCount[] {
  const rows = db.all(otherKeysSql, [JSON.stringify(keys), atMost])
  return rows.map((row) => ({ key: row['key_id'] as string, runs: row['runs'] as number }))
}

/** Within the write lock, so that no worker claims the run meanwhile. */
export function rewritePayloads(db: Connection, request: PayloadRewrite): PayloadsRewritten {
  const { runId, seq, keyId, entries, messages } = request
  const objection = rewriteObjection(readRun(db, runId), seq)
  if (objection !== null) return objection
  db.run('update runs set key_id = ? where shard = 0 and id = ?', [keyId, runId])
  for (const entry of entries) {
    const sql = 'update journal set data = ? where shard = 0 and run_id = ? and seq = ? and data is not null'
    db.run(sql, [entry.data, runId, entry.seq])
  }
  for (const { id, data } of messages) {
    db.run('update messages set data = ? where shard = 0 and run_id = ? and id = ?', [data, runId, id])
  }
  return 'written'
}
