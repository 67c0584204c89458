// Committing transitions without a lease that are entries and a time: one update with the fence in its condition, together with
// their entries and their row of the feed. Everything that it judges is a column of the row, and so is judged anew after a wait for
// its lock. A message that wakes a run makes it ready and due: such a run keeps that time, and is left to the core, which reads
// its mailbox.
//
// Where many processes decide for one instance, most transitions are stale, and that is looked up without a lock: another
// transition has its place in the journal. Judged by the core, each of them would keep the next one waiting for a round trip.

import { assertLegal, sends, type Transition } from '../../../core/model/transition.ts'
import type { Committed } from '../../../store.ts'
import { ArrayText, rowFrom, rowsFrom } from '../array-text.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Value } from '../execution.ts'
import type { StatementName } from '../statement-name.ts'
import { Appends, entriesFrom } from './appends.ts'
import { hintPlace, placeOf, placeRead } from './rewrite.ts'

export type CommitUnheld = (
  x: Execution,
  shard: number,
  transitions: readonly Transition[],
) => Promise<ReadonlyMap<string, Committed>>

const columns = {
  id: 'uuid',
  seq: 'integer',
  more: 'integer',
  due_at: 'bigint',
  due_after: 'bigint',
  base: 'integer',
}

/** The places of values: the shard is before them. */
const movesAt = 2
const entriesAt = movesAt + Object.keys(columns).length

/** A transition without a lease that the update can do. Invalid ones are left to the core. */
export function isUsualUnheld(transition: Transition): boolean {
  const { guard, status, outbound = null, keyId = null } = transition
  if (guard.lease !== null || status !== 'waiting' || outbound !== null || keyId !== null) return false
  if (sends(transition)) return false
  try {
    assertLegal('waiting', transition)
    return true
  } catch {
    return false
  }
}

export function createUnheldCommit({ schema, now, feedNumber }: Dialect): CommitUnheld {
  const feeding = `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), pg_catalog.array_agg(id), pg_catalog.array_agg(first),
        pg_catalog.array_agg(last)
      from moved where feed having count(*) > 0)`
  const feedingOne = `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), array[id], array[first], array[last] from moved where feed)`
  const update = (hasFeed: boolean, isOne: boolean) => {
    const feed: readonly StatementName[] = hasFeed ? ['commit.feed'] : []
    const of = isOne
      ? `run.id = $${movesAt}::text::uuid`
      : 'run.id = any(array(select id from given)) and run.id = given.id'
    const feedSql = isOne ? feedingOne : feeding
    return statement(
      ['commit.update', 'commit.append', ...feed, 'commit.commit'],
      `
    with given as materialized (
      select given.*, clock.now, least(due_at, now + due_after) as due
      from ${(isOne ? rowFrom : rowsFrom)(columns, movesAt)} as given cross join (select ${now} as now offset 0) as clock),
    moved as (
      update ${schema}.runs as run set seq = given.seq + more, updated_at = now, due = given.due,
        base = coalesce(given.base, run.base),
        readiness = case when given.due is null then 'idle' when given.due > now then 'timed' else 'ready' end
      from given
      where run.shard = $1::smallint and ${of}
        and run.seq = given.seq and run.status = 'waiting' and run.readiness in ('idle', 'timed')
        and (run.due is null or run.due > now) and run.deleted_at is null ${hasFeed ? '' : 'and not run.feed'}
      returning run.id, run.feed, run.inbox, now, run.seq as last, given.seq + 1 as first, ${placeRead('run')} as place),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, now, t
      from ${entriesFrom(entriesAt)} join moved on moved.id = entry.r and entry.s between moved.first and moved.last)${hasFeed ? feedSql : ''}
    select id, inbox, place, now from moved`,
    )
  }
  const statements = {
    withFeed: { one: update(true, true), many: update(true, false) },
    withoutFeed: { one: update(false, true), many: update(false, false) },
  }
  const stale = statement(
    ['commit.stale', 'commit.commit'],
    `
    select given.id from ${rowsFrom({ id: 'uuid', seq: 'integer', transition: 'text' }, 2)} as given cross join lateral (
      select 1 from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = given.id and run.status = 'waiting' and run.readiness <> 'isolated'
        and run.session is null and run.deleted_at is null offset 0) as run
      cross join lateral (
      select transition_id from ${schema}.journal
      where shard = $1::smallint and run_id = given.id and journal.seq = given.seq + 1 offset 0) as entry
    where entry.transition_id is distinct from given.transition`,
  )

  /** Those whose place in the journal another transition has. */
  async function lookForStale(
    x: Execution,
    shard: number,
    transitions: readonly Transition[],
    answers: Map<string, Committed>,
  ): Promise<void> {
    const [ids, seqs, names] = [new ArrayText(), new ArrayText(), new ArrayText()]
    for (const { id, runId, guard } of transitions) {
      ids.add(runId)
      seqs.add(guard.seq)
      names.add(id)
    }
    const rows = await x.execute(stale, [shard, String(ids), String(seqs), String(names)])
    const found = new Set(rows.map((row) => row['id']))
    for (const { id, runId } of transitions) {
      if (found.has(runId)) answers.set(id, { outcome: 'refused', reason: 'stale' })
    }
  }

  return async (x, shard, transitions) => {
    const appends = new Appends()
    for (const { id, runId, guard, append } of transitions) appends.add(runId, guard.seq, append, id, 0)
    const hasFeed = transitions.some(({ feed = false }) => feed)
    const isOne = transitions.length === 1
    const values = [shard, ...valuesOf(transitions, isOne), ...appends.values]
    const rows = await x.execute(statements[hasFeed ? 'withFeed' : 'withoutFeed'][isOne ? 'one' : 'many'], values)
    const byRun = new Map(rows.map((row) => [row['id'] as string, row]))
    const answers = new Map<string, Committed>()
    for (const { id, runId, guard, append } of transitions) {
      const row = byRun.get(runId)
      if (row === undefined) continue
      const { inbox, now: at, place } = row as { readonly inbox: number; readonly now: number; readonly place: unknown }
      const seq = guard.seq + append.length
      answers.set(id, { outcome: 'committed', seq, at, inbox, released: true, controlRequest: null })
      if (typeof place === 'string') hintPlace(x, placeOf(place))
    }
    const rest = transitions.filter(({ id }) => !answers.has(id))
    if (rest.length > 0) await lookForStale(x, shard, rest, answers)
    return answers
  }
}

function valuesOf(transitions: readonly Transition[], isOne: boolean): readonly Value[] {
  const [id, seq, more] = [new ArrayText(), new ArrayText(), new ArrayText()]
  const [dueAt, dueAfter, bases] = [new ArrayText(), new ArrayText(), new ArrayText()]
  for (const { runId, guard, append, due, base } of transitions) {
    id.add(runId)
    seq.add(guard.seq)
    more.add(append.length)
    dueAt.add(due?.at)
    dueAfter.add(due?.afterMs)
    bases.add(base)
  }
  return [id, seq, more, dueAt, dueAfter, bases].map((array) => (isOne ? array.last : String(array)))
}
