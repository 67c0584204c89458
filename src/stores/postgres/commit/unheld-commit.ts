// Committing transitions without a lease that are entries and a time: one update with the fence in its condition, together with
// their entries and their row of the feed. Everything that it judges is a column of the row, and so is judged anew after a wait for
// its lock. A message that wakes a run makes it ready and due: such a run keeps that time, and is left to the core, which reads
// its mailbox.

import { assertLegal, sends, type Transition } from '../../../core/model/transition.ts'
import type { Committed } from '../../../store.ts'
import { ArrayText, rowsFrom } from '../array-text.ts'
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

const columns = { id: 'uuid', seq: 'integer', more: 'integer', due_at: 'bigint', due_after: 'bigint' }

/** The places of values: the shard is before them. */
const movesAt = 2
const entriesAt = movesAt + Object.keys(columns).length

/** A transition without a lease that the update can do. Invalid ones are left to the core. */
export function isUsualUnheld(transition: Transition): boolean {
  const { guard, status, outbound = null, keyId = null, base = null } = transition
  if (guard.lease !== null || status !== 'waiting' || outbound !== null || keyId !== null || base !== null) return false
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
  const update = (hasFeed: boolean) => {
    const feed: readonly StatementName[] = hasFeed ? ['commit.feed'] : []
    return statement(
      ['commit.update', 'commit.append', ...feed, 'commit.commit'],
      `
    with clock as materialized (select ${now} as now),
    given as materialized (
      select given.*, clock.now, least(due_at, now + due_after) as due
      from ${rowsFrom(columns, movesAt)} as given cross join clock),
    moved as (
      update ${schema}.runs as run set seq = given.seq + more, updated_at = now, due = given.due,
        readiness = case when given.due is null then 'idle' when given.due > now then 'timed' else 'ready' end
      from given
      where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id
        and run.seq = given.seq and run.status = 'waiting' and run.readiness in ('idle', 'timed')
        and (run.due is null or run.due > now) and run.deleted_at is null ${hasFeed ? '' : 'and not run.feed'}
      returning run.id, run.feed, run.inbox, now, run.seq as last, given.seq + 1 as first, ${placeRead('run')} as place),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, now, t
      from ${entriesFrom(entriesAt)} join moved on moved.id = entry.r)${hasFeed ? feeding : ''}
    select id, inbox, place, now from moved`,
    )
  }
  const statements = { withFeed: update(true), withoutFeed: update(false) }

  return async (x, shard, transitions) => {
    const appends = new Appends()
    for (const { id, runId, guard, append } of transitions) appends.add(runId, guard.seq, append, id, 0)
    const hasFeed = transitions.some(({ feed = false }) => feed)
    const values = [shard, ...valuesOf(transitions), ...appends.values]
    const rows = await x.execute(statements[hasFeed ? 'withFeed' : 'withoutFeed'], values)
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
    return answers
  }
}

function valuesOf(transitions: readonly Transition[]): readonly Value[] {
  const [id, seq, more] = [new ArrayText(), new ArrayText(), new ArrayText()]
  const [dueAt, dueAfter] = [new ArrayText(), new ArrayText()]
  for (const { runId, guard, append, due } of transitions) {
    id.add(runId)
    seq.add(guard.seq)
    more.add(append.length)
    dueAt.add(due?.at)
    dueAfter.add(due?.afterMs)
  }
  return [id, seq, more, dueAt, dueAfter].map(String)
}
