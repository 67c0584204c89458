// Queries for people. Each begins where the filter says most: at a tag, a key, a parent, ids or types; otherwise it walks the
// runs from the newest on until it has enough. Of several types each is walked by itself, as far as one page needs it: a rare
// type is found among many runs, and a common one is walked no further than its page.

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
  const pages = matchingsOf(filter).map((matching) => {
    if (after !== undefined) matching.add(`${matching.id} < ?`, after)
    const sql = `select runs.* ${matching.sql} order by ${matching.id} desc limit ?`
    return { sql, values: [...matching.values, limit] }
  })
  const { sql, values } = together(pages)
  return pages.length === 1 ? { sql, values } : { sql: `${sql} order by id desc limit ?`, values: [...values, limit] }
}

export function countQuery(filter: RunFilter, atMost: number): Query {
  const counted = matchingsOf(filter).map((matching) => ({
    sql: `select 1 ${matching.sql} limit ?`,
    values: [...matching.values, atMost],
  }))
  const { sql, values } = together(counted)
  return counted.length === 1
    ? { sql: `select count(*) as count from (${sql})`, values }
    : { sql: `select count(*) as count from (${sql} limit ?)`, values: [...values, atMost] }
}

function together(queries: readonly Query[]): Query {
  const sql = queries.map((one) => `select * from (${one.sql})`).join(' union all ')
  const [only] = queries
  return queries.length === 1 && only !== undefined ? only : { sql, values: queries.flatMap(({ values }) => values) }
}

/** More types than these are found by walking all runs: a statement has no more parts. */
const mostTypes = 50

/** The parts of a query: one for each type, if nothing narrows it more. */
function matchingsOf(filter: RunFilter): readonly Matching[] {
  const { types, tag, ids, key, idempotencyKey, parentId, ...others } = filter
  const isNarrow = [tag, ids, key, idempotencyKey, parentId].some((one) => one !== undefined)
  const each = [...new Set(types)]
  if (isNarrow || each.length === 0 || each.length > mostTypes) return [new Matching(filter)]
  return each.map((type) => new Matching(others, type))
}

/** The filter as SQL, from FROM on. */
class Matching {
  readonly values: Value[] = []
  /** The column to order by: that of the table which is walked. */
  readonly id: string
  private readonly from: string
  private readonly conditions: string[] = []

  /** `type`: only its runs, along their own index. */
  constructor(filter: RunFilter, type?: string) {
    const { tag, ids, types, typePrefix, statuses, key, idempotencyKey, version, parentId } = filter
    // Few runs share an idempotency key: the plus has SQLite look for them instead of walking all runs in order.
    const id = idempotencyKey === undefined ? 'runs.id' : '+runs.id'
    this.id = tag === undefined ? id : 'tags.run_id'
    // The order of a cross join is kept: first the tag, which is ordered by run, then its runs.
    const runs = type === undefined ? 'runs' : 'runs indexed by runs_type'
    this.from = tag === undefined ? runs : 'tags cross join runs on runs.shard = 0 and runs.id = tags.run_id'
    if (tag !== undefined) this.add('tags.shard = 0 and tags.tag = ?', tag)
    this.conditions.push('runs.shard = 0', `runs.deleted_at is ${filter.deleted === true ? 'not null' : 'null'}`)
    if (ids !== undefined) this.among(this.id, ids)
    if (key !== undefined) this.add('runs.key = ?', key)
    if (idempotencyKey !== undefined) this.add('runs.idempotency_key = ?', idempotencyKey)
    if (parentId !== undefined) this.add('runs.parent_id = ?', parentId)
    if (type !== undefined) this.add('runs.created_at >= 0 and runs.type = ?', type)
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
