// Committing transitions. Most are one update with the fence in its condition, together with their entries and their row of
// the feed: one statement, and so one round trip and one transaction. Holder, token, place in the journal and the mailbox's
// counter are columns of the row, so they are judged anew after a wait. What does not fit is locked, then looked at, and
// judged by the core, in a transaction of its own.

import { advanced, left } from '../../core/advance.ts'
import type { Draft } from '../../core/entry.ts'
import { bug, isHoldfastError } from '../../core/error.ts'
import { uniqueText } from '../../core/key.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { assertLegal, isParkedBy, receive, type Transition } from '../../core/transition.ts'
import type { Committed } from '../../store.ts'
import type { StatementName } from '../statement-plan.ts'
import { Appends, entryColumns } from './appends.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution, Row, Transactions } from './execution.ts'
import { hintOf, type Rewriting } from './rewriting.ts'
import { lockRuns, runOf } from './rows.ts'
import { isLocked, sqlStateOf } from './sql-state.ts'

export interface Committing {
  /** Commits transitions of one shard. */
  commit(db: Transactions, shard: number, transitions: readonly Transition[]): Promise<readonly Committed[]>
  /** The same inside one transaction, whatever the transitions are. */
  commitLocked(x: Execution, shard: number, transitions: readonly Transition[]): Promise<readonly Committed[]>
}

const usualPlan: readonly StatementName[] = ['commit.update', 'commit.append', 'commit.feed', 'commit.commit']

