// Queries for people. Each begins where the filter says most: at a tag, a key, a parent or ids; otherwise it walks the runs
// from the newest on until it has enough.

import type { Run } from '../../../core/model/run.ts'
import { createdIds } from '../../../core/rules/find.ts'
import type { Page, RunFilter } from '../../../store.ts'
import type { Connection } from '../driver/connection.ts'
import type { Value } from '../driver/driver.ts'
import { runOf } from '../schema/rows.ts'

export interface Query {
  readonly sql: string
  readonly values: readonly Value[]
}

export function findRuns(db: Connection, filter: RunFilter, page: Page): readonly Run[] {
  const { sql, values } = findQuery(filter, page)
  return db.all(sql, values).map(runOf)
}

export function countRuns(db: Connection, filter: RunFilter, atMost: number): number {
  const { sql, values } = countQuery(filter, atMost)
  return (db.get(sql, values)?.['count'] as number | undefined) ?? 0
}

export function findQuery(filter: RunFilter, { limit, after }: Page): Query {
  const matching = new Matching(filter)
  if (after !== undefined) matching.add(`${matching.id} < ?`, after)
  const sql = `select runs.* ${matching.sql} order by ${matching.id} desc limit ?`
  return { sql, values: [...matching.values, limit] }
}

export function countQuery(filter: RunFilter, atMost: number): Query {
  const matching = new Matching(filter)
  const sql = `select count(*) as count from (select 1 ${matching.sql} limit ?)`
  return { sql, values: [...matching.values, atMost] }
}

/** The filter as SQL, from FROM on. */
class Matching {
  readonly values: Value[] = []
  /** The column to order by: that of the table which is walked. */
  readonly id: string
  private readonly from: string
  private readonly conditions: string[] = []

  constructor(filter: RunFilter) {
    const { tag, ids, types, typePrefix, statuses, key, idempotencyKey, version, parentId } = filter
    // Few runs share an idempotency key: the plus has SQLite look for them instead of walking all runs in order.
    const id = idempotencyKey === undefined ? 'runs.id' : '+runs.id'
    this.id = tag === undefined ? id : 'tags.run_id'
    // The order of a cross join is kept: first the tag, which is ordered by run, then its runs.
    this.from = tag === undefined ? 'runs' : 'tags cross join runs on runs.shard = 0 and runs.id = tags.run_id'
    if (tag !== undefined) this.add('tags.shard = 0 and tags.tag = ?', tag)
    this.conditions.push('runs.shard = 0', `runs.deleted_at is ${filter.deleted === true ? 'not null' : 'null'}`)
    if (ids !== undefined) this.among(this.id, ids)
    if (key !== undefined) this.add('runs.key = ?', key)
    if (idempotencyKey !== undefined) this.add('runs.idempotency_key = ?', idempotencyKey)
    if (parentId !== undefined) this.add('runs.parent_id = ?', parentId)
    if (types !== undefined) this.among('runs.type', types)
    // Not LIKE: that would find other cases, too, and has wildcards.
    if (typePrefix !== undefined) {
      this.add('substr(runs.type, 1, length(?)) = ?', typePrefix)
      this.values.push(typePrefix)
    }
    if (statuses !== undefined) this.among('runs.status', statuses)
    if (version !== undefined) this.add('runs.version = ?', version)
    const { from, before } = createdIds(filter)
    if (from !== undefined) this.add(`${this.id} >= ?`, from)
    if (before !== undefined) this.add(`${this.id} < ?`, before)
  }

  get sql(): string {
    return `from ${this.from} where ${this.conditions.join(' and ')}`
  }

  add(condition: string, value: Value): void {
    this.conditions.push(condition)
    this.values.push(value)
  }

  private among(column: string, members: readonly string[]): void {
    this.add(`${column} in (select value from json_each(?))`, JSON.stringify(members))
  }
}
