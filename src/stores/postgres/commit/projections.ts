// The rows of projections, by the rules of the core. The parts of one projection are locked in one order, and a row that is not
// there yet is inserted: if another transaction was first, its row is there now, and is locked and judged like any other.

import {
  decideProjection,
  partsOf,
  type ProjectionAnswer,
  type ProjectionCommand,
} from '../../../core/rules/projections/command-projection.ts'
import {
  projectionOfRow,
  projectionValues,
  type ProjectionColumns,
} from '../../../core/rules/projections/projection-columns.ts'
import type { ProjectionRow } from '../../../core/rules/projections/projection-row.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'

export interface ProjectionQueries {
  readAll(x: Execution): Promise<readonly ProjectionRow[]>
  /** In a transaction. */
  command(x: Execution, command: ProjectionCommand): Promise<ProjectionAnswer>
}

const columns =
  'name, part, definition, status, begun, position, session, token, alive_until, failure, skipped, created_at, updated_at'

const types: Readonly<Record<string, string>> = {
  begun: 'smallint',
  position: 'bigint',
  token: 'bigint',
  alive_until: 'bigint',
  created_at: 'bigint',
  updated_at: 'bigint',
}

/** The value of each column in a list that is sent as JSON. */
const given = columns.split(', ').map((name, index) => {
  return { name, value: `($2::text::json ->> ${index}::integer)::${types[name] ?? 'text'}` }
})

export function createProjectionQueries({ schema, now }: Dialect): ProjectionQueries {
  const all = statement(
    'projections.read',
    `select ${columns} from ${schema}.projections where shard = $1::smallint order by name collate "C", part`,
  )
  // The time is that when the rows are locked.
  const lock = statement(
    'projection.lock',
    `
    select ${columns}, ${now} as now from ${schema}.projections
    where shard = $1::smallint and name = $2::text::json ->> 'name'::text
      and part = any(array(select value from json_array_elements_text($2::text::json -> 'parts'::text) as part (value)))
    order by part for no key update`,
  )
  const time = statement('projection.time', `select ${now} as now`)
  const insert = statement(
    'projection.insert',
    `
    insert into ${schema}.projections (shard, ${columns})
    select $1::smallint, ${given.map(({ value }) => value).join(', ')}
    on conflict do nothing returning name`,
  )
  const write = statement(
    'projection.write',
    `
    update ${schema}.projections set ${given
      .slice(2)
      .map(({ name, value }) => `${name} = ${value}`)
      .join(', ')}
    where shard = $1::smallint and name = ${given[0]?.value} and part = ${given[1]?.value}`,
  )
  const drop = statement(
    'projection.drop',
    `
    delete from ${schema}.projections
    where shard = $1::smallint and name = $2::text::json ->> 'name'::text and part = $2::text::json ->> 'part'::text`,
  )

  return {
    async readAll(x) {
      return (await x.execute(all, [0])).map(projectionOf)
    },

    async command(x, command) {
      const { name } = command
      const parts = partsOf(command)
      for (;;) {
        const rows = await x.execute(lock, [0, JSON.stringify({ name, parts })])
        const found = rows.map(projectionOf)
        const at = Number((rows[0] ?? (await x.execute(time, []))[0])?.['now'])
        const part = (wanted: string): ProjectionRow | null => found.find((row) => row.part === wanted) ?? null
        const known = { live: part('live'), rebuild: part('rebuild') }
        const decided = decideProjection(known, command, at)
        let isOvertaken = false
        for (const row of decided.write) {
          const values = JSON.stringify(projectionValues(row))
          if (known[row.part] !== null) await x.execute(write, [0, values])
          else isOvertaken = (await x.execute(insert, [0, values])).length === 0
        }
        if (isOvertaken) continue
        for (const gone of decided.drop) await x.execute(drop, [0, JSON.stringify({ name, part: gone })])
        return decided.answer
      }
    },
  }
}

function projectionOf(row: Row): ProjectionRow {
  return projectionOfRow(row as unknown as ProjectionColumns)
}
