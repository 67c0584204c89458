// Writing back what was decided about rows that are locked, with entries: steering, takeover and give-back end with this.
// Each run is written once, however many decisions were made about it.

import { isTerminal, type Run } from '../../../core/run.ts'
import type { Rewrite } from '../../../core/rewrite.ts'
import type { Appends } from './appending.ts'
import type { Execution } from './execution.ts'
import { byId, type RunRow } from './tables.ts'

export class Rewrites {
  private readonly before = new Map<string, RunRow>()
  private readonly rows = new Map<string, RunRow>()
  private readonly changed = new Set<string>()
  private readonly appends: Appends
  private readonly now: number

  /** `locked` are the rows as they are now. */
  constructor(locked: readonly RunRow[], appends: Appends, now: number) {
    this.appends = appends
    this.now = now
    for (const row of locked) {
      this.before.set(row.id, row)
      this.rows.set(row.id, row)
    }
  }

  /** The row as it is by now. */
  get(runId: string): RunRow | undefined {
    return this.rows.get(runId)
  }

  write(row: RunRow, { run, append }: Rewrite, transition: string | null): void {
    this.appends.add(row.id, row.seq, append, transition, this.now)
    this.set(row.id, run)
  }

  set(runId: string, run: Run): void {
    const row = this.rows.get(runId)
    if (row === undefined) throw new TypeError('Only a row that is locked is written')
    this.rows.set(runId, { ...run, startedAs: row.startedAs })
    this.changed.add(runId)
  }

  async update(x: Execution, name: 'commit.write' | 'steer.write' | 'rescue.write' | 'release.write'): Promise<void> {
    if (this.changed.size === 0) return
    const written = await x.run(name, (tx) =>
      tx.update(x.tables.runs, { at: ['id', [...this.changed]], order: byId }, (row) => this.rows.get(row.id) ?? row),
    )
    for (const row of written) hint(x, this.before.get(row.id)?.status, row)
  }
}

/** Tells those who listen what a row has become. */
export function hint({ hints }: Execution, before: Run['status'] | undefined, { id, type, status, readiness }: Run) {
  if (isTerminal(status) && (before === undefined || !isTerminal(before))) hints.push({ kind: 'ended', runId: id })
  if (readiness === 'ready' || readiness === 'timed') hints.push({ kind: 'ready', type })
}
