// Queries for people. Each begins at the most selective part of the filter: a tag, a key, a parent, ids, or a rare status;
// otherwise it walks the runs from the newest on until it has enough. Every shard is asked for as many as are wanted, and the
// results are merged.

import { isRunId } from '../../../core/model/run-id.ts'
import { isPrintable } from '../../../core/text/printable.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Page, RunFilter } from '../../../store.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { runColumns, runOf } from '../schema/rows.ts'
import { isRareStatus, rareStatuses } from '../schema/schema.ts'
import { everyShard, shardOfRun } from '../schema/shards.ts'

/** The column holds no more. */
const highestVersion = 2 ** 31 - 1

export interface FindQueries {
  find(x: Execution, filter: RunFilter, page: Page): Promise<readonly Run[]>
  count(x: Execution, filter: RunFilter, atMost: number): Promise<number>
}

export function createFindQueries(dialect: Dialect): FindQueries {
  const { schema } = dialect
  const all = everyShard(dialect)

  async function ask(x: Execution, query: Statement, filter: RunFilter, page: Page): Promise<readonly Row[]> {
    const ids = filter.ids?.filter((id) => shardOfRun(dialect, id) !== undefined)
    const shards = ids === undefined ? all : [...new Set(ids.map((id) => shardOfRun(dialect, id) as number))]
    const values = JSON.stringify({ ...filter, ...timesOf(filter), ids, limit: page.limit, after: page.after })
    const answers = await Promise.all(shards.map((shard) => x.execute(query, [shard, values])))
    return answers.flat()
  }

  return {
    async find(x, filter, page) {
      if (!isPossible(filter, page.after)) return []
      const { with: before, from, order } = matching(schema, filter, page.after !== undefined)
      const sql = `${before} select ${runColumns('run')} ${from} order by ${order} limit ${given('limit', 'bigint')}`
      const found = (await ask(x, statement('find.read', sql), filter, page)).map(runOf)
      return found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
    },

    async count(x, filter, atMost) {
      if (!isPossible(filter, undefined)) return 0
      const { with: before, from, order } = matching(schema, filter, false)
      // In order, so that it walks the same way as a list, and no further than it must.
      const found = `select 1 ${from} order by ${order} limit ${given('limit', 'bigint')}`
      const sql = `${before} select count(*) as count from (${found}) as found`
      const rows = await ask(x, statement('count.read', sql), filter, { limit: atMost })
      return Math.min(
        rows.reduce((sum, row) => sum + Number(row['count']), 0),
        atMost,
      )
    },
  }
}

/** False if no row can match the names of the filter: ids have one form, names are printable, and versions are bounded. */
function isPossible(filter: RunFilter, after: string | undefined): boolean {
  const ids = [filter.parentId, after].filter((id) => id !== undefined)
  const { key, idempotencyKey, tag, typePrefix, types = [], statuses = [] } = filter
  const texts = [key, idempotencyKey, tag, typePrefix, ...types, ...statuses].filter((text) => text !== undefined)
  const { version = 0 } = filter
  const isVersion = Number.isInteger(version) && Math.abs(version) <= highestVersion
  return isVersion && ids.every(isRunId) && texts.every(isPrintable)
}

/** Times as whole milliseconds: a bound within a millisecond is the same as the next whole one. */
function timesOf({ createdFrom, createdBefore }: RunFilter): Pick<RunFilter, 'createdFrom' | 'createdBefore'> {
  return {
    ...(createdFrom === undefined ? {} : { createdFrom: Math.ceil(createdFrom) }),
    ...(createdBefore === undefined ? {} : { createdBefore: Math.ceil(createdBefore) }),
  }
}

type FilterField = keyof RunFilter | keyof Page

/** A value of the filter. */
function given(field: FilterField, type: string): string {
  return `($2::text::json ->> '${field}'::text)::${type}`
}

function among(field: FilterField, type: string): string {
  return `any(array(select value::${type} from json_array_elements_text($2::text::json -> '${field}'::text) as one (value)))`
}

interface Matching {
  readonly with: string
  /** From FROM on; a run is called `run`. */
  readonly from: string
  /** From the newest on, by the columns of the table which is walked. */
  readonly order: string
}

