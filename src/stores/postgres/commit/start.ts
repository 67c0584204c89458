// Inserting runs, each with its first entry and, if it is to have one, its place in the feed, in one statement. The unique
// indexes decide which is first; the obstacle to a run that was not inserted is looked up in the next statement, because it
// may be a row that the snapshot of the insert does not show. The first messages of a run's mailbox are inserted by the same
// statement. A child gets its place in the feed later, behind the entry of its parent that starts it.

import { uniqueText } from '../../../core/model/key.ts'
import { policyColumns } from '../../../core/rows/run-row.ts'
import type { MessageDraft } from '../../../core/rules/messages/unit-of-work.ts'
import { foremost } from '../../../core/rules/insert-order.ts'
import { newRow } from '../../../core/rules/new-row.ts'
import { startedBefore, startInRounds } from '../../../core/rules/start.ts'
import type { NewRun, Started } from '../../../store.ts'
import type { StatementName } from '../statement-name.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { hintDeadline, hintPlace } from './rewrite.ts'
import { isTrue, runColumns, runOf } from '../schema/rows.ts'

export interface StartQueries {
  /** Starts runs of one shard. The ids of those that were inserted now, and not by an earlier try, go into `inserted`. */
  start(x: Execution, shard: number, runs: readonly NewRun[], inserted?: Set<string>): Promise<readonly Started[]>
  /** The answers to the starts of runs whose ids exist. */
  lookForIds(x: Execution, shard: number, runs: readonly NewRun[]): Promise<ReadonlyMap<NewRun, Started>>
}

/** `as`: whether runs are started by people, or by other runs with their transitions. */
export function createStartQueries(
  { schema, now, feedNumber }: Dialect,
  as: 'start' | 'commit' = 'start',
): StartQueries {
  const planned = (...names: readonly StatementName[]): readonly StatementName[] =>
    as === 'start' ? names : ['commit.start']
  const insertingMessages = `,
    sent as (
      insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at,
        outcome)
      select $1::smallint, id, position, m, kind, name, data, on_unread, delivery, retain_ms, created_at, 'queued'
      from json_to_recordset($3::text::json) as message (
        r uuid, position integer, m text, kind text, name text, data text, on_unread text, delivery text,
        retain_ms bigint) join made on made.id = message.r)`
  // In the order of the batch.
  const feeding = `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), pg_catalog.array_agg(id order by nth), pg_catalog.array_agg(1),
        pg_catalog.array_agg(1)
      from made join given using (id) where feed having count(*) > 0)`
  const inserting = (more: string): string => `
    with clock as materialized (select ${now} as now),
    given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        place integer, nth integer, id uuid, type text, version integer, rank integer, due_at bigint, due_after bigint,
        timeout_ms bigint, expires_ms bigint, session text, token bigint, lease_ms bigint, key text, key_scope text,
        unique_key text, idempotency_key text, parent_id uuid, tags text, metadata text, key_id text, inbox integer, feed boolean,
        entry_kind text, entry_name text, entry_meta text, entry_data text, transition text)),
    -- A session that ends at the same time is found by a later rescue.
    dead as materialized (
      select id from ${schema}.sessions
      where shard = 0 and ended_at is not null and id = any(array(select session from given where session is not null))),
    made as (
      insert into ${schema}.runs (shard, id, type, version, status, readiness, rank, due, token, session, deadline,
        timeout_at, expires_at, key, key_scope, unique_key, idempotency_key, started_as, parent_id, tags, metadata,
        key_id, inbox, feed, created_at, updated_at)
      select $1::smallint, id, type, version,
        case when leased then 'running' else 'pending' end,
        case when leased then 'leased' when due > now then 'timed' else 'ready' end,
        rank, case when leased then null else due end, case when leased then token else 0 end,
        case when leased then session end, case when leased then now + lease_ms end,
        now + timeout_ms, case when leased then null else now + expires_ms end,
        key, key_scope, unique_key, idempotency_key, case when idempotency_key is not null then type end,
        parent_id, tags, metadata, key_id, coalesce(inbox, 0), coalesce(feed, false), now, now
      from (
        select given.*, clock.now, coalesce(least(due_at, now + due_after), now) as due,
          session is not null and session not in (select id from dead) as leased
        from given cross join clock) as one
      -- The one order in which everybody inserts.
      order by place
      on conflict do nothing
      returning id, session is not null as leased, created_at),
    tagged as (
      insert into ${schema}.tags (shard, tag, run_id)
      select distinct $1::smallint, tag, id from given cross join lateral json_array_elements_text(tags::json) as tag
      where tags is not null and id in (select id from made)),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, id, 1, entry_kind, entry_name, entry_meta, entry_data, created_at, transition
      from made join given using (id))${more}
    select * from made`
  const first = ['start.session', 'start.insert', 'start.append'] as const
  const insert = {
    plain: statement(planned(...first), inserting('')),
    fed: statement(planned(...first, 'start.feed'), inserting(feeding)),
  }
  const insertWithMessages = {
    plain: statement(planned(...first, 'start.messages'), inserting(insertingMessages)),
    fed: statement(planned(...first, 'start.messages', 'start.feed'), inserting(insertingMessages + feeding)),
  }

  const look = statement(
    planned('start.look'),
    `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        place integer, id uuid, type text, unique_key text, idempotency_key text))
    select place, 1 as preference, 'id' as taken, transition_id, ${runColumns('run')}
    from given cross join lateral (
      select * from ${schema}.runs where shard = $1::smallint and id = given.id offset 0) as run
      cross join lateral (
      select transition_id from ${schema}.journal where shard = $1::smallint and run_id = given.id and seq = 1
      offset 0) as entry
    union all
    select place, 2, 'idempotency-key', null, ${runColumns('run')}
    from given cross join lateral (
      select * from ${schema}.runs
      where shard = $1::smallint and idempotency_key = given.idempotency_key and started_as = given.type
        and deleted_at is null offset 0) as run
    union all
    select place, 3, 'key', null, ${runColumns('run')}
    from given cross join lateral (
      select * from ${schema}.runs
      where shard = $1::smallint and unique_key = given.unique_key and ended_at is null and deleted_at is null
      offset 0) as run
    order by place, preference`,
  )

  /** Inserts the runs without an obstacle, and returns their answers. */
  async function insertNew(x: Execution, shard: number, runs: readonly NewRun[]): Promise<Map<NewRun, Started>> {
    const chosen = foremost(runs)
    const byId = new Map(chosen.map((run) => [run.id, run]))
    const nth = new Map(runs.map((run, index) => [run, index]))
    const given = chosen.map((run, place) => ({ ...givenOf(run, place), nth: nth.get(run) }))
    const messages = chosen.flatMap(messageNameOf)
    const kind = as === 'start' && chosen.some(({ feed }) => feed) ? 'fed' : 'plain'
    const rows =
      messages.length === 0
        ? await x.execute(insert[kind], [shard, JSON.stringify(given)])
        : await x.execute(insertWithMessages[kind], [shard, JSON.stringify(given), JSON.stringify(messages)])
    const answers = new Map<NewRun, Started>()
    for (const row of rows) {
      const run = byId.get(row['id'] as string) as NewRun
      const leased = isTrue(row['leased'])
      const made = newRow(run, Number(row['created_at']), leased)
      if (!leased) hintPlace(x, made)
      hintDeadline(x, made, made.createdAt)
      answers.set(run, { created: true, taken: null, run: { ...made, inbox: messagesOf(run).length } })
    }
    return answers
  }

  async function lookFor(x: Execution, shard: number, runs: readonly NewRun[]): Promise<Map<NewRun, Started>> {
    const rows = await x.execute(look, [shard, JSON.stringify(runs.map(givenOf))])
    const answers = new Map<NewRun, Started>()
    for (const row of rows) {
      const run = runs[Number(row['place'])] as NewRun
      if (!answers.has(run)) answers.set(run, obstacle(run, row))
    }
    return answers
  }

  return {
    start: (x, shard, runs, inserted) =>
      startInRounds(runs, async (open, answers) => {
        for (const [run, answer] of await insertNew(x, shard, open)) {
          answers.set(run, answer)
          inserted?.add(run.id)
        }
        const left = open.filter((run) => !answers.has(run))
        if (left.length === 0) return
        for (const [run, answer] of await lookFor(x, shard, left)) answers.set(run, answer)
      }),

    async lookForIds(x, shard, runs) {
      const only = runs.map((run) => ({ ...run, key: null, idempotencyKey: null }))
      const found = await lookFor(x, shard, only)
      const answers = new Map<NewRun, Started>()
      runs.forEach((run, index) => {
        const answer = found.get(only[index] as NewRun)
        if (answer !== undefined) answers.set(run, answer)
      })
      return answers
    },
  }
}

