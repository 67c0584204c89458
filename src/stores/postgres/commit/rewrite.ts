// Locked rows, as they are written back with all decisions about them: each run once, however many decisions that were, and
// all runs of a shard in one statement, with their entries and, if any are in the feed, their row of the feed.

import { nearDeadline } from '../../../core/rules/claims/deadline.ts'
import { uniqueText } from '../../../core/model/key.ts'
import { wakeNamesText } from '../../../core/rows/wake-names.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import type { StatementName } from '../statement-name.ts'
import { entriesFrom, entryValues, type Appends } from './appends.ts'
import { exchangeMethods, type ExchangeMethod } from '../exchange/load/unit-of-work-statements.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution } from '../execution.ts'

type WriteRuns = (
  x: Execution,
  end: ExchangeMethod,
  shard: number,
  runs: readonly Run[],
  appends: Appends,
  now: number,
) => Promise<unknown>

export interface RewriteQueries {
  /** Writes rows of a shard, as they are from here on, and their entries. */
  readonly write: WriteRuns
  /** The same in two statements, for what others get is written between them. */
  readonly writeRows: WriteRuns
  feed(x: Execution, end: ExchangeMethod, shard: number, appends: Appends): Promise<unknown>
}

interface Statements {
  /** Without entries. */
  readonly silent: Statement
  readonly appending: Statement
  readonly feeding: Statement
  /** Both of them. */
  readonly whole: Statement
}

export function createRewriteQueries({ schema, feedNumber }: Dialect): RewriteQueries {
  const rows = `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        id uuid, type text, version integer, unique_key text, status text, readiness text, due bigint, seq integer,
        base integer, inbox integer, wake_names text, watched boolean, control_request text, undo text, crashes integer, token bigint, session text,
        deadline bigint, timeout_at bigint, expires_at bigint, updated_at bigint, ended_at bigint, deleted_at bigint,
        delete_reason text, key_id text, feed boolean)),
    moved as (
      update ${schema}.runs as run set type = given.type, version = given.version, unique_key = given.unique_key,
        status = given.status, readiness = given.readiness, due = given.due, seq = given.seq, base = given.base,
        inbox = given.inbox, wake_names = given.wake_names, watched = given.watched, control_request = given.control_request, undo = given.undo, crashes = given.crashes,
        token = given.token, session = given.session, deadline = given.deadline, timeout_at = given.timeout_at,
        expires_at = given.expires_at, updated_at = given.updated_at, ended_at = given.ended_at,
        deleted_at = given.deleted_at, delete_reason = given.delete_reason, key_id = given.key_id, feed = given.feed
      from given where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id)`
  const entries = (now: string): string => `
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, ${now}, t
      from ${entriesFrom(3)}`
  const feed = (ranges: string): string => `
    insert into ${schema}.feed (shard, number, runs, firsts, lasts)
    select $1::smallint, pg_catalog.nextval(${feedNumber}), pg_catalog.array_agg(r), pg_catalog.array_agg(first),
      pg_catalog.array_agg(last)
    from json_to_recordset(${ranges}::text::json) as range (r uuid, first integer, last integer) having count(*) > 0`
  // Behind the shard, the rows and the entries.
  const behind = 3 + entryValues
  const planOf = (end: ExchangeMethod): Statements => {
    const write = end === 'deliver' ? 'deliver.bump' : (`${end}.write` as const)
    // A delivery appends nothing.
    const isDelivery = end === 'deliver'
    const append: readonly StatementName[] = isDelivery ? [write] : [write, `${end}.append`]
    const last: readonly StatementName[] = isDelivery ? [] : [`${end}.feed`]
    return {
      silent: statement(write, `${rows} select 1`),
      appending: statement(append, `${rows} ${entries(`$${behind}::bigint`)}`),
      feeding: statement(last, feed('$2')),
      whole: statement(
        [...append, ...last],
        `${rows}, appended as (${entries(`$${behind}::bigint`)}) ${feed(`$${behind + 1}`)}`,
      ),
    }
  }
  const statements = Object.fromEntries(exchangeMethods.map((end) => [end, planOf(end)])) as Record<
    ExchangeMethod,
    Statements
  >

  return {
    write(x, end, shard, runs, appends, now) {
      const given = rowsJson(runs)
      if (appends.isEmpty) return x.execute(statements[end].silent, [shard, given])
      return appends.isFeedEmpty
        ? x.execute(statements[end].appending, [shard, given, ...appends.values, now])
        : x.execute(statements[end].whole, [shard, given, ...appends.values, now, appends.rangesJson])
    },
    writeRows(x, end, shard, runs, appends, now) {
      const given = rowsJson(runs)
      return appends.isEmpty
        ? x.execute(statements[end].silent, [shard, given])
        : x.execute(statements[end].appending, [shard, given, ...appends.values, now])
    },
    async feed(x, end, shard, appends) {
      if (!appends.isFeedEmpty) await x.execute(statements[end].feeding, [shard, appends.rangesJson])
    },
  }
}

