// Inserting runs where rows are spread over machines: each write is a statement of its own, for one shard, as in
// `spread-commit.ts`. The rows are made here, at the time of the machine that we are connected to, and the unique indexes decide
// which of them are inserted; then the entries, messages and tags of those, and their row of the feed.

import { uniqueText } from '../../../core/model/key.ts'
import type { Run } from '../../../core/model/run.ts'
import { newRow } from '../../../core/rules/new-row.ts'
import type { RunStart } from '../../../store.ts'
import { Appends, entriesFrom } from '../commit/appends.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution, Value } from '../execution.ts'
import type { StatementName } from '../statement-name.ts'

export interface SpreadStartQueries {
  /** Inserts the runs that have no obstacle, in their order, and returns their rows. */
  insert(x: Execution, shard: number, runs: readonly SpreadStart[]): Promise<readonly Run[]>
}

export interface SpreadStart {
  readonly run: RunStart
  /** Where it stands in the order of the batch. */
  readonly nth: number
  /** Its first entry is in the feed. */
  readonly isFed: boolean
  /** The first of its mailbox. */
  readonly messages: readonly object[]
}

/** The columns that a start writes, besides the shard. */
const columns = {
  id: 'uuid',
  type: 'text',
  version: 'integer',
  status: 'text',
  readiness: 'text',
  rank: 'integer',
  due: 'bigint',
  token: 'bigint',
  session: 'text',
  deadline: 'bigint',
  timeout_at: 'bigint',
  expires_at: 'bigint',
  key: 'text',
  key_scope: 'text',
  unique_key: 'text',
  idempotency_key: 'text',
  started_as: 'text',
  parent_id: 'uuid',
  tags: 'text',
  metadata: 'text',
  key_id: 'text',
  inbox: 'integer',
  feed: 'boolean',
  created_at: 'bigint',
  updated_at: 'bigint',
} as const

const names = Object.keys(columns).join(', ')
const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
/** A truth goes as a text. */
const casts = Object.values(columns).map((type) => (type === 'boolean' ? 'text::boolean' : type))
const parameters = casts.map((type, index) => `$${index + 2}::${type}`)

