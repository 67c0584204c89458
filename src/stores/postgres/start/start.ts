// Inserting runs that have their keys (`keys.ts`), each with its first entry and, if it is to have one, its place in the feed,
// in one statement. A run that was not inserted has a twin of the same id, which is looked up in the next statement, because
// the snapshot of the insert may not show its row. The first messages of a run's mailbox are inserted by the same
// statement. A child gets its place in the feed later, behind the entry of its parent that starts it.

import { policyColumns } from '../../../core/rows/run-row.ts'
import { foremost } from '../../../core/rules/insert-order.ts'
import { followingOf, insertedRow } from '../../../core/deciding/plainly-decided.ts'
import { startedBefore, startInRounds, type Twin } from '../../../core/rules/start.ts'
import type { NewRun, RunStart, Started } from '../../../store.ts'
import type { StatementName } from '../statement-name.ts'
import { statement, type Dialect } from '../dialect.ts'
import { createSpreadStartQueries } from '../spread/spread-start.ts'
import type { Execution, Row } from '../execution.ts'
import { Appends, entriesFrom } from '../commit/appends.ts'
import {
  decidedRunsFrom,
  decidedRunValues,
  isDecidedRun,
  messagesOf,
  newRunsFrom,
  newRunValues,
  usualRunsFrom,
  valuesOfNewRuns,
} from './new-runs.ts'
import { hintDeadline, hintPlace } from '../commit/rewrite.ts'
import { isTrue, runColumns, runOf } from '../schema/rows.ts'

export interface StartQueries {
  /**
   * Starts runs of one shard that need no key any more. The ids of those that were inserted now, and not by an earlier try, go
   * into `inserted`.
   */
  start(x: Execution, shard: number, runs: readonly RunStart[], inserted?: Set<string>): Promise<readonly Started[]>
  /** The run that has its id, for each of them; in order. */
  lookForTwins(x: Execution, shard: number, runs: readonly NewRun[]): Promise<readonly (Twin | undefined)[]>
}

/** The places of values: the shard is before them. */
const runsAt = 2
const messagesAt = runsAt + newRunValues
const followingAt = runsAt + decidedRunValues

