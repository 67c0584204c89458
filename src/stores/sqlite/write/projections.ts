// The rows of projections, read and written by the rules of the core under the write lock of the file.

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
import type { ProjectionPart, ProjectionRow } from '../../../core/rules/projections/projection-row.ts'
import type { Connection } from '../driver/connection.ts'
import type { Row } from '../driver/driver.ts'

export function readProjections(db: Connection): readonly ProjectionRow[] {
  return db.all('select * from projections where shard = 0 order by name, part', []).map(projectionOf)
}

/** In a transaction. */
export function commandProjection(db: Connection, command: ProjectionCommand, now: number): ProjectionAnswer {
  const { name } = command
  const parts = partsOf(command)
  const read = (part: ProjectionPart): ProjectionRow | null => {
    if (!parts.includes(part)) return null
    const row = db.get('select * from projections where shard = 0 and name = ? and part = ?', [name, part])
    return row === undefined ? null : projectionOf(row)
  }
  const known = { live: read('live'), rebuild: read('rebuild') }
  const { answer, write, drop } = decideProjection(known, command, now)
  for (const part of drop) db.run('delete from projections where shard = 0 and name = ? and part = ?', [name, part])
  for (const row of write) {
    const sql = `
      insert or replace into projections (shard, name, part, definition, status, begun, position, session, token, alive_until,
        failure, skipped, created_at, updated_at)
      values (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    db.run(sql, projectionValues(row))
  }
  return answer
}

function projectionOf(row: Row): ProjectionRow {
  return projectionOfRow(row as unknown as ProjectionColumns)
}