/** A hint for rescuers: the time of this run will be over soon. */
export function hintDeadline({ hints }: Pick<Execution, 'hints'>, run: Run, now: number): void {
  const at = nearDeadline(run, now)
  if (at !== null) hints.push({ kind: 'deadline', at })
}

/** Adds the hints about a changed row. */
export function hintOf(
  { hints }: Pick<Execution, 'hints'>,
  before: Run['status'] | undefined,
  run: Pick<Run, 'id' | 'type' | 'status' | 'readiness'> & Partial<Pick<Run, 'version' | 'priority' | 'due'>>,
): void {
  const { id, status } = run
  if (isTerminal(status) && (before === undefined || !isTerminal(before))) hints.push({ kind: 'ended', runId: id })
  hintPlace({ hints }, run)
}

/** A hint for claimers: the place of a ready or timed run, as far as that is known. */
export function hintPlace(
  { hints }: Pick<Execution, 'hints'>,
  run: Pick<Run, 'type' | 'readiness'> & Partial<Pick<Run, 'version' | 'priority' | 'due'>>,
): void {
  const { type, readiness, version, priority, due } = run
  if (readiness !== 'ready' && readiness !== 'timed') return
  const isTimed = readiness === 'timed'
  if (version === undefined || priority === undefined || typeof due !== 'number') {
    hints.push({ kind: 'ready', type, isTimed })
  } else hints.push({ kind: 'ready', type, isTimed, version, rank: 0 - priority, due })
}

/** The place of a run that goes on later, as one column that an update returns. */
export function placeRead(run: string): string {
  return `case when ${run}.due is not null then ${run}.readiness::text || ' '::text || ${run}.version::text || ' '::text || ${run}.rank::text
          || ' '::text || ${run}.due::text || ' '::text || ${run}.type::text end`
}

/** Where a run that goes on later stands in the order of claims. */
export function placeOf(place: string): Pick<Run, 'type' | 'readiness' | 'version' | 'priority' | 'due'> {
  const [readiness, version, rank, due, ...type] = place.split(' ') as [Run['readiness'], ...string[]]
  return { readiness, version: Number(version), priority: 0 - Number(rank), due: Number(due), type: type.join(' ') }
}

function rowsJson(runs: readonly Run[]): string {
  return JSON.stringify(runs.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(rowJson))
}

function rowJson(run: Run): object {
  const { id, type, version, status, readiness, due, seq, base, inbox, watched, undo, crashes, token, session } = run
  const controlRequest = run.controlRequest === null ? null : JSON.stringify(run.controlRequest)
  const place = { id, type, version, unique_key: uniqueText(run), status, readiness, due, seq, base, inbox, watched }
  const wakeNames = wakeNamesText(run.wakeNames, token)
  const times = { deadline: run.deadline, timeout_at: run.timeoutAt, expires_at: run.expiresAt }
  const ends = {
    ended_at: run.endedAt,
    deleted_at: run.deletedAt,
    delete_reason: run.deleteReason,
    key_id: run.keyId,
    feed: run.feed,
  }
  return {
    ...place,
    wake_names: wakeNames,
    control_request: controlRequest,
    undo,
    crashes,
    token,
    session,
    ...times,
    updated_at: run.updatedAt,
    ...ends,
  }
}
