// Committing transitions. Most are one update with the fence in its condition, together with their entries and, if one of
// them is of a run with a feed, their row of the feed: one statement, and so one round trip and one transaction. Holder,
// token, place in the journal and the mailbox's counter are columns of the row, so they are judged anew after a wait for its
// lock (EvalPlanQual); so is whether another run must be notified of an end. Any other transition is locked, then read, and
// judged by the core, in a transaction of its own: see `locked-commit.ts`.

import type { Draft } from '../../../core/model/entry.ts'
import { isTerminal } from '../../../core/model/run.ts'
import type { Transition } from '../../../core/model/transition.ts'
import type { BatchOptions, Committed } from '../../../store.ts'
import type { StatementName } from '../statement-name.ts'
import { Appends, entriesFrom, entryValues } from './appends.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Transactions } from '../execution.ts'
import { lockRequestOf, type LockedCommitQueries } from './locked-commit.ts'
import type { RefusedOthers } from '../exchange/refused-others.ts'
import { hintPlace, placeOf, placeRead } from './rewrite.ts'
import { hasMetLock, setAside } from './locked-items.ts'
import { updateMessages } from './take-messages.ts'
import { createSpreadCommitQueries } from '../spread/spread-commit.ts'
import { movesFrom, moveValues, valuesOfMoves } from './usual-moves.ts'
import { createUnheldCommit, isUsualUnheld } from './unheld-commit.ts'
import { unwatchesOf, unwatchSql, withoutMany } from './unwatch.ts'
import { isOneStep, isUsual, takesOf, type HeldTransition } from './usual-transition.ts'

export interface CommitQueries {
  /** Commits transitions of one shard. */
  commit(
    db: Transactions,
    shard: number,
    transitions: readonly Transition[],
    options?: BatchOptions,
  ): Promise<readonly Committed[]>
}

/** Usual transitions wait for locks together at most this many times: another transaction may come in between once. */
const mostWaits = 2

/** The places of values: the shard and the session are before them. */
const movesAt = 3
const entriesAt = movesAt + moveValues
const takesAt = entriesAt + entryValues

/** How some that need no look are sent. */
interface SendingTogether<One> {
  readonly send: (x: Execution, shard: number, some: readonly One[]) => Promise<ReadonlyMap<string, Committed>>
  readonly options: BatchOptions | undefined
}

const busy: Committed = { outcome: 'refused', reason: 'busy' }

/** The statements between the update and the end, and whether the feed gets a row. */
function planOf(
  hasFeed: boolean,
  more: readonly StatementName[],
  ...last: readonly StatementName[]
): readonly StatementName[] {
  const feed: readonly StatementName[] = hasFeed ? ['commit.feed'] : []
  return ['commit.update', 'commit.append', ...more, ...feed, ...last, 'commit.commit']
}

