// Views with the tables of other designs, for people who know those and for dashboards that were made for them. Each set is named
// for what it shows. They are made only when somebody asks, each design in a schema of its own beside ours, and can only be read. There are two sets of each: one
// that shows no payload, and one in another schema that does, for those whom it is granted to. Neither gives anybody a right:
// whoever looks needs the right to read what the view reads.

import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { didYouMean, shown } from '../../core/text/suggest.ts'
import { again, connected, frame, serverOf, type Server } from './schema/schema-change.ts'
import type { ClientLike, PoolLike } from './connection/database.ts'
import { assertOwned, ownershipOf } from './schema/ownership.ts'
import { quoteName, quoteSchema, quoteText } from './schema/schema-name.ts'
import { sqlStateOf } from './connection/sql-state.ts'
import { coordinator } from './views/coordinator.ts'
import { ironflow } from './views/ironflow.ts'
import { pgqrs } from './views/pgqrs.ts'
import { simpleWorkflow } from './views/simple-workflow.ts'
import { hidden, shown as withPayloads, type Design, type View } from './views/view.ts'

const designs = { runs: simpleWorkflow, instances: ironflow, waits: coordinator, queues: pgqrs } satisfies Record<
  string,
  Design
>

export type ViewName = keyof typeof designs

export const viewNames = Object.keys(designs) as ViewName[]

export interface ViewsOptions {
  /** The name of the schema with our tables, as its user wrote it. */
  readonly schema: string
  /** The designs; without one, all views are dropped. */
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

/** The schema that the views of a design stand in, or those of its set with payloads. */
export function viewSchema(schema: string, name: ViewName, set: 'plain' | 'payloads' = 'plain'): string {
  return `${schema}_${name}${set === 'payloads' ? '_payloads' : ''}`
}

/** A schema, and the views that stand in it. */
export interface MadeViews {
  readonly schema: string
  readonly names: readonly string[]
}

/** Where the views stand that are made, and what they are called. */
export function madeViews({ schema, views, payloads = false }: ViewsOptions): readonly MadeViews[] {
  const sets = payloads ? (['plain', 'payloads'] as const) : (['plain'] as const)
  return views.flatMap((view) =>
    sets.map((set) => ({
      schema: viewSchema(schema, view, set),
      names: designs[view](quoteSchema(schema), hidden).map(({ name }) => name),
    })),
  )
}

/** What makes these views; without a name, what drops all. */
function viewsSql({ schema, views: wanted, payloads = false }: ViewsOptions, server: Server): readonly string[] {
  const isDropped = wanted.length === 0
  const sets = payloads || isDropped ? (['plain', 'payloads'] as const) : (['plain'] as const)
  return (isDropped ? viewNames : wanted).flatMap((name) =>
    sets.flatMap((set) => {
      const place = quoteSchema(viewSchema(schema, name, set))
      const views = designs[name](quoteSchema(schema), set === 'plain' ? hidden : withPayloads)
      return isDropped ? dropping(place, views) : creation(place, views, server)
    }),
  )
}

/** What `installViews()` would execute. */
export async function planViews(pool: PoolLike, options: ViewsOptions): Promise<readonly string[]> {
  return connected(pool, async (client) => {
    await assertViewsOwned(client, options.schema, options.owner)
    return transactionOf(options, await serverOf(client))
  })
}

/**
 * Throws if a schema of views belongs to somebody else: whoever owns it can put views of their own there, and what stands in it
 * is given to the migrator and shown to viewers.
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
      // Somebody may have made a schema in between. Nothing of theirs has run by then, and nothing of ours is kept.
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

function creation(place: string, views: readonly View[], { hasInvokerViews }: Server): readonly string[] {
  // A view would otherwise read with the rights of who made it, for everybody who may look at it.
  const reading = hasInvokerViews ? ' with (security_invoker = true)' : ''
  const statements = views.map(({ name, comment, columns, from }) => {
    const list = Object.entries(columns).map(([column, value]) => `  ${value} as ${quoteName(column)}`)
    // Nobody can write to a view that begins with a WITH.
    const query = `with read_only as (select 1)\nselect\n${list.join(',\n')}\n${from}`
    return [
      `create or replace view ${place}.${quoteName(name)}${reading} as\n${query}`,
      `comment on view ${place}.${quoteName(name)} is ${quoteText(comment)}`,
    ]
  })
  return [`create schema if not exists ${place}`, ...statements.flat()]
}

/** The schema itself stays: somebody may have put something else there. */
function dropping(place: string, views: readonly View[]): readonly string[] {
  return views.map(({ name }) => `drop view if exists ${place}.${quoteName(name)}`)
}