export function committing({ schema, now, feedNumber, skipLocked }: Dialect, rewriting: Rewriting): Committing {
  const taking = `,
    taken as (
      update ${schema}.messages as message set taken_by = take.seq
      from json_to_recordset($4::text::json) as take (r uuid, id text, seq integer)
        join moved on moved.id = take.r
      where message.shard = $1::smallint and message.run_id = any(array(select id from moved))
        and message.run_id = take.r and message.id = take.id and message.taken_by is null)`
  const update = (plan: readonly StatementName[], more: string) =>
    statement(
      plan,
      `
    with clock as materialized (select ${now} as now),
    given as materialized (
      select given.*, clock.now,
        case status when 'pending' then coalesce(least(due_at, now + due_after), now)
          when 'waiting' then least(due_at, now + due_after) end as due
      from json_to_recordset($2::text::json) as given (
        id uuid, seq integer, token bigint, session text, inbox integer, more integer, status text, due_at bigint,
        due_after bigint, ends boolean) cross join clock),
    moved as (
      update ${schema}.runs as run set seq = given.seq + more, crashes = 0, updated_at = now,
        status = coalesce(given.status, run.status),
        readiness = case when given.status is null then 'leased' when given.due is null then 'idle'
          when given.due > now then 'timed' else 'ready' end,
        due = given.due,
        session = case when given.status is null then run.session end,
        deadline = case when given.status is null then run.deadline end,
        ended_at = case when ends then now end
      from given
      where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id
        and run.seq = given.seq and run.token = given.token and coalesce(run.session, '') = given.session and run.status = 'running' and run.wish is null and run.deleted_at is null
        and run.inbox = coalesce(given.inbox, run.inbox)
      returning run.id, run.type, run.readiness, run.inbox, now, run.seq as last, given.seq + 1 as first),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, now, t
      from json_to_recordset($3::text::json) as entry (${entryColumns}) join moved on moved.id = entry.r)${more},
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, nextval(${feedNumber}), array_agg(id), array_agg(first), array_agg(last)
      from moved where last >= first having count(*) > 0)
    select id, type, readiness, inbox, now from moved`,
    )
  const plain = update(usualPlan, '')
  const withTakes = update(['commit.update', 'commit.append', 'commit.take', 'commit.feed', 'commit.commit'], taking)

  // A run that is alone and takes one step after the other: measured, half of what the statement for many costs.
  const checkpoint = statement(
    usualPlan,
    `
    with clock as materialized (select ${now} as now),
    moved as (
      update ${schema}.runs as run set seq = run.seq + 1, crashes = 0, updated_at = now from clock
      where run.shard = $1::smallint and run.id = $2::uuid and run.seq = $3::integer and run.token = $4::bigint
        and coalesce(run.session, '') = $5::text and run.status = 'running' and run.wish is null
        and run.deleted_at is null
      returning run.id, run.inbox, run.seq, now),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, id, seq, $6::text, $7::text, $8::text, $9::text, now, $10::text from moved),
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, nextval(${feedNumber}), array[id], array[seq], array[seq] from moved)
    select inbox, now from moved`,
  )

  const lock = statement('commit.lock', lockRuns(schema))
  const free = statement(
    [],
    `
    select id from ${schema}.runs
    where shard = $1::smallint and id = any(array(select value::uuid from json_array_elements_text($2::text::json)))
    for no key update ${skipLocked}`,
  )
  const look = statement(
    'commit.look',
    `
    select ${now} as now, null as run_id, null::integer as seq, null as transition_id, null::bigint as at
    union all
    select null, run_id::text, entry.seq, transition_id, at
    from json_to_recordset($2::text::json) as place (r uuid, s integer) cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = r and entry.seq = s offset 0) as entry`,
  )
  const holders = statement(
    'commit.look',
    `
    select run.id, run.unique_key
      from (select distinct value as key from json_array_elements_text($2::text::json)) as asked cross join lateral (
        select * from ${schema}.runs
        where shard = $1::smallint and unique_key = asked.key and ended_at is null and deleted_at is null offset 0) as run`,
  )
  const take = statement(
    'commit.take',
    `
    with take as materialized (
      select * from json_to_recordset($2::text::json) as take (r uuid, id text, seq integer))
    update ${schema}.messages as message set taken_by = take.seq from take
    where message.shard = $1::smallint and message.run_id = any(array(select r from take))
      and message.run_id = take.r and message.id = take.id and message.taken_by is null`,
  )

  /** One step of one run. */
  async function commitStep(
    x: Execution,
    shard: number,
    { id, runId, guard, append }: Transition,
  ): Promise<ReadonlyMap<string, Committed>> {
    const [{ kind, name, meta, data }] = append as readonly [Draft]
    const { session, token } = guard.lease
    const entry = [kind, name, meta === null ? null : JSON.stringify(meta), data, id]
    const [row] = await x.execute(checkpoint, [shard, runId, guard.seq, token, session, ...entry])
    if (row === undefined) return new Map()
    const at = Number(row['now'])
    const inbox = Number(row['inbox'])
    return new Map([[id, { outcome: 'committed', seq: guard.seq + 1, at, inbox, released: false, wish: null }]])
  }

  /** Those that their fence lets through. */
  async function commitUsual(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
  ): Promise<ReadonlyMap<string, Committed>> {
    const [only] = transitions
    if (only !== undefined && transitions.length === 1 && isOneStep(only)) return commitStep(x, shard, only)
    const appends = new Appends()
    for (const { id, runId, guard, append } of transitions) appends.add(runId, guard.seq, append, id)
    const takes = takesOf(transitions)
    const values = [shard, JSON.stringify(transitions.map(givenOf)), appends.entriesJson]
    const rows =
      takes.length === 0
        ? await x.execute(plain, values)
        : await x.execute(withTakes, [...values, JSON.stringify(takes)])
    const byRun = new Map(rows.map((row) => [row['id'] as string, row]))
    const answers = new Map<string, Committed>()
    for (const { id, runId, guard, append, status } of transitions) {
      const row = byRun.get(runId)
      if (row === undefined) continue
      const answer = { outcome: 'committed', seq: guard.seq + append.length, wish: null } as const
      const { inbox, now: at } = row as { readonly inbox: number; readonly now: number }
      answers.set(id, { ...answer, at, inbox, released: status !== null })
      if (status !== null) {
        const readiness = row['readiness'] as Run['readiness']
        hintOf(x, 'running', { id: runId, type: row['type'] as string, status, readiness })
      }
    }
    return answers
  }

  /**
   * Usual ones together. If somebody else has locked one of their runs, in a transaction of a user that takes its time,
   * the others do not wait for it: it is answered as busy, and sent again alone, where it does wait.
   */
  async function commitTogether(
    db: Transactions,
    shard: number,
    transitions: readonly Transition[],
  ): Promise<Map<string, Committed>> {
    const patient = transitions.length === 1 || skipLocked === ''
    try {
      return new Map(await db.alone((x) => commitUsual(x, shard, transitions), null, { patient }))
    } catch (error) {
      if (patient || !isHoldfastError(error) || !isLocked(sqlStateOf(error.cause))) throw error
    }
    const ids = JSON.stringify(transitions.map(({ runId }) => runId))
    const rows = await db.alone((x) => x.execute(free, [shard, ids]))
    const known = new Set(rows.map((row) => row['id']))
    const unlocked = transitions.filter(({ runId }) => known.has(runId))
    const answers = unlocked.length === 0 ? new Map<string, Committed>() : await commitTogether(db, shard, unlocked)
    for (const { id, runId } of transitions) {
      if (!known.has(runId)) answers.set(id, { outcome: 'refused', reason: 'busy' })
    }
    return answers
  }

  async function commitLocked(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
  ): Promise<readonly Committed[]> {
    const ids = JSON.stringify(transitions.map(({ runId }) => runId))
    const places = transitions.flatMap(({ runId: r, guard, append }) => [
      { r, s: guard.seq + 1 },
      { r, s: guard.seq + append.length },
    ])
    const [locked, seen] = await Promise.all([
      x.execute(lock, [shard, ids]),
      x.execute(look, [shard, JSON.stringify(places)]),
    ])
    const runs = new Map(locked.map((row) => [row['id'] as string, runOf(row)]))
    const time = Number(seen[0]?.['now'])
    const entries = new Map(seen.slice(1).map((row) => [`${row['run_id'] as string} ${Number(row['seq'])}`, row]))
    const keys = transitions.flatMap((transition) => keyAfter(transition, runs.get(transition.runId), time))
    const rivals = keys.length === 0 ? [] : await x.execute(holders, [shard, JSON.stringify(keys)])
    const rewrites = rewriting.rewrites(shard, [...runs.values()], time)
    const written: Transition[] = []
    const answers = transitions.map((transition): Committed => {
      const { id, runId, guard, append } = transition
      const run = runs.get(runId)
      if (run === undefined) return { outcome: 'refused', reason: 'not-found' }
      if (append.length > 0 && run.seq > guard.seq) {
        const first = entries.get(`${runId} ${guard.seq + 1}`)
        if (first?.['transition_id'] === id) return repeated(run, transition, entries)
      }
      if (!holds(run, guard.lease)) {
        return isParkedBy(run, transition)
          ? { outcome: 'committed', seq: run.seq, at: run.updatedAt, inbox: run.inbox, released: true, wish: null }
          : { outcome: 'refused', reason: 'lease-lost' }
      }
      if (run.seq !== guard.seq) return { outcome: 'refused', reason: 'stale' }
      assertLegal(run.status, transition)
      const received = receive(run, transition)
      if (received === 'refused') return { outcome: 'refused', reason: 'cancelling', wish: run.wish }
      const kept = advanced(run, transition, time)
      if (isKeyTaken(transition, kept, rivals)) return { outcome: 'refused', reason: 'key-taken' }
      const released = received === 'released'
      rewrites.write(run, { run: released ? left(kept, transition, time) : kept, append }, id)
      written.push(transition)
      const wish = released ? null : run.wish
      return { outcome: 'committed', seq: kept.seq, at: time, inbox: run.inbox, released, wish }
    })
    const takes = takesOf(written)
    await rewrites.flush(x, 'commit')
    if (takes.length > 0) await x.execute(take, [shard, JSON.stringify(takes)])
    return answers
  }

  return {
    commitLocked,
    async commit(db, shard, transitions) {
      const usual = transitions.filter(isUsual)
      const answers = usual.length === 0 ? new Map<string, Committed>() : await commitTogether(db, shard, usual)
      const rest = transitions.filter(({ id }) => !answers.has(id))
      if (rest.length > 0) {
        const judged = await db.transaction('commit.commit', (x) => commitLocked(x, shard, rest))
        for (const [index, { id }] of rest.entries()) answers.set(id, judged[index] as Committed)
      }
      return transitions.map(({ id }) => answers.get(id) as Committed)
    },
  }
}

