// Writing back what was decided about rows that are locked. Each run is written once, however many decisions were made about
// it; one of which only a column or two change keeps all others as they are.

import { hintsOf } from '../../src/core/rules/messages/hints.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Rewrite } from '../../src/core/rules/rewrite.ts'
import { fedCount } from '../../src/core/rules/feed-entries.ts'
import type { StatementName } from './statement-plan.ts'
import type { Appends } from './exchange/append.ts'
import type { Execution } from './database/call.ts'
import { byId, keysOf, keyText, type KeyRow, type RunRow } from './database/tables.ts'
import type { Transaction } from './database/transaction.ts'

export class Rewrites {
  readonly now: number
  readonly appends: Appends
  private readonly before = new Map<string, RunRow>()
  private readonly rows = new Map<string, RunRow>()
  private readonly decided = new Set<string>()
  private written: readonly RunRow[] = []
  private readonly patches = new Map<string, Partial<RunRow>>()

  /** `locked` are the rows as they are now. */
  constructor(locked: readonly RunRow[], appends: Appends, now: number) {
    this.appends = appends
    this.now = now
    for (const row of locked) this.add(row)
  }

  /** A row that is locked, or was inserted by this transaction. */
  add(row: RunRow): void {
    this.before.set(row.id, row)
    this.rows.set(row.id, row)
  }

  /** The row as it is by now. */
  get(runId: string): RunRow | undefined {
    return this.rows.get(runId)
  }

  all(): readonly RunRow[] {
    return [...this.rows.values()]
  }

  write(row: Run, { run, append }: Rewrite, transition: string | null): void {
    const fed = fedCount(row, run, append.length)
    this.appends.add({ runId: row.id, seq: row.seq, drafts: append, transition, at: this.now, fed })
    this.set(row.id, run)
  }

  set(runId: string, run: Run): void {
    this.rows.set(runId, { ...run, startedAs: this.known(runId).startedAs })
    this.decided.add(runId)
  }

  /** Changes these columns and no others. */
  patch(runId: string, change: Partial<RunRow>): void {
    this.rows.set(runId, { ...this.known(runId), ...change })
    this.patches.set(runId, { ...this.patches.get(runId), ...change })
  }

  async update(x: Execution, name: StatementName): Promise<void> {
    const ids = [...new Set([...this.decided, ...this.patches.keys()])]
    if (ids.length === 0) return
    const written = await x.run(name, (tx) =>
      tx.update(x.tables.runs, { at: ['id', ids], order: byId }, (row) =>
        this.decided.has(row.id) ? this.known(row.id) : { ...row, ...this.patches.get(row.id) },
      ),
    )
    for (const row of written) if (this.decided.has(row.id)) hint(x, this.before.get(row.id)?.status, row)
    this.written = written
  }

  /** The statements that free and take the keys of what was written. */
  async follow(x: Execution, name: StatementName): Promise<void> {
    await followKeys(x, name, this.before, this.written)
  }

  private known(runId: string): RunRow {
    const row = this.rows.get(runId)
    if (row === undefined) throw new TypeError('Only a row that is locked is written')
    return row
  }
}

/** Frees the keys that rows have no more, and takes those that they have from here on: one that is taken is an error. */
export async function followKeys(
  x: Execution,
  name: StatementName,
  before: ReadonlyMap<string, RunRow>,
  written: readonly RunRow[],
): Promise<void> {
  const had = written.flatMap((row) => keysOf(before.get(row.id) as RunRow))
  const has = x.is('keys-freed-early') ? [] : written.flatMap(keysOf)
  const freed = without(had, has)
  const taken = without(has, had)
  if (freed.length > 0 && !x.is('keys-left-behind')) await x.run(name, (tx) => freeKeys(x, tx, freed))
  if (taken.length > 0) await x.run(name, (tx) => tx.insert(x.tables.keys, taken))
}

export function freeKeys({ tables }: Execution, tx: Transaction, keys: readonly KeyRow[]): Promise<void> {
  const holders = new Map(keys.map((one) => [keyText(one), one.runId]))
  return tx.delete(tables.keys, {
    at: ['key', [...holders.keys()]],
    where: (row) => holders.get(keyText(row)) === row.runId,
  })
}

function without(some: readonly KeyRow[], others: readonly KeyRow[]): readonly KeyRow[] {
  const known = new Set(others.map((one) => `${one.runId} ${keyText(one)}`))
  return some.filter((one) => !known.has(`${one.runId} ${keyText(one)}`))
}

/** Notifies those who listen what a row has become. */
export function hint(x: Execution, before: Run['status'] | undefined, run: Run): void {
  x.hints.push(...hintsOf(before, run, x.now()))
}
