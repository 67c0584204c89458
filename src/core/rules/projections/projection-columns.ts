// The columns of a projection, as SQL stores keep them.

import type { FailedEvent, ProjectionPart, ProjectionRow, ProjectionStatus, SkippedEvent } from './projection-row.ts'

/** A row as a database returns it: numbers may be texts. */
export interface ProjectionColumns {
  readonly name: string
  readonly part: ProjectionPart
  readonly definition: string
  readonly status: ProjectionStatus
  readonly begun: number | string | boolean
  readonly position: number | string
  readonly session: string | null
  readonly token: number | string
  readonly alive_until: number | string | null
  readonly failure: string | null
  readonly skipped: string
  readonly created_at: number | string
  readonly updated_at: number | string
}

export function projectionOfRow(row: ProjectionColumns): ProjectionRow {
  return {
    name: row.name,
    part: row.part,
    definition: row.definition,
    status: row.status,
    begun: Number(row.begun) === 1,
    position: Number(row.position),
    session: row.session,
    token: Number(row.token),
    aliveUntil: row.alive_until === null ? null : Number(row.alive_until),
    failure: row.failure === null ? null : (JSON.parse(row.failure) as FailedEvent),
    skipped: JSON.parse(row.skipped) as readonly SkippedEvent[],
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  }
}

/** The values of its columns in this order: name, part, definition and so on. */
export function projectionValues(row: ProjectionRow): readonly (string | number | null)[] {
  const { name, part, definition, status, begun, position, session, token, aliveUntil, failure, skipped } = row
  const failed = failure === null ? null : JSON.stringify(failure)
  const left = JSON.stringify(skipped)
  const times = [row.createdAt, row.updatedAt]
  return [name, part, definition, status, begun ? 1 : 0, position, session, token, aliveUntil, failed, left, ...times]
}