/** One that an update with the fence in its condition can do. What nobody may ask for is left to those who look. */
function isUsual(transition: Transition): boolean {
  const { undo, continues, status } = transition
  if (undo !== null || continues !== null || status === 'cancelling') return false
  try {
    assertLegal('running', transition)
    return true
  } catch {
    return false
  }
}

function isOneStep({ append, status, takes }: Transition): boolean {
  return append.length === 1 && status === null && takes.length === 0
}

/** A transition as JSON, without its entries. */
function givenOf({ runId, guard, append, status, due, parkIf }: Transition): object {
  const { seq, lease } = guard
  const given = { id: runId, seq, token: lease.token, session: lease.session, more: append.length }
  if (status === null) return given
  const leaving = { ...given, status, inbox: parkIf?.inbox, ends: isTerminal(status) }
  return due === null ? leaving : { ...leaving, due_at: due.at, due_after: due.afterMs }
}

/** Messages that leave their mailbox. One that was taken stays known, so that delivering it again changes nothing. */
function takesOf(transitions: readonly Transition[]): readonly object[] {
  return transitions.flatMap(({ runId: r, guard, takes }) => takes.map((id) => ({ r, id, seq: guard.seq + 1 })))
}

/** The key that the run would have if it began anew as another. */
function keyAfter(transition: Transition, run: Run | undefined, now: number): readonly string[] {
  if (transition.continues === null || run === undefined) return []
  const key = uniqueText(advanced(run, transition, now))
  return key === null ? [] : [key]
}

/** The unique index decides; this only tells before it would have to. */
function isKeyTaken({ continues }: Transition, run: Run, rivals: readonly Row[]): boolean {
  if (continues === null || run.deletedAt !== null) return false
  const key = uniqueText(run)
  return key !== null && rivals.some((row) => row['unique_key'] === key && row['id'] !== run.id)
}

/** The answer to a transition that was committed before, when its first answer was lost. */
function repeated(run: Run, { guard, append, status }: Transition, entries: ReadonlyMap<string, Row>): Committed {
  const seq = guard.seq + append.length
  const last = entries.get(`${run.id} ${seq}`)
  if (last === undefined) throw bug('A transition was committed in part', { runId: run.id })
  const held = holds(run, guard.lease)
  const wish = held ? run.wish : null
  const released = status !== null && !held
  return { outcome: 'committed', seq, at: Number(last['at']), inbox: run.inbox, released, wish }
}
