// The rows of projections, each part by its name.

import {
  decideProjection,
  type ProjectionAnswer,
  type ProjectionCommand,
} from '../../../core/rules/projections/command-projection.ts'
import {
  projectionParts,
  type ProjectionPart,
  type ProjectionRow,
} from '../../../core/rules/projections/projection-row.ts'

export class Projections {
  private readonly rows: Readonly<Record<ProjectionPart, Map<string, ProjectionRow>>> = {
    live: new Map(),
    rebuild: new Map(),
  }

  all(): readonly ProjectionRow[] {
    const names = [...this.rows.live.keys()].toSorted()
    const found = names.flatMap((name) => projectionParts.map((part) => this.rows[part].get(name)))
    return found.flatMap((row) => (row === undefined ? [] : [structuredClone(row)]))
  }

  command(command: ProjectionCommand, now: number): ProjectionAnswer {
    const { name } = command
    const { live, rebuild } = this.rows
    const known = { live: live.get(name) ?? null, rebuild: rebuild.get(name) ?? null }
    const { answer, write, drop } = decideProjection(known, command, now)
    for (const row of write) this.rows[row.part].set(name, structuredClone(row))
    for (const part of drop) this.rows[part].delete(name)
    return structuredClone(answer)
  }
}
