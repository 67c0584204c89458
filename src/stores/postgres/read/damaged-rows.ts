// Finds the runs with a row that the engine cannot have written. Postgres up to 15 cannot test a text for JSON without
// failing, so this reads every such text and tests it here. It is called only when a check has failed for that reason.

import { entryOfRow } from '../../../core/rows/entry-row.ts'
import { parsedJson } from '../../../core/text/json-form.ts'
import { metadataIn, tagsIn, controlRequestIn } from '../../../core/rows/run-row.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row, Value } from '../execution.ts'

const rowsAtOnce = 5_000
const beforeAll = '00000000-0000-0000-0000-000000000000'

export function damagedRows({ schema }: Pick<Dialect, 'schema'>): (x: Execution) => Promise<readonly string[]> {
  const runs = statement(
    'doctor.read',
    `
    select shard, id, tags, metadata, control_request, wake_names from ${schema}.runs
    where (shard, id) > ($1::smallint, $2::uuid) order by shard, id limit ${rowsAtOnce}`,
  )
  const entries = statement(
    'doctor.read',
    `
    select shard, run_id as id, seq, kind, name, meta, case when data is not null then ''::text end as data
    from ${schema}.journal
    where (shard, run_id, seq) > ($1::smallint, $2::uuid, $3::integer) order by shard, run_id, seq limit ${rowsAtOnce}`,
  )
  return async (x) => {
    const damaged = new Set<string>()
    for (const [walk, isDamaged, keys] of [
      [runs, isDamagedRun, 2],
      [entries, isDamagedEntry, 3],
    ] as const) {
      for (let after: readonly Value[] = [-1, beforeAll, -1]; ;) {
        const rows = await x.execute(walk, after.slice(0, keys))
        const last = rows.at(-1)
        if (last === undefined) break
        for (const row of rows) if (isDamaged(row)) damaged.add(row['id'] as string)
        after = [Number(last['shard']), last['id'] as string, Number(last['seq'] ?? 0)]
      }
    }
    return [...damaged].toSorted()
  }
}

function isDamagedRun(row: Row): boolean {
  const [tags, metadata, controlRequest, wakeNames] = ['tags', 'metadata', 'control_request', 'wake_names'].map(
    (name) => row[name] as string | null,
  )
  const isReadable = wakeNames === null || parsedJson(wakeNames) !== undefined
  return (
    tagsIn(tags ?? null) === null ||
    controlRequestIn(controlRequest ?? null) === undefined ||
    metadataIn(metadata ?? null) === undefined ||
    !isReadable
  )
}

function isDamagedEntry(row: Row): boolean {
  const { kind, name, data } = row
  const meta = row['meta'] as string | null
  return entryOfRow({ seq: 0, at: 0, kind, name, meta, data, transition: null }).kind === 'damaged'
}
