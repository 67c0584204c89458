// The rows of projections, as the plan says: the parts of one are locked, judged together, and written.

import {
  decideProjection,
  partsOf,
  type ProjectionAnswer,
  type ProjectionCommand,
} from '../../src/core/rules/projections/command-projection.ts'
import type { ProjectionPart, ProjectionRow } from '../../src/core/rules/projections/projection-row.ts'
import type { Execution } from './database/call.ts'
import { partText } from './database/tables.ts'

export async function readProjections(x: Execution): Promise<readonly ProjectionRow[]> {
  const rows = await x.run('projections.read', (tx) =>
    tx.select(x.tables.projections, { order: (a, b) => compared(a.name, b.name) || compared(a.part, b.part) }),
  )
  return structuredClone(rows)
}

export async function commandProjection(x: Execution, command: ProjectionCommand): Promise<ProjectionAnswer> {
  const { projections } = x.tables
  const { name } = command
  const keys = partsOf(command).map((part) => partText({ name, part }))
  const byPart = (a: ProjectionRow, b: ProjectionRow): number => compared(a.part, b.part)
  for (;;) {
    const query = { at: ['part', keys], order: byPart } as const
    const rows = await x.run('projection.lock', (tx) =>
      x.is('projection-without-lock') ? tx.select(projections, query) : tx.lock(projections, query),
    )
    if (rows.length === 0) await x.run('projection.time', () => undefined)
    const known = { live: partOf(rows, 'live'), rebuild: partOf(rows, 'rebuild') }
    const { answer, write, drop } = decideProjection(known, command, x.now())
    let isOvertaken = false
    for (const row of structuredClone(write)) {
      const at = ['part', [partText(row)]] as const
      if (known[row.part] !== null) await x.run('projection.write', (tx) => tx.update(projections, { at }, () => row))
      else {
        const inserted = await x.run('projection.insert', (tx) => tx.insertNew(projections, [row]))
        isOvertaken = inserted.length === 0
      }
    }
    if (isOvertaken) continue
    for (const part of drop) {
      const at = ['part', [partText({ name, part })]] as const
      await x.run('projection.drop', (tx) => tx.delete(projections, { at }))
    }
    return structuredClone(answer)
  }
}

function partOf(rows: readonly ProjectionRow[], part: ProjectionPart): ProjectionRow | null {
  return rows.find((row) => row.part === part) ?? null
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
