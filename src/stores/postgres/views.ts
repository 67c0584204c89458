// Views with the names of other designs, for people who know those and for dashboards that were made for them. They are made
// only when somebody asks, each design in a schema of its own beside ours, and can only be read.

import { HoldfastError, messageOf } from '../../core/error.ts'
import { didYouMean, shown } from '../../core/suggest.ts'
import { again, connected, frame } from './changing.ts'
import type { ClientLike, PoolLike } from './database.ts'
import { quoteName, quoteSchema, quoteText } from './schema-name.ts'
import { sqlStateOf } from './sql-state.ts'
import { coordinator } from './views/coordinator.ts'
import { ironflow } from './views/ironflow.ts'
import { pgqrs } from './views/pgqrs.ts'
import { simpleWorkflow } from './views/simple-workflow.ts'
import type { Design, View } from './views/view.ts'

const designs = { 'simple-workflow': simpleWorkflow, ironflow, coordinator, pgqrs } satisfies Record<string, Design>

export type ViewName = keyof typeof designs

export const viewNames = Object.keys(designs) as ViewName[]

/** They are for Postgres itself: no other database is asked. */
const plain = { isCockroach: false }

/** The names in a list such as `ironflow,pgqrs`; none for `none`. */
export function parseViews(list: string): readonly ViewName[] {
  const names = list.split(',').map((name) => name.trim())
  if (names.length === 1 && names[0] === 'none') return []
  return names.map((name) => {
    const known = viewNames.find((one) => one === name)
    if (known !== undefined) return known
    throw new HoldfastError(
      'INVALID_OPTION',
      `There are no views named ${shown(name)}.${didYouMean(name, viewNames)} ` +
        `There are ${viewNames.join(', ')}; none drops them.`,
      { details: { name } },
    )
  })
}

/** The schema that the views of a design stand in. */
export function viewSchema(schema: string, name: ViewName): string {
  return `${schema}_${name.replaceAll('-', '_')}`
}

/** What makes these views; without a name, what drops all. `schema` is its name, as its user wrote it. */
function viewsSql(schema: string, wanted: readonly ViewName[]): readonly string[] {
  const isDropped = wanted.length === 0
  return (isDropped ? viewNames : wanted).flatMap((name) => {
    const place = quoteSchema(viewSchema(schema, name))
    const views = designs[name](quoteSchema(schema))
    return isDropped ? dropping(place, views) : creation(place, views)
  })
}

/** What `installViews()` would execute. */
export function planViews(schema: string, wanted: readonly ViewName[]): readonly string[] {
  return [...frame(plain), ...viewsSql(schema, wanted), 'commit']
}

/** Makes these views, all or none; without a name, drops all. The tables must be there. */
export async function installViews(
  pool: PoolLike,
  schema: string,
  wanted: readonly ViewName[],
  onSql?: (sql: string) => void,
): Promise<void> {
  const statements = planViews(schema, wanted)
  const execute = async (client: ClientLike): Promise<void> => {
    for (const text of statements) {
      onSql?.(text)
      await client.query({ text })
    }
  }
  await connected(pool, (client) => again(client, () => execute(client)).catch(refuse))
}

/** Something that is no view, or a view of somebody else, has the name of one of ours. */
function refuse(error: unknown): never {
  const state = sqlStateOf(error)
  if (state !== '42809' && state !== '42P16') throw error
  throw new HoldfastError(
    'INVALID_OPTION',
    `The views cannot be made, because something else has one of their names: ${messageOf(error)}. Move that, or drop it.`,
    { cause: error },
  )
}

function creation(place: string, views: readonly View[]): readonly string[] {
  const statements = views.map(({ name, comment, columns, from }) => {
    const list = Object.entries(columns).map(([column, value]) => `  ${value} as ${quoteName(column)}`)
    // Nobody can write to a view that begins with a WITH.
    const query = `with read_only as (select 1)\nselect\n${list.join(',\n')}\n${from}`
    return [
      `create or replace view ${place}.${quoteName(name)} as\n${query}`,
      `comment on view ${place}.${quoteName(name)} is ${quoteText(comment)}`,
    ]
  })
  return [`create schema if not exists ${place}`, ...statements.flat()]
}

/** The schema itself stays: somebody may have put something else there. */
function dropping(place: string, views: readonly View[]): readonly string[] {
  return views.map(({ name }) => `drop view if exists ${place}.${quoteName(name)}`)
}
