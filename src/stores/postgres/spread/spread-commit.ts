// The usual commit where rows are spread over machines. One statement with several writing parts would be taken apart there:
// Citus sends such a one as twenty, with intermediate results that it copies to and fro. So each write is a statement of its
// own, for one shard, which its machine executes as it is:
//
//   the time, of the machine that we are connected to: a statement that reads a clock takes Citus twice as long to plan
//   the update with the fence in its condition, which answers the runs that it moved
//   the entries of those, their messages, the waits that they give up and their row of the feed: all at once
//
// All of it is one transaction, which concerns one machine unless waits of other shards are given up.

import type { Draft } from '../../../core/model/entry.ts'
import { dueAt } from '../../../core/model/due.ts'
import { isTerminal } from '../../../core/model/run.ts'
import type { Transition } from '../../../core/model/transition.ts'
import type { Committed } from '../../../store.ts'
import { wakeNamesText } from '../../../core/rows/wake-names.ts'
import { Appends, entriesFrom } from '../commit/appends.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row } from '../execution.ts'
import { hintPlace } from '../commit/rewrite.ts'
import { unwatchesOf } from '../commit/unwatch.ts'
import { isOneStep, takesOf, type HeldTransition } from '../commit/usual-transition.ts'

export interface SpreadCommitQueries {
  /** In a transaction: commits those that their fence lets through, by their ids. */
  commit(x: Execution, shard: number, transitions: readonly HeldTransition[]): Promise<ReadonlyMap<string, Committed>>
}

export function createSpreadCommitQueries(dialect: Dialect): SpreadCommitQueries {
  const { schema, now, feedNumber } = dialect
  const time = statement([], `select ${now} as now`)
  const fence = `run.status = 'running' and run.control_request is null and run.deleted_at is null`

  /** A row with a feed is moved only by a flush that has a statement for it: see `commit.ts`. */
  const stepping = (hasFeed: boolean) =>
    statement(
      'commit.update',
      `
    update ${schema}.runs as run set seq = run.seq + 1, crashes = 0, updated_at = $6::bigint
    where run.shard = $1::smallint and run.id = $2::uuid and run.seq = $3::integer and run.token = $4::bigint
      and coalesce(run.session, '') = $5::text and ${fence} ${hasFeed ? '' : 'and not run.feed'}
    returning run.id, run.inbox, run.feed`,
    )
  const moving = (hasFeed: boolean) =>
    statement(
      'commit.update',
      `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (
        id uuid, seq integer, token bigint, inbox integer, more integer, status text, due bigint, ends boolean, wake_names text))
    update ${schema}.runs as run set seq = given.seq + more, crashes = 0, updated_at = $3::bigint,
      status = coalesce(given.status, run.status),
      readiness = case when given.status is null then 'leased' when given.due is null then 'idle'
        when given.due > $3::bigint then 'timed' else 'ready' end,
      due = given.due,
      session = case when given.status is null then run.session end,
      deadline = case when given.status is null then run.deadline end,
      ended_at = case when ends then $3::bigint end,
      wake_names = case when given.status is null then run.wake_names else given.wake_names end
    from given
    where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id
      and run.seq = given.seq and run.token = given.token and coalesce(run.session, '') = $4::text and ${fence}
      and run.inbox = coalesce(given.inbox, run.inbox) and (given.ends is not true or not run.watched)
      and (given.status is distinct from 'succeeded' or run.timeout_at is null or run.timeout_at > $3::bigint)
      ${hasFeed ? '' : 'and not run.feed'}
    returning run.id, run.feed, run.inbox, run.readiness, run.version, run.rank, run.due, run.type,
      case when run.ended_at is not null then run.unique_key end as unique_key`,
    )
  const step = { withFeed: stepping(true), withoutFeed: stepping(false) }
  const update = { withFeed: moving(true), withoutFeed: moving(false) }

  const appendOne = statement(
    'commit.append',
    `
    insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
    values ($1::smallint, $2::uuid, $3::integer, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::text)`,
  )
  const append = statement(
    'commit.append',
    `
    insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
    select $1::smallint, r, s, k, n, m, d, $2::bigint, t from ${entriesFrom(3)}`,
  )
  const take = statement(
    'commit.take',
    `
    update ${schema}.messages as message set taken_by = take.seq, fate = null
    from json_to_recordset($2::text::json) as take (r uuid, id text, seq integer)
    where message.shard = $1::smallint and message.run_id = take.r and message.id = take.id and message.taken_by is null`,
  )
  /** The business keys of runs that are over, which live in the shard of these. */
  const free = statement(
    'commit.keys',
    `
    delete from ${schema}.keys as held using json_to_recordset($2::text::json) as gone (key text, r uuid)
    where held.shard = $1::smallint and held.key = gone.key and held.type = ''::text and held.run_id = gone.r`,
  )
  const unwatch = statement(
    'commit.waits',
    `
    delete from ${schema}.waits as wait using json_to_recordset($2::text::json) as gone (kind text, target text, r uuid)
    where wait.shard = $1::smallint and wait.kind = gone.kind and wait.target = gone.target and wait.run_id = gone.r
      and wait.effect = 'notify'`,
  )
  const feed = statement(
    'commit.feed',
    `
    insert into ${schema}.feed (shard, number, runs, firsts, lasts)
    values ($1::smallint, pg_catalog.nextval(${feedNumber}), $2::text::uuid[], $3::text::integer[], $4::text::integer[])`,
  )

  async function timeOf(x: Execution): Promise<number> {
    const [row] = await x.execute(time, [])
    return Number(row?.['now'])
  }

  function writeFeed(x: Execution, shard: number, moved: readonly Transition[]): readonly Promise<unknown>[] {
    const written = moved.filter((one) => one.append.length > 0)
    if (written.length === 0) return []
    const runs = written.map(({ runId }) => runId)
    const firsts = written.map(({ guard }) => guard.seq + 1)
    const lasts = written.map(({ guard, append: { length } }) => guard.seq + length)
    return [x.execute(feed, [shard, listText(runs), listText(firsts), listText(lasts)])]
  }

  /** One step of one run: no statement has more than one row. */
  async function commitStep(
    x: Execution,
    shard: number,
    transition: HeldTransition,
  ): Promise<ReadonlyMap<string, Committed>> {
    const { id, runId, guard, append: drafts, feed: isFed = false } = transition
    const { session, token } = guard.lease
    const at = await timeOf(x)
    const [row] = await x.execute(step[isFed ? 'withFeed' : 'withoutFeed'], [
      shard,
      runId,
      guard.seq,
      token,
      session,
      at,
    ])
    if (row === undefined) return new Map()
    const [{ kind, name, meta, data }] = drafts as readonly [Draft]
    const text = meta === null ? null : JSON.stringify(meta)
    const seq = guard.seq + 1
    await Promise.all([
      x.execute(appendOne, [shard, runId, seq, kind, name, text, data, at, id]),
      ...(row['feed'] === true ? writeFeed(x, shard, [transition]) : []),
    ])
    const inbox = Number(row['inbox'])
    return new Map([[id, { outcome: 'committed', seq, at, inbox, released: false, controlRequest: null }]])
  }

  return {
    async commit(x, shard, transitions) {
      const [first] = transitions as readonly [HeldTransition]
      if (transitions.length === 1 && isOneStep(first)) return commitStep(x, shard, first)
      const at = await timeOf(x)
      const given = JSON.stringify(transitions.map((one) => givenOf(one, at)))
      const hasFeed = transitions.some((one) => one.feed === true)
      const values = [shard, given, at, first.guard.lease.session]
      const rows = await x.execute(update[hasFeed ? 'withFeed' : 'withoutFeed'], values)
      const byRun = new Map(rows.map((row) => [row['id'] as string, row]))
      const moved = transitions.filter(({ runId }) => byRun.has(runId))
      const appends = new Appends()
      for (const { id, runId, guard, append: drafts } of moved) appends.add(runId, guard.seq, drafts, id, 0)
      const takes = takesOf(moved)
      const over = rows.flatMap(({ id: r, unique_key: key }) => ((key ?? null) === null ? [] : [{ key, r }]))
      await Promise.all([
        ...(appends.isEmpty ? [] : [x.execute(append, [shard, at, ...appends.values])]),
        ...(takes.length === 0 ? [] : [x.execute(take, [shard, JSON.stringify(takes)])]),
        ...(over.length === 0 ? [] : [x.execute(free, [shard, JSON.stringify(over)])]),
        ...Array.from(byPlace(unwatchesOf(dialect, moved)), ([place, waits]) =>
          x.execute(unwatch, [place, JSON.stringify(waits)]),
        ),
        ...writeFeed(
          x,
          shard,
          moved.filter(({ runId }) => byRun.get(runId)?.['feed'] === true),
        ),
      ])
      return new Map(moved.map((one) => [one.id, answerOf(x, one, byRun.get(one.runId) as Row, at)]))
    },
  }
}