export function createSpreadStartQueries(
  { schema, now, feedNumber }: Dialect,
  planned: (...names: readonly StatementName[]) => readonly StatementName[],
): SpreadStartQueries {
  const time = statement([], `select ${now} as now`)
  const dead = statement(
    planned('start.session'),
    `
    select id from ${schema}.sessions
    where shard = 0 and ended_at is not null and id = any(array(select value from json_array_elements_text($1::text::json) as one (value)))`,
  )
  const insertOne = statement(
    planned('start.insert'),
    `
    insert into ${schema}.runs (shard, ${names})
    values ($1::smallint, ${parameters.join(', ')})
    on conflict do nothing returning id`,
  )
  const insert = statement(
    planned('start.insert'),
    `
    insert into ${schema}.runs (shard, ${names})
    select $1::smallint, ${names}
    from json_to_recordset($2::text::json) as given (${typed.join(', ')})
    on conflict do nothing returning id`,
  )
  const append = statement(
    planned('start.append'),
    `
    insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
    select $1::smallint, r, s, k, n, m, d, $2::bigint, t from ${entriesFrom(3)}`,
  )
  const send = statement(
    planned('start.messages'),
    `
    insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at, outcome)
    select $1::smallint, r, position, m, kind, name, data, on_unread, delivery, retain_ms, $3::bigint, 'queued'::text
    from json_to_recordset($2::text::json) as message (
      r uuid, position integer, m text, kind text, name text, data text, on_unread text, delivery text, retain_ms bigint)`,
  )
  const tag = statement(
    [],
    `
    insert into ${schema}.tags (shard, tag, run_id)
    select $1::smallint, tag, run_id from json_to_recordset($2::text::json) as given (tag text, run_id uuid)`,
  )
  const feed = statement(
    planned('start.feed'),
    `
    insert into ${schema}.feed (shard, number, runs, firsts, lasts)
    values ($1::smallint, pg_catalog.nextval(${feedNumber}), $2::text::uuid[], $3::text::integer[], $3::text::integer[])`,
  )

  /** The time, and which of the sessions that want a lease have ended. One that ends at the same time is found by a later rescue. */
  async function look(
    x: Execution,
    starts: readonly SpreadStart[],
  ): Promise<{ readonly now: number; readonly ended: ReadonlySet<unknown> }> {
    const sessions = new Set(starts.flatMap(({ run: { lease } }) => (lease === null ? [] : [lease.session])))
    const [[row], found] = await Promise.all([
      x.execute(time, []),
      sessions.size === 0 ? [] : x.execute(dead, [JSON.stringify([...sessions])]),
    ])
    return { now: Number(row?.['now']), ended: new Set(found.map(({ id }) => id)) }
  }

  return {
    async insert(x, shard, starts) {
      const { now: at, ended } = await look(x, starts)
      const rows = starts.map(({ run, messages }) => {
        const isLeased = run.lease !== null && (run.decided ?? null) === null && !ended.has(run.lease.session)
        return { ...newRow(run, at, isLeased), inbox: messages.length }
      })
      const [only] = rows
      const inserted =
        only !== undefined && rows.length === 1
          ? await x.execute(insertOne, [shard, ...valuesOf(only)])
          : await x.execute(insert, [shard, JSON.stringify(rows.map(columnsOf))])
      const ids = new Set(inserted.map(({ id }) => id))
      const made = rows.filter(({ id }) => ids.has(id))
      const started = starts.filter(({ run: { id } }) => ids.has(id))
      const appends = new Appends()
      for (const { run } of started) appends.add(run.id, 0, [run.first], run.transition, 0)
      const tags = made.flatMap(({ id, tags }) => Array.from(new Set(tags), (one) => ({ tag: one, run_id: id })))
      const messages = started.flatMap((one) => one.messages)
      const fed = started.filter(({ isFed }) => isFed).toSorted((a, b) => a.nth - b.nth)
      const write = (statement: Statement, list: readonly object[], ...more: readonly Value[]) =>
        list.length === 0 ? [] : [x.execute(statement, [shard, JSON.stringify(list), ...more])]
      await Promise.all([
        ...(appends.isEmpty ? [] : [x.execute(append, [shard, at, ...appends.values])]),
        ...write(send, messages, at),
        ...write(tag, tags),
        ...(fed.length === 0
          ? []
          : [
              x.execute(feed, [
                shard,
                `{${fed.map(({ run }) => run.id).join(',')}}`,
                `{${fed.map(() => 1).join(',')}}`,
              ]),
            ]),
      ])
      return made
    },
  }
}

/** A row as the columns of the table. */
function columnsOf(run: Run): Readonly<Record<keyof typeof columns, string | number | boolean | null>> {
  const { id, type, version, status, readiness, due, token, session, deadline, inbox, feed } = run
  return {
    id,
    type,
    version,
    status,
    readiness,
    rank: 0 - run.priority,
    due,
    token,
    session,
    deadline,
    timeout_at: run.timeoutAt,
    expires_at: run.expiresAt,
    key: run.key,
    key_scope: run.keyScope,
    unique_key: uniqueText(run),
    idempotency_key: run.idempotencyKey,
    started_as: run.idempotencyKey === null ? null : type,
    parent_id: run.parentId,
    tags: run.tags.length === 0 ? null : JSON.stringify(run.tags),
    metadata: run.metadata,
    key_id: run.keyId,
    inbox,
    feed,
    created_at: run.createdAt,
    updated_at: run.updatedAt,
  }
}

function valuesOf(run: Run): readonly Value[] {
  return Object.values(columnsOf(run)).map((value) => (typeof value === 'boolean' ? String(value) : value))
}