/** The statement returns the obstacle with precedence first. */
function obstacle(given: NewRun, row: Row): Started {
  const taken = row['taken'] as Exclude<Started['taken'], null>
  const run = runOf(row)
  if (taken !== 'id') return { created: false, taken, run }
  return startedBefore({ run, transition: row['transition_id'] as string | null }, given)
}

/** A run as JSON. Absent fields are null: most runs have few of these. */
function givenOf(run: NewRun, place: number): object {
  const { id, type, version, priority, due, timeoutMs, expiresInMs, lease, first, transition } = run
  const given: Record<string, unknown> = { place, id, type, version, rank: 0 - priority, key_scope: run.keyScope }
  if (due !== null) Object.assign(given, { due_at: due.at, due_after: due.afterMs })
  if (timeoutMs !== null) given['timeout_ms'] = timeoutMs
  if (expiresInMs !== null) given['expires_ms'] = expiresInMs
  if (lease !== null) Object.assign(given, { session: lease.session, token: lease.token, lease_ms: run.leaseMs })
  if (run.key !== null) Object.assign(given, { key: run.key, unique_key: uniqueText(run) })
  if (run.idempotencyKey !== null) given['idempotency_key'] = run.idempotencyKey
  if (run.parentId !== null) given['parent_id'] = run.parentId
  if (run.tags.length > 0) given['tags'] = JSON.stringify(run.tags)
  if (run.metadata !== null) given['metadata'] = run.metadata
  if ((run.keyId ?? null) !== null) given['key_id'] = run.keyId
  const { length } = messagesOf(run)
  if (length > 0) given['inbox'] = length
  if (run.feed) given['feed'] = true
  given['entry_kind'] = first.kind
  if (first.name !== null) given['entry_name'] = first.name
  if (first.meta !== null) given['entry_meta'] = JSON.stringify(first.meta)
  given['entry_data'] = first.data
  given['transition'] = transition
  return given
}

/** The first messages of its mailbox, each once. */
function messagesOf({ messages = [] }: NewRun): readonly MessageDraft[] {
  return messages.length < 2
    ? messages
    : [...new Map(messages.toReversed().map((one) => [one.id, one])).values()].toReversed()
}

function messageNameOf(run: NewRun): readonly object[] {
  return messagesOf(run).map(({ id: m, kind, name, data, policy }, index) => {
    const draft = { r: run.id, position: index + 1, m, kind, name, data }
    return policy === null ? draft : { ...draft, ...policyColumns(policy) }
  })
}