/** A transition as JSON, without its entries, and without what all of a batch have in common. */
function givenOf(transition: HeldTransition, now: number): object {
  const { runId: id, guard, append, status, parkIf, emptyAt } = transition
  const { seq, lease } = guard
  const { token } = lease
  const more = append.length
  if (status === null) return { id, seq, token, more }
  const ends = isTerminal(status) || undefined
  // A run that never got a message has none left to read, in any way of ending.
  const inbox = ends === true ? (emptyAt ?? 0) : parkIf?.inbox
  const wakeNames = wakeNamesText(parkIf?.wakeNames, token) ?? undefined
  return { id, seq, token, more, status, inbox, ends, wake_names: wakeNames, due: dueOf(transition, now) }
}

/** When it goes on; null if only something else wakes it, or if it is over. */
function dueOf({ status, due }: Transition, now: number): number | null {
  if (status === 'pending') return dueAt(due, now) ?? now
  return status === 'waiting' ? dueAt(due, now) : null
}

/** An array as Postgres writes it: of ids and numbers, which need no quotes. */
function listText(list: readonly (string | number)[]): string {
  return `{${list.join(',')}}`
}

/** By the shard of their waits. In order, in which every transaction takes them. */
function byPlace<One extends { readonly w: number }>(waits: readonly One[]): ReadonlyMap<number, readonly One[]> {
  const found = new Map<number, One[]>()
  for (const wait of waits.toSorted((a, b) => a.w - b.w)) found.set(wait.w, [...(found.get(wait.w) ?? []), wait])
  return found
}

function answerOf(x: Execution, { runId, guard, append, status }: Transition, row: Row, at: number): Committed {
  const seq = guard.seq + append.length
  if (status !== null && isTerminal(status)) x.hints.push({ kind: 'ended', runId, isByHolder: true })
  else if ((row['due'] ?? null) !== null) {
    const readiness = row['readiness'] as 'ready' | 'timed'
    const [version, rank, due] = [row['version'], row['rank'], row['due']].map(Number) as [number, number, number]
    hintPlace(x, { readiness, version, priority: 0 - rank, due, type: row['type'] as string })
  }
  return { outcome: 'committed', seq, at, inbox: Number(row['inbox']), released: status !== null, controlRequest: null }
}