/** `as`: whether runs are started by people, or by other runs with their transitions. */
export function createStartQueries(dialect: Dialect, as: 'start' | 'commit' = 'start'): StartQueries {
  const { schema, now, feedNumber, isSpread } = dialect
  const planned = (...names: readonly StatementName[]): readonly StatementName[] =>
    as === 'start' ? names : ['commit.start']
  const spread = createSpreadStartQueries(dialect, planned)
  const insertingMessages = (at: number): string => `,
    sent as (
      insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at,
        outcome)
      select $1::smallint, id, position, m, kind, name, data, on_unread, delivery, retain_ms, created_at, 'queued'
      from json_to_recordset($${at}::text::json) as message (
        r uuid, position integer, m text, kind text, name text, data text, on_unread text, delivery text,
        retain_ms bigint) join made on made.id = message.r)`
  // In the order of the batch.
  const feeding = (lasts = '1') => `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), pg_catalog.array_agg(id order by nth), pg_catalog.array_agg(1),
        pg_catalog.array_agg(${lasts})
      from made join given using (id) where feed having count(*) > 0)`
  const inserting = (
    more: string,
    runs = newRunsFrom(runsAt),
    { seq, status, idle, due, began } = undecided,
  ): string => `
    with clock as materialized (select ${now} as now),
    given as materialized (${runs}),
    -- A session that ends at the same time is found by a later rescue.
    dead as materialized (
      select id from ${schema}.sessions
      where shard = 0 and ended_at is not null and id = any(array(select session from given where session is not null))),
    made as (
      insert into ${schema}.runs (shard, id, type, version, status, readiness, rank, due, token, session, deadline,
        timeout_at, expires_at, key, key_scope, unique_key, idempotency_key, started_as, parent_id, tags, metadata,
        key_id, inbox, feed, created_at, updated_at${seq})
      select $1::smallint, id, type, version,
        case ${status}when leased then 'running' else 'pending' end,
        case ${idle}when leased then 'leased' when due > now then 'timed' else 'ready' end,
        rank, case when leased then null else due end, case when leased then token else 0 end,
        case when leased then session end, case when leased then now + lease_ms end,
        now + timeout_ms, case when leased${began} then null else now + expires_ms end,
        key, key_scope, unique_key, idempotency_key, case when idempotency_key is not null then type end,
        parent_id, tags, metadata, key_id, coalesce(inbox, 0), coalesce(feed, false), now, now${seq}
      from (
        select given.*, clock.now, ${due} as due,
          session is not null and session not in (select id from dead) as leased
        from given cross join clock) as one
      -- The one order in which every transaction inserts.
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
    one: statement(planned(...first), inserting('', usualRunsFrom(runsAt, true))),
    usual: statement(planned(...first), inserting('', usualRunsFrom(runsAt, false))),
    plain: statement(planned(...first), inserting('')),
    fed: statement(planned(...first, 'start.feed'), inserting(feeding())),
  }
  const insertWithMessages = {
    plain: statement(planned(...first, 'start.messages'), inserting(insertingMessages(messagesAt))),
    fed: statement(
      planned(...first, 'start.messages', 'start.feed'),
      inserting(insertingMessages(messagesAt) + feeding()),
    ),
  }
  // The first input of some is decided.
  const following = `,
    followed as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, created_at, t
      from ${entriesFrom(followingAt + 1)} join made on made.id = entry.r)`
  const insertingDecided = (more: string): string =>
    inserting(insertingMessages(followingAt) + following + more, decidedRunsFrom(runsAt), decided)
  const insertDecided = {
    plain: statement(planned(...first, 'start.messages'), insertingDecided('')),
    fed: statement(planned(...first, 'start.messages', 'start.feed'), insertingDecided(feeding('seq'))),
  }

  const look = statement(
    planned('start.look'),
    `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        place integer, id uuid))
    select place, transition_id, ${runColumns('run')}
    from given cross join lateral (
      select * from ${schema}.runs where shard = $1::smallint and id = given.id offset 0) as run
      cross join lateral (
      select transition_id from ${schema}.journal where shard = $1::smallint and run_id = given.id and seq = 1
      offset 0) as entry`,
  )

  /** Inserts the runs without an obstacle, and gives their answers. */
  async function insertNew(
    x: Execution,
    shard: number,
    runs: readonly RunStart[],
    give: (run: RunStart, answer: Started) => void,
  ): Promise<void> {
    const chosen = foremost(runs)
    if (isSpread) return insertSpread(x, shard, chosen, runs, give)
    const byId = new Map<string, RunStart>()
    for (const run of chosen) byId.set(run.id, run)
    const nth = chosen === runs ? null : placesIn(runs)
    const { values, isUsual } = valuesOfNewRuns(chosen, (run, place) => nth?.get(run) ?? place)
    const given = [shard, ...values]
    const messages = chosen.flatMap(messageNameOf)
    const kind = as === 'start' && chosen.some(({ feed }) => feed) ? 'fed' : 'plain'
    const usual = chosen.length === 1 ? 'one' : 'usual'
    let rows: readonly Row[]
    if (chosen.some(isDecidedRun)) {
      const appends = new Appends()
      for (const run of chosen) appends.add(run.id, 1, followingOf(run), run.decided?.id ?? null, 0)
      rows = await x.execute(insertDecided[kind], [...given, JSON.stringify(messages), ...appends.values])
    } else {
      rows =
        messages.length === 0
          ? await x.execute(insert[isUsual ? usual : kind], given)
          : await x.execute(insertWithMessages[kind], [...given, JSON.stringify(messages)])
    }
    for (const row of rows) {
      const run = byId.get(row['id'] as string) as RunStart
      const leased = isTrue(row['leased'])
      const made = insertedRow(run, Number(row['created_at']), leased)
      if (!leased) hintPlace(x, made)
      hintDeadline(x, made, made.createdAt)
      const inbox = messagesOf(run).length
      // Hardly any has messages: the others are handed out as they were made.
      give(run, { created: true, taken: null, run: inbox === made.inbox ? made : { ...made, inbox } })
    }
  }

  async function insertSpread(
    x: Execution,
    shard: number,
    chosen: readonly RunStart[],
    runs: readonly RunStart[],
    give: (run: RunStart, answer: Started) => void,
  ): Promise<void> {
    const nth = placesIn(runs)
    const byId = new Map(chosen.map((run) => [run.id, run]))
    // A child gets its place in the feed later.
    const isFed = (run: RunStart): boolean => as === 'start' && run.feed
    const starts = chosen.map((run) => ({
      run,
      isFed: isFed(run),
      nth: nth.get(run) ?? 0,
      messages: messageNameOf(run),
    }))
    for (const run of await spread.insert(x, shard, starts)) {
      if (run.session === null) hintPlace(x, run)
      hintDeadline(x, run, run.createdAt)
      give(byId.get(run.id) as RunStart, { created: true, taken: null, run })
    }
  }

  /** The runs that have these ids, in order. */
  async function lookForTwins(
    x: Execution,
    shard: number,
    runs: readonly NewRun[],
  ): Promise<readonly (Twin | undefined)[]> {
    const rows = await x.execute(look, [shard, JSON.stringify(runs.map(({ id }, place) => ({ place, id })))])
    const found = new Map(rows.map((row) => [Number(row['place']), row]))
    return runs.map((_, place) => {
      const row = found.get(place)
      return row === undefined ? undefined : { run: runOf(row), transition: row['transition_id'] as string | null }
    })
  }

  return {
    start: (x, shard, runs, inserted) =>
      startInRounds(runs, async (open, answers) => {
        await insertNew(x, shard, open, (run, answer) => {
          answers.set(run, answer)
          inserted?.add(run.id)
        })
        if (answers.size === runs.length) return
        const left = open.filter((run) => !answers.has(run))
        if (left.length === 0) return
        const twins = await lookForTwins(x, shard, left)
        for (const [place, run] of left.entries()) {
          const twin = twins[place]
          if (twin !== undefined) answers.set(run, startedBefore(twin, run))
        }
      }),
    lookForTwins,
  }
}

/** Where each stands in its batch. */
function placesIn(runs: readonly RunStart[]): ReadonlyMap<RunStart, number> {
  return new Map(runs.map((run, place) => [run, place]))
}

/** How the insert of runs differs where the first input of some is decided. */
interface Variant {
  readonly seq: string
  readonly status: string
  readonly idle: string
  readonly due: string
  readonly began: string
}

const dueAtStart = 'coalesce(least(due_at, now + due_after), now)'
const undecided: Variant = { seq: '', status: '', idle: '', due: dueAtStart, began: '' }
const decided: Variant = {
  seq: ', seq',
  status: `when waits then 'waiting' `,
  idle: `when due is null then 'idle' `,
  due: `case when waits then least(due_at, now + due_after) else ${dueAtStart} end`,
  began: ' or waits',
}

function messageNameOf(run: NewRun): readonly object[] {
  return messagesOf(run).map(({ id: m, kind, name, data, policy }, index) => {
    const draft = { r: run.id, position: index + 1, m, kind, name, data }
    return policy === null ? draft : { ...draft, ...policyColumns(policy) }
  })
}