export function createCommitQueries(
  dialect: Dialect,
  lockedCommitQueries: LockedCommitQueries,
  refused: RefusedOthers,
): CommitQueries {
  const { schema, now, feedNumber, skipLocked, isSpread } = dialect
  const spread = createSpreadCommitQueries(dialect)
  const taking = `,
    taken as (${updateMessages(schema, {
      from: 'take join moved on moved.id = take.r',
      found: 'message.id = take.id',
      take: 'take.seq, null',
    })})`
  const takes = `
    take as materialized (select * from json_to_recordset($${takesAt}::text::json) as take (r uuid, id text, seq integer)),`
  // A flush none of whose holders names a run with a feed has no statement for the feed. The row decides: the update skips a
  // run with a feed, and so that run is judged by the core.
  const withoutFeed = 'and not run.feed'
  const feeding = `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), pg_catalog.array_agg(id), pg_catalog.array_agg(first),
        pg_catalog.array_agg(last)
      from moved where feed and last >= first having count(*) > 0)`
  const update = (hasFeed: boolean, plan: readonly StatementName[], more: string, takes = '', isOne = false) =>
    statement(
      planOf(hasFeed, plan, 'commit.keys'),
      `
    with clock as materialized (select ${now} as now),${takes}
    given as materialized (
      select given.*, clock.now,
        case when status = 'pending' then coalesce(least(due_at, now + due_after), now)
          when status = 'waiting' then least(due_at, now + due_after) end as due
      from ${movesFrom(movesAt, isOne)} cross join clock),
    moved as (
      update ${schema}.runs as run set seq = given.seq + more, crashes = 0, updated_at = now,
        status = coalesce(given.status, run.status),
        readiness = case when given.status is null then 'leased' when given.due is null then 'idle'
          when given.due > now then 'timed' else 'ready' end,
        due = given.due,
        session = case when given.status is null then run.session end,
        deadline = case when given.status is null then run.deadline end,
        ended_at = case when ends then now end,
        wake_names = case when given.status is null then run.wake_names else given.wake_names end
      from given
      where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id
        and run.seq = given.seq and run.token = given.token and coalesce(run.session, '') = $2::text and run.status = 'running'
        and run.control_request is null and run.deleted_at is null
        and run.inbox = coalesce(given.inbox, run.inbox) and (given.ends is not true or not run.watched)
        and (given.status is distinct from 'succeeded' or run.timeout_at is null or run.timeout_at > now) ${hasFeed ? '' : withoutFeed}
      returning run.id, run.feed, run.inbox, now, run.seq as last, given.seq + 1 as first,
        ${placeRead('run')} as place,
        case when run.ended_at is not null then run.unique_key end as unique_key),
    freed as (
      delete from ${schema}.keys as held using moved
      where held.shard = $1::smallint and held.key = any(array(select unique_key from moved where unique_key is not null))
        and moved.unique_key is not null and held.key = moved.unique_key and held.type = ''::text and held.run_id = moved.id),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, r, s, k, n, m, d, now, t
      from ${entriesFrom(entriesAt)} join moved on moved.id = entry.r)${more}${hasFeed ? feeding : ''}
    select id, inbox, place, now from moved`,
    )

  const feedingOne = `,
    fed as (
      insert into ${schema}.feed (shard, number, runs, firsts, lasts)
      select $1::smallint, pg_catalog.nextval(${feedNumber}), array[id], array[seq], array[seq] from moved where feed)`
  // A run that is alone and takes one step after the other: measured, half of the cost of the statement for many. The update
  // itself reads the clock, which spares two nodes of the plan. Record 0033 says what else was tried.
  const checkpoint = (hasFeed: boolean) =>
    statement(
      planOf(hasFeed, []),
      `
    with moved as (
      update ${schema}.runs as run set seq = run.seq + 1, crashes = 0, updated_at = ${now}
      where run.shard = $1::smallint and run.id = $2::uuid and run.seq = $3::integer and run.token = $4::bigint
        and coalesce(run.session, '') = $5::text and run.status = 'running' and run.control_request is null
        and run.deleted_at is null ${hasFeed ? '' : withoutFeed}
      returning run.id, run.inbox, run.seq, run.feed, run.updated_at),
    appended as (
      insert into ${schema}.journal (shard, run_id, seq, kind, name, meta, data, at, transition_id)
      select $1::smallint, id, seq, $6::text, $7::text, $8::text, $9::text, updated_at, $10::text from moved)${hasFeed ? feedingOne : ''}
    select inbox, updated_at as now from moved`,
    )
  const usual = (hasFeed: boolean) => ({
    plain: update(hasFeed, [], ''),
    one: update(hasFeed, [], '', '', true),
    withTakes: update(hasFeed, ['commit.take'], taking, takes),
    withUnwatches: update(hasFeed, ['commit.take', 'commit.waits'], taking + unwatchSql(dialect, takesAt + 1), takes),
    checkpoint: checkpoint(hasFeed),
  })
  const statements = { withFeed: usual(true), withoutFeed: usual(false) }
  const commitUnheld = createUnheldCommit(dialect)

  const free = statement(
    [],
    `
    select id from ${schema}.runs
    where shard = $1::smallint and id = any(array(select value::uuid from json_array_elements_text($2::text::json)))
    for no key update ${skipLocked}`,
  )
  /** One step of one run. */
  async function commitStep(
    x: Execution,
    shard: number,
    { id, runId, guard, append, feed = false }: HeldTransition,
  ): Promise<ReadonlyMap<string, Committed>> {
    const [{ kind, name, meta, data }] = append as readonly [Draft]
    const { session, token } = guard.lease
    const entry = [kind, name, meta === null ? null : JSON.stringify(meta), data, id]
    const { checkpoint } = statements[feed ? 'withFeed' : 'withoutFeed']
    const [row] = await x.execute(checkpoint, [shard, runId, guard.seq, token, session, ...entry])
    if (row === undefined) return new Map()
    const at = Number(row['now'])
    const inbox = Number(row['inbox'])
    return new Map([
      [id, { outcome: 'committed', seq: guard.seq + 1, at, inbox, released: false, controlRequest: null }],
    ])
  }

  /** Those that their fence lets through. */
  async function commitUsual(
    x: Execution,
    shard: number,
    transitions: readonly HeldTransition[],
  ): Promise<ReadonlyMap<string, Committed>> {
    const [only] = transitions
    if (only !== undefined && transitions.length === 1 && isOneStep(only)) return commitStep(x, shard, only)
    const appends = new Appends()
    for (const { id, runId, guard, append } of transitions) appends.add(runId, guard.seq, append, id, 0)
    const takes = takesOf(transitions)
    const unwatches = unwatchesOf(dialect, transitions)
    const [{ guard: first }] = transitions as readonly [HeldTransition]
    const isOne = transitions.length === 1 && takes.length + unwatches.length === 0
    const values = [shard, first.lease.session, ...valuesOfMoves(transitions, isOne), ...appends.values]
    const { plain, one, withTakes, withUnwatches } =
      statements[transitions.some(({ feed = false }) => feed) ? 'withFeed' : 'withoutFeed']
    let usual = isOne ? one : plain
    if (takes.length + unwatches.length > 0) {
      usual = withTakes
      values.push(JSON.stringify(takes))
    }
    if (unwatches.length > 0) {
      usual = withUnwatches
      values.push(JSON.stringify(unwatches))
    }
    const rows = await x.execute(usual, values)
    const byRun = new Map(rows.map((row) => [row['id'] as string, row]))
    const answers = new Map<string, Committed>()
    for (const { id, runId, guard, append, status } of transitions) {
      const row = byRun.get(runId)
      if (row === undefined) continue
      const { inbox, now: at, place } = row as { readonly inbox: number; readonly now: number; readonly place: unknown }
      const seq = guard.seq + append.length
      answers.set(id, { outcome: 'committed', seq, at, inbox, released: status !== null, controlRequest: null })
      if (status !== null && isTerminal(status)) x.hints.push({ kind: 'ended', runId, isByHolder: true })
      else if (typeof place === 'string') hintPlace(x, placeOf(place))
    }
    return answers
  }

  /**
   * Usual transitions together. If another transaction has locked one of their runs, such as a slow transaction of a user,
   * the others do not wait for it: it is answered as busy, and sent again apart from them. Nor do the transitions of later
   * flushes, which queue behind this one: even a small batch waits shortly, and never again for a row that is known to be
   * locked.
   */
  async function commitTogether<One extends Transition>(
    db: Transactions,
    shard: number,
    transitions: readonly One[],
    { send, options }: SendingTogether<One>,
    waits = mostWaits,
  ): Promise<Map<string, Committed>> {
    const patient = skipLocked === ''
    if (transitions.length === 0) return new Map()
    try {
      const how = { ...options, patient }
      if (!isSpread) return new Map(await db.alone((x) => send(x, shard, transitions), null, how))
      return new Map(await db.transaction('commit.commit', (x) => send(x, shard, transitions), how))
    } catch (error) {
      if (patient || !hasMetLock(error)) throw error
    }
    if (transitions.length === 1 || waits === 1) return new Map(transitions.map(({ id }) => [id, busy]))
    const ids = JSON.stringify(transitions.map(({ runId }) => runId))
    const rows = await db.alone((x) => x.execute(free, [shard, ids]), null, options)
    const known = new Set(rows.map((row) => row['id']))
    const unlocked = transitions.filter(({ runId }) => known.has(runId))
    const answers = await commitTogether(db, shard, unlocked, { send, options }, waits - 1)
    for (const { id, runId } of transitions) {
      if (!known.has(runId)) answers.set(id, busy)
    }
    return answers
  }

  /**
   * Those that are judged by the core. A row that one of them concerns may be locked, too: a run that watches it, a topic,
   * the key of a child.
   */
  function commitJudged(
    db: Transactions,
    shard: number,
    transitions: readonly Transition[],
    options: BatchOptions | undefined,
  ): Promise<readonly Committed[]> {
    return setAside(dialect, {
      items: transitions,
      busy,
      hasOutbound: true,
      addressOf: ({ runId }) => runId,
      send: (some, { lockPolicy, patient }) => {
        const lockRequest = lockRequestOf(some)
        const how = { ...options, patient }
        const commit = (x: Execution) =>
          lockedCommitQueries.commit({ x, shard, transitions: some, lockRequest, how: { lockPolicy } })
        return refused.spare(db, lockRequest, () => db.transaction('commit.commit', commit, how))
      },
    })
  }

  return {
    async commit(db, shard, transitions, options) {
      const held = transitions.filter(isUsual)
      const session = held[0]?.guard.lease.session
      // Transitions that a process still sends under a session that it has lost are judged by the core.
      const usual = withoutMany(held.filter(({ guard }) => guard.lease.session === session))
      const send: SendingTogether<HeldTransition>['send'] = isSpread
        ? (x, of, some) => spread.commit(x, of, some)
        : commitUsual
      const answers = await commitTogether(db, shard, usual, { send, options })
      // Where rows are spread, the core judges them: what they save there is one look.
      const unheld = isSpread ? [] : firstOfEachRun(transitions.filter(isUsualUnheld))
      for (const [id, answer] of await commitTogether(db, shard, unheld, { send: commitUnheld, options })) {
        answers.set(id, answer)
      }
      const rest = transitions.filter(({ id }) => !answers.has(id))
      if (rest.length > 0) {
        const judged = await commitJudged(db, shard, rest, options)
        for (const [index, { id }] of rest.entries()) answers.set(id, judged[index] as Committed)
      }
      return transitions.map(({ id }) => answers.get(id) as Committed)
    },
  }
}

/** One statement writes a row once. The others of its run are judged after that. */
function firstOfEachRun(transitions: readonly Transition[]): readonly Transition[] {
  const runs = new Set<string>()
  return transitions.filter(({ runId }) => !runs.has(runId) && runs.add(runId))
}
