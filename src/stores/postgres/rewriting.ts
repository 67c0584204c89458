// Writing back what was decided about rows that are locked, with entries: steering, takeover, give-back and the rarer commits
// end with this. Each run is written once, however many decisions were made about it, and all of them in one statement.

import { uniqueText } from '../../core/key.ts'
import type { Rewrite } from '../../core/rewrite.ts'
import { isTerminal, type Run } from '../../core/run.ts'
import type { StatementName } from '../statement-plan.ts'
import { Appends, entryColumns } from './appends.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'

export interface Rewriting {
  /** `locked` are rows of one shard as they are now. */
  rewrites(shard: number, locked: readonly Run[], now: number): Rewrites
}

/** How it is written. `end` is what the plan calls it. */
type Write = (x: Execution, end: RewriteEnd, shard: number, rows: string, appends: Appends) => Promise<unknown>

export type RewriteEnd = 'commit' | 'steer' | 'rescue' | 'release'

export function rewriting({ schema, feedNumber }: Dialect): Rewriting {
  const text = `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        id uuid, type text, version integer, unique_key text, status text, readiness text, due bigint, seq integer,
        base integer, wish text, undo text, crashes integer, token bigint, session text, deadline bigint,
        timeout_at bigint, expires_at bigint, updated_at bigint, ended_at bigint, deleted_at bigint, delete_reason text)),
    moved as (
      update ${schema}.runs as run set type = given.type, version = given.version, unique_key = given.unique_key,
        status = given.status, readiness = given.readiness, due = given.due, seq = given.seq, base = given.base,
        wish = given.wish, undo = given.undo, crashes = given.crashes, token = given.token, session = given.session,
        deadline = given.deadline, timeout_at = given.timeout_at, expires_at = given.expires_at,
        updated_at = given.updated_at, ended_at = given.ended_at, deleted_at = given.deleted_at,
        delete_reason = given.delete_reason
      from given where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id)`
  const appending = `,
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, $5::bigint, t
      from json_to_recordset($3::text::json) as entry (${entryColumns}))
    insert into ${schema}.feed (shard, number, runs, firsts, lasts)
    select $1::smallint, nextval(${feedNumber}), array_agg(r), array_agg(first), array_agg(last)
    from json_to_recordset($4::text::json) as range (r uuid, first integer, last integer)`
  const plans = (end: RewriteEnd): readonly StatementName[] => [`${end}.write`, `${end}.append`, `${end}.feed`]
  const statements = Object.fromEntries(
    (['commit', 'steer', 'rescue', 'release'] as const).map((end) => [
      end,
      {
        silent: statement(`${end}.write`, `${text} select 1`),
        told: statement(plans(end), `${text} ${appending}`),
      },
    ]),
  ) as Record<RewriteEnd, Record<'silent' | 'told', ReturnType<typeof statement>>>

  const write =
    (now: number): Write =>
    (x, end, shard, rows, appends) =>
      appends.isEmpty
        ? x.execute(statements[end].silent, [shard, rows])
        : x.execute(statements[end].told, [shard, rows, appends.entriesJson, appends.rangesJson, now])

  return { rewrites: (shard, locked, now) => new Rewrites(shard, locked, write(now)) }
}

export class Rewrites {
  private readonly shard: number
  private readonly before = new Map<string, Run>()
  private readonly rows = new Map<string, Run>()
  private readonly changed = new Set<string>()
  private readonly appends = new Appends()
  private readonly sendAll: Write

  constructor(shard: number, locked: readonly Run[], sendAll: Write) {
    this.shard = shard
    this.sendAll = sendAll
    for (const run of locked) {
      this.before.set(run.id, run)
      this.rows.set(run.id, run)
    }
  }

  /** The row as it is by now. */
  get(runId: string): Run | undefined {
    return this.rows.get(runId)
  }

  /** All rows as they are by now. */
  all(): readonly Run[] {
    return [...this.rows.values()]
  }

  write(before: Run, { run, append }: Rewrite, transition: string | null): void {
    this.appends.add(before.id, before.seq, append, transition)
    this.rows.set(before.id, run)
    this.changed.add(before.id)
  }

  /** Sends everything that changed. */
  async flush(x: Execution, end: RewriteEnd): Promise<void> {
    if (this.changed.size === 0) return
    const changed = Array.from(this.changed, (id) => this.rows.get(id) as Run)
    const rows = JSON.stringify(changed.sort((a, b) => (a.id < b.id ? -1 : 1)).map(rowJson))
    await this.sendAll(x, end, this.shard, rows, this.appends)
    for (const run of changed) hintOf(x, this.before.get(run.id)?.status, run)
  }
}

/** Tells those who listen what a row has become. */
export function hintOf(
  { hints }: Pick<Execution, 'hints'>,
  before: Run['status'] | undefined,
  { id, type, status, readiness }: Pick<Run, 'id' | 'type' | 'status' | 'readiness'>,
): void {
  if (isTerminal(status) && (before === undefined || !isTerminal(before))) hints.push({ kind: 'ended', runId: id })
  if (readiness === 'ready' || readiness === 'timed') hints.push({ kind: 'ready', type })
}

function rowJson(run: Run): object {
  const { id, type, version, status, readiness, due, seq, base, undo, crashes, token, session, deadline } = run
  const wish = run.wish === null ? null : JSON.stringify(run.wish)
  const place = { id, type, version, unique_key: uniqueText(run), status, readiness, due, seq, base, wish, undo }
  const times = { timeout_at: run.timeoutAt, expires_at: run.expiresAt, updated_at: run.updatedAt }
  const ends = { ended_at: run.endedAt, deleted_at: run.deletedAt, delete_reason: run.deleteReason }
  return { ...place, crashes, token, session, deadline, ...times, ...ends }
}
