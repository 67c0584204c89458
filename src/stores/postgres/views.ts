// Views with the table, column and status names of other engines, for people who know those and for dashboards that were made
// for them. Each set is named for its content, has a schema of its own beside ours, and can only be read; `holdfast migrate
// --views` makes it. There are two of each: one without payloads, and one with them in another schema. A view grants no
// right: its reader needs the right to read our tables.

import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { didYouMean, shown } from '../../core/text/suggest.ts'
import { again, connected, frame, serverOf, type Server } from './schema/schema-change.ts'
import type { ClientLike, PoolLike } from './connection/database.ts'
import { assertOwned, ownershipOf } from './schema/ownership.ts'
import { quoteName, quoteSchema, quoteText } from './schema/schema-name.ts'
import { sqlStateOf } from './connection/sql-state.ts'
import { instances } from './views/instances.ts'
import { queues } from './views/queues.ts'
import { runs } from './views/runs.ts'
import { hidden, shown as withPayloads, type View, type ViewSet } from './views/view.ts'
import { waits } from './views/waits.ts'

const viewSets = { runs, instances, waits, queues } satisfies Record<string, ViewSet>

export type ViewName = keyof typeof viewSets

export const viewNames = Object.keys(viewSets) as ViewName[]

export interface ViewsOptions {
  /** The name of the schema with our tables, as its user wrote it. */
  readonly schema: string
  /** The sets of views; if there is none, all views are dropped. */
  readonly views: readonly ViewName[]
  /** The set with payloads is made, too. @default false */
  readonly payloads?: boolean | undefined
  /** The role as which it is done. @default the user of the connection */
  readonly owner?: string | undefined
  readonly onSql?: (sql: string) => void
}

/** The names in a list such as `instances,queues`; none for `none`. */
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

/** The schema of a set of views, or of the same set with payloads. */
export function viewSchema(schema: string, name: ViewName, set: 'plain' | 'payloads' = 'plain'): string {
  return `${schema}_${name}${set === 'payloads' ? '_payloads' : ''}`
}

/** A schema, and the views that stand in it. */
export interface MadeViews {
  readonly schema: string
  readonly names: readonly string[]
}

/** The schemas and names of the views that are made. */
export function madeViews({ schema, views, payloads = false }: ViewsOptions): readonly MadeViews[] {
  const sets = payloads ? (['plain', 'payloads'] as const) : (['plain'] as const)
  return views.flatMap((view) =>
    sets.map((set) => ({
      schema: viewSchema(schema, view, set),
      names: viewSets[view](quoteSchema(schema), hidden).map(({ name }) => name),
    })),
  )
}

/** The statements that make these views; without a name, those that drop all. */
function viewsSql({ schema, views: wanted, payloads = false }: ViewsOptions, server: Server): readonly string[] {
  const isDropped = wanted.length === 0
  const sets = payloads || isDropped ? (['plain', 'payloads'] as const) : (['plain'] as const)
  return (isDropped ? viewNames : wanted).flatMap((name) =>
    sets.flatMap((set) => {
      const place = quoteSchema(viewSchema(schema, name, set))
      const views = viewSets[name](quoteSchema(schema), set === 'plain' ? hidden : withPayloads)
      return isDropped ? dropping(place, views) : creation(place, views, server)
    }),
  )
}

/** The statements that `installViews()` would execute. */
export async function planViews(pool: PoolLike, options: ViewsOptions): Promise<readonly string[]> {
  return connected(pool, async (client) => {
    await assertViewsOwned(client, options.schema, options.owner)
    return transactionOf(options, await serverOf(client))
  })
}

/**
 * Throws if a schema of views belongs to another role: its owner can put views of its own there, and objects in it are given
 * to the migrator and shown to viewers.
 */
export async function assertViewsOwned(client: ClientLike, schema: string, owner: string | undefined): Promise<void> {
  const all = viewNames.flatMap((view) => madeViews({ schema, views: [view], payloads: true }))
  for (const { schema: place, names } of all) assertOwned(await ownershipOf(client, place, owner, names), place, owner)
}

function transactionOf(options: ViewsOptions, server: Server): readonly string[] {
  return [...frame(server, options.owner), ...viewsSql(options, server), 'commit']
}

/** Makes these views, all or none; without a name, drops all. The tables must be there. */
export async function installViews(pool: PoolLike, options: ViewsOptions): Promise<void> {
  const execute = async (client: ClientLike, statements: readonly string[]): Promise<void> => {
    await assertViewsOwned(client, options.schema, options.owner)
    for (const text of statements) {
      // Another role may have made a schema in between. No code of theirs has run by then, and nothing of ours is kept.
      if (text === 'commit') await assertViewsOwned(client, options.schema, options.owner)
      options.onSql?.(text)
      await client.query({ text })
    }
  }
  await connected(pool, async (client) => {
    const statements = transactionOf(options, await serverOf(client))
    return again(client, () => execute(client, statements)).catch(refuse)
  })
}

/** An object that is no view, or a view of another role, has the name of one of ours. */
function refuse(error: unknown): never {
  const state = sqlStateOf(error)
  if (state !== '42809' && state !== '42P16') throw error
  throw new HoldfastError(
    'INVALID_OPTION',
    `The views cannot be made, because something else has one of their names: ${messageOf(error)}. Move that, or drop it.`,
    { cause: error },
  )
}

function creation(place: string, views: readonly View[], { hasInvokerViews }: Server): readonly string[] {
  // Otherwise a view reads with the rights of its owner, for every role that may read the view.
  const reading = hasInvokerViews ? ' with (security_invoker = true)' : ''
  const statements = views.map(({ name, comment, columns, from }) => {
    const list = Object.entries(columns).map(([column, value]) => `  ${value} as ${quoteName(column)}`)
    // Postgres refuses writes to a view that begins with a WITH.
    const query = `with read_only as (select 1)\nselect\n${list.join(',\n')}\n${from}`
    return [
      `create or replace view ${place}.${quoteName(name)}${reading} as\n${query}`,
      `comment on view ${place}.${quoteName(name)} is ${quoteText(comment)}`,
    ]
  })
  return [`create schema if not exists ${place}`, ...statements.flat()]
}

/** The schema itself stays: it may hold tables of its owner. */
function dropping(place: string, views: readonly View[]): readonly string[] {
  return views.map(({ name }) => `drop view if exists ${place}.${quoteName(name)}`)
}
