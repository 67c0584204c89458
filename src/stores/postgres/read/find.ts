// Queries for people. Each begins at the most selective part of the filter: a tag, a key, a parent, ids, a rare status, or
// types; otherwise it walks the runs from the newest on until it has enough. Pages and times of creation are ranges of ids.
// Every shard is asked for as many as are wanted, and the results are merged.

import { isRunId, shardFor } from '../../../core/model/run-id.ts'
import { createdIds } from '../../../core/rules/find.ts'
import { isPrintable } from '../../../core/text/printable.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Page, RunFilter } from '../../../store.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { runColumns, runOf } from '../schema/rows.ts'
import { isAtRest, isRareStatus, rareStatuses } from '../schema/schema.ts'
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
  const ofType = (readiness: string): string => `
    select 1 from ${schema}.runs
    where shard = $1::smallint and type = requested.type and readiness = '${readiness}' limit ${mostQueued + 1}`
  const queuedOf = (name: 'find.read' | 'count.read'): Statement =>
    statement(
      name,
      `
    select count(*) as count from (select distinct value as type from json_array_elements_text($2::text::json)) as requested
    cross join lateral (${queued.map((readiness) => `(${ofType(readiness)})`).join(' union all ')}) as found`,
    )
  const holdersOf = (name: 'find.read' | 'count.read'): Statement =>
    statement(
      name,
      `select run_id from ${schema}.keys where shard = $1::smallint and key = $2::text and type <> ''::text`,
    )

  async function ask(x: Execution, query: Statement, filter: RunFilter, page: Page): Promise<readonly Row[]> {
    const ids = filter.ids?.filter((id) => shardOfRun(dialect, id) !== undefined)
    const shards = ids === undefined ? all : [...new Set(ids.map((id) => shardOfRun(dialect, id) as number))]
    const values = JSON.stringify({ ...filter, ids, ...rangeOf(filter, page.after), limit: page.limit })
    const answers = await Promise.all(shards.map((shard) => x.execute(query, [shard, values])))
    return answers.flat()
  }

  const before = {
    find: { queued: queuedOf('find.read'), holders: holdersOf('find.read') },
    count: { queued: queuedOf('count.read'), holders: holdersOf('count.read') },
  }

  /**
   * A filter for ids instead of an idempotency key: a run that was not removed has that in the table of keys, in the shard of
   * the key. Few runs share one.
   */
  async function byHolders(x: Execution, holders: Statement, filter: RunFilter): Promise<RunFilter> {
    const { idempotencyKey, ids, deleted } = filter
    if (idempotencyKey === undefined || deleted === true) return filter
    const rows = await x.execute(holders, [shardFor(idempotencyKey, dialect.shards), idempotencyKey])
    const held = rows.map((row) => row['run_id'] as string)
    return { ...filter, ids: ids === undefined ? held : held.filter((id) => ids.includes(id)) }
  }

  /** Whether few runs of these types wait for their turn, in all shards together. */
  async function areRare(x: Execution, queued: Statement, { types }: RunFilter): Promise<boolean> {
    if (types === undefined) return false
    const values = JSON.stringify(types)
    const counts = await Promise.all(all.map((shard) => x.execute(queued, [shard, values])))
    return counts.flat().reduce((sum, row) => sum + Number(row['count']), 0) <= mostQueued
  }

  return {
    async find(x, wanted, page) {
      if (!isPossible(wanted, page.after)) return []
      const filter = await byHolders(x, before.find.holders, wanted)
      const {
        with: first,
        from,
        order,
      } = matching(schema, filter, rangeOf(filter, page.after), await areRare(x, before.find.queued, filter))
      const sql = `${first} select ${runColumns('run')} ${from} order by ${order} limit ${given('limit', 'bigint')}`
      const found = (await ask(x, statement('find.read', sql), filter, page)).map(runOf)
      return found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
    },

    async count(x, wanted, atMost) {
      if (!isPossible(wanted, undefined)) return 0
      const filter = await byHolders(x, before.count.holders, wanted)
      const {
        with: first,
        from,
        order,
      } = matching(schema, filter, rangeOf(filter, undefined), await areRare(x, before.count.queued, filter))
      // In order, so that it walks the same way as a list, and no further than it must.
      const found = `select 1 ${from} order by ${order} limit ${given('limit', 'bigint')}`
      const sql = `${first} select count(*) as count from (${found}) as found`
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

interface Range {
  /** The lowest id. */
  readonly from?: string | undefined
  /** The id that all are below. */
  readonly upTo?: string | undefined
}

/** A page, and the times of creation, which ids carry, are one range of ids. */
function rangeOf(filter: RunFilter, after: string | undefined): Range {
  const { from, before } = createdIds(filter)
  return { from, upTo: after === undefined || (before !== undefined && before < after) ? before : after }
}

type FilterField = keyof RunFilter | keyof Page | 'from' | 'upTo'

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

/** The runs that wait for their turn, each kind in an index by type. */
const queued = ['ready', 'timed', 'isolated'] as const

/** With more of them that wait for their turn, types are not rare: the newest are found soon by walking. */
const mostQueued = 500

/** `areRare`: few runs of the types that are asked for wait for their turn. */
function matching(schema: string, filter: RunFilter, range: Range, areRare: boolean): Matching {
  const conditions = ['run.shard = $1::smallint', `run.deleted_at is ${filter.deleted === true ? 'not null' : 'null'}`]
  const add = (field: keyof RunFilter, condition: string): void => {
    if (filter[field] !== undefined) conditions.push(condition)
  }
  add('key', `run.key = ${given('key', 'text')}`)
  add('idempotencyKey', `run.idempotency_key = ${given('idempotencyKey', 'text')}`)
  // Not LIKE, which has wildcards.
  add('typePrefix', `pg_catalog.starts_with(run.type, ${given('typePrefix', 'text')})`)
  add('statuses', `run.status = ${among('statuses', 'text')}`)
  add('version', `run.version = ${given('version', 'integer')}`)
  const isWithin = (id: string): readonly string[] => [
    ...(range.from === undefined ? [] : [`${id} >= ${given('from', 'uuid')}`]),
    ...(range.upTo === undefined ? [] : [`${id} < ${given('upTo', 'uuid')}`]),
  ]
  /** The runs of one parent or type: as a range, whose order only its own index has, so that every plan takes that. */
  const isOf = (column: string, value: string): readonly string[] => [
    range.from === undefined ? `${column} >= ${value}` : `(${column}, run.id) >= (${value}, ${given('from', 'uuid')})`,
    range.upTo === undefined ? `${column} <= ${value}` : `(${column}, run.id) < (${value}, ${given('upTo', 'uuid')})`,
  ]
  const parent = given('parentId', 'uuid')
  const ofType = filter.types === undefined ? [] : [`run.type = ${among('types', 'text')}`]
  const ofAnyType = [...conditions, ...(filter.parentId === undefined ? [] : [`run.parent_id = ${parent}`])]
  const ofAnyParent = [...conditions, ...ofType]
  conditions.splice(0, conditions.length, ...ofAnyType, ...ofType)
  const where = (some: readonly string[]): string => `where ${some.join(' and ')}`
  const runs = `from ${schema}.runs as run`

  if (filter.tag !== undefined) {
    // OFFSET keeps the order of the two: first the tag, which is ordered by run, then its runs.
    add('ids', `run.id = ${among('ids', 'uuid')}`)
    const each = `select run.* ${runs} ${where([...conditions, 'run.id = tag.run_id'])} offset 0`
    const tagged = where(['tag.shard = $1::smallint', `tag.tag = ${given('tag', 'text')}`, ...isWithin('tag.run_id')])
    const from = `from ${schema}.tags as tag cross join lateral (${each}) as run ${tagged}`
    return { with: '', from, order: 'tag.run_id desc' }
  }
  const unpaged = [...conditions]
  conditions.push(...isWithin('run.id'))
  const walk = { with: '', from: `${runs} ${where(conditions)}`, order: 'run.id desc' }
  if (filter.ids !== undefined) {
    const requested = `(select distinct value::uuid as id from json_array_elements_text($2::text::json -> 'ids'::text)) as requested`
    const each = `select run.* ${runs} ${where([...conditions, 'run.id = requested.id'])} offset 0`
    return materializedFirst(`select run.* from ${requested} cross join lateral (${each}) as run`)
  }
  if (filter.key !== undefined) return walk
  if (filter.parentId !== undefined) {
    const own = where([...ofAnyParent, ...isOf('run.parent_id', parent)])
    return { with: '', from: `${runs} ${own}`, order: 'run.parent_id desc, run.id desc' }
  }
  // Runs that are being executed are looked for first, and those of a rare status, which has an index of its own.
  const { statuses = [] } = filter
  if (statuses.length > 0 && statuses.every((status) => status === 'running')) {
    // Every session's name is beyond the empty one: with this condition, every planner prefers the index of held runs.
    return materializedFirst(`select run.* ${runs} ${where([...unpaged, `run.session > ''`])}`, isWithin('run.id'))
  }
  if (statuses.length > 0 && statuses.every((status) => rareStatuses.includes(status))) {
    const requested = `(select distinct value as status from json_array_elements_text($2::text::json -> 'statuses'::text)) as requested`
    const own = [...conditions, 'run.status = requested.status', isRareStatus('run')]
    const each = `select run.* ${runs} ${where(own)} order by run.id desc limit ${given('limit', 'bigint')}`
    return materializedFirst(`select run.* from ${requested} cross join lateral (${each}) as run`)
  }
  if (filter.types !== undefined && areRare) {
    const requested = `(select distinct value as type from json_array_elements_text($2::text::json -> 'types'::text)) as requested`
    const asleep = [...ofAnyType, ...isOf('run.type', 'requested.type'), isAtRest('run')]
    const ordered = `order by run.type desc, run.id desc limit ${given('limit', 'bigint')}`
    const each = (conditions: readonly string[], end: string): string =>
      `select run.* from ${requested} cross join lateral (select run.* ${runs} ${where(conditions)} ${end}) as run`
    const due = queued.map((readiness) => {
      const own = [...ofAnyType, ...isWithin('run.id'), 'run.type = requested.type', `run.readiness = '${readiness}'`]
      return each(own, 'offset 0')
    })
    const held = `select run.* ${runs} ${where([...conditions, `run.session > ''`])}`
    return materializedFirst([each(asleep, ordered), ...due, held].join(' union all '))
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