function matching(schema: string, filter: RunFilter, isPaged: boolean): Matching {
  const conditions = ['run.shard = $1::smallint', `run.deleted_at is ${filter.deleted === true ? 'not null' : 'null'}`]
  const add = (field: keyof RunFilter, condition: string): void => {
    if (filter[field] !== undefined) conditions.push(condition)
  }
  add('key', `run.key = ${given('key', 'text')}`)
  add('idempotencyKey', `run.idempotency_key = ${given('idempotencyKey', 'text')}`)
  add('types', `run.type = ${among('types', 'text')}`)
  // Not LIKE, which has wildcards.
  add('typePrefix', `pg_catalog.starts_with(run.type, ${given('typePrefix', 'text')})`)
  add('statuses', `run.status = ${among('statuses', 'text')}`)
  add('version', `run.version = ${given('version', 'integer')}`)
  add('createdFrom', `run.created_at >= ${given('createdFrom', 'bigint')}`)
  add('createdBefore', `run.created_at < ${given('createdBefore', 'bigint')}`)
  const ofAnyParent = [...conditions]
  const parent = given('parentId', 'uuid')
  add('parentId', `run.parent_id = ${parent}`)
  const isBefore = (id: string): readonly string[] => (isPaged ? [`${id} < ${given('after', 'uuid')}`] : [])
  const where = (some: readonly string[]): string => `where ${some.join(' and ')}`
  const runs = `from ${schema}.runs as run`

  if (filter.tag !== undefined) {
    // OFFSET keeps the order of the two: first the tag, which is ordered by run, then its runs.
    add('ids', `run.id = ${among('ids', 'uuid')}`)
    const each = `select run.* ${runs} ${where([...conditions, 'run.id = tag.run_id'])} offset 0`
    const tagged = where(['tag.shard = $1::smallint', `tag.tag = ${given('tag', 'text')}`, ...isBefore('tag.run_id')])
    const from = `from ${schema}.tags as tag cross join lateral (${each}) as run ${tagged}`
    return { with: '', from, order: 'tag.run_id desc' }
  }
  const unpaged = [...conditions]
  conditions.push(...isBefore('run.id'))
  const walk = { with: '', from: `${runs} ${where(conditions)}`, order: 'run.id desc' }
  if (filter.ids !== undefined) {
    const requested = `(select distinct value::uuid as id from json_array_elements_text($2::text::json -> 'ids'::text)) as requested`
    const each = `select run.* ${runs} ${where([...conditions, 'run.id = requested.id'])} offset 0`
    return materializedFirst(`select run.* from ${requested} cross join lateral (${each}) as run`)
  }
  // Few runs share an idempotency key: they are looked for first, instead of walking all runs in order. The same holds for
  // runs that are being executed, and for those of a rare status, which has an index of its own.
  if (filter.idempotencyKey !== undefined) return materializedFirst(`select run.* ${runs} ${where(conditions)}`)
  if (filter.key !== undefined) return walk
  if (filter.parentId !== undefined) {
    // As a range, whose order only its own index has: a plan that was made for empty tables takes it, too.
    const isUpTo = isPaged
      ? `(run.parent_id, run.id) < (${parent}, ${given('after', 'uuid')})`
      : `run.parent_id <= ${parent}`
    const own = where([...ofAnyParent, `run.parent_id >= ${parent}`, isUpTo])
    return { with: '', from: `${runs} ${own}`, order: 'run.parent_id desc, run.id desc' }
  }
  const { statuses = [] } = filter
  if (statuses.length > 0 && statuses.every((status) => status === 'running')) {
    // Every session's name is beyond the empty one: with this condition, every planner prefers the index of held runs.
    return materializedFirst(`select run.* ${runs} ${where([...unpaged, `run.session > ''`])}`, isBefore('run.id'))
  }
  if (statuses.length > 0 && statuses.every((status) => rareStatuses.includes(status))) {
    const requested = `(select distinct value as status from json_array_elements_text($2::text::json -> 'statuses'::text)) as requested`
    const own = [...conditions, 'run.status = requested.status', isRareStatus('run')]
    const each = `select run.* ${runs} ${where(own)} order by run.id desc limit ${given('limit', 'bigint')}`
    return materializedFirst(`select run.* from ${requested} cross join lateral (${each}) as run`)
  }
  return walk
}

/** These are looked for first; then they are put in order. */
function materializedFirst(runs: string, conditions: readonly string[] = []): Matching {
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  return {
    with: `with candidates as materialized (${runs})`,
    from: `from candidates as run${where}`,
    order: 'run.id desc',
  }
}
