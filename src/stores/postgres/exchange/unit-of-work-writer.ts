// Sends the decisions of the rules of the exchange: rows and entries, messages to other runs, and waits. All of it is sent at
// once, in few statements for each shard, because nothing in it depends on an answer.

import { bug } from '../../../core/errors/error.ts'
import type { Chore } from '../../../core/model/chore.ts'
import { policyColumns } from '../../../core/rows/run-row.ts'
import { isControlled } from '../../../core/rules/messages/hints.ts'
import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import { shardFor } from '../../../core/model/run-id.ts'
import { Appends } from '../commit/appends.ts'
import { createKeyQueries } from '../commit/keys.ts'
import type { PostgresUnitOfWork } from './unit-of-work.ts'
import type { Put } from './pending-writes.ts'
import { createTopicQueries } from './topic-rows.ts'
import { exchangeMethods, type ExchangeMethod } from './load/unit-of-work-statements.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { Execution } from '../execution.ts'
import { hintDeadline, hintOf, createRewriteQueries } from '../commit/rewrite.ts'
import { shardOfChore, shardOfRun, shardOfWait } from '../schema/shards.ts'
import { updateMessages } from '../commit/take-messages.ts'
import { mostCombinations } from '../commit/unwatch.ts'

export interface UnitOfWorkWriter {
  write(x: Execution, end: ExchangeMethod, unitOfWork: PostgresUnitOfWork): Promise<void>
}

/** How many broadcasts are forgotten at once. */
const forgottenAtOnce = 100

interface Statements {
  readonly put: Statement
  /** Some of the messages that are put are given up at once. */
  readonly putAndSettle: Statement
  readonly settle: Statement
  readonly deleteWaits: Statement
  readonly addWaits: Statement
  readonly setMissed: Statement
  readonly broadcasts: Statement
  readonly setChores: Statement
  readonly deleteChores: Statement
}

export function createUnitOfWorkWriter(dialect: Dialect): UnitOfWorkWriter {
  const rows = createRewriteQueries(dialect)
  const keys = createKeyQueries(dialect)
  const topicRows = createTopicQueries(dialect)
  const { take, byEnd } = writingStatements(dialect)
  const ofRun = (id: string): number => {
    const shard = shardOfRun(dialect, id)
    if (shard === undefined) throw bug('Something is written of a run that cannot exist', { runId: id })
    return shard
  }
  const ofTopic = (name: string): number => shardFor(name, dialect.shards)
  const ofWait = (wait: WaitRow): number | undefined => shardOfWait(dialect, wait)

  /** The messages to other runs, and the fates of unread ones. */
  function writeMessages(
    x: Execution,
    end: ExchangeMethod,
    unitOfWork: PostgresUnitOfWork,
  ): readonly Promise<unknown>[] {
    const { put, putAndSettle, settle } = byEnd[end]
    const puts = [...unitOfWork.puts.values()]
    const inserting = puts.some(({ fate }) => fate !== null) ? putAndSettle : put
    return [
      ...send(
        x,
        take,
        unitOfWork.takes,
        ({ runId }) => ofRun(runId),
        ({ runId, id, seq }) => ({ r: runId, id, seq }),
      ),
      ...send(x, inserting, puts, ({ message }) => ofRun(message.runId), putJson),
      ...send(
        x,
        settle,
        unitOfWork.settled,
        ({ message }) => ofRun(message.runId),
        ({ message: { runId, position }, seq, fate }) => ({ r: runId, position, seq, fate }),
      ),
    ]
  }

  function writeWaits(x: Execution, end: ExchangeMethod, unitOfWork: PostgresUnitOfWork): readonly Promise<unknown>[] {
    const { deleteWaits, addWaits, setMissed } = byEnd[end]
    // Two statements: a wait that is given up and begun again begins now.
    const deleted = chunksOf([...unitOfWork.deletedWaits.values()], ofWait)
    return [
      ...deleted.map(({ shard, kind, waits }) =>
        x.execute(deleteWaits, [shard, kind, JSON.stringify(waits.map(waitJson))]),
      ),
      // The run or topic that is waited on exists, and has its shard.
      ...send(x, addWaits, [...unitOfWork.addedWaits.values()], (wait) => ofWait(wait) as number, waitJson),
      ...send(
        x,
        setMissed,
        [...unitOfWork.missed.values()],
        (wait) => ofWait(wait) as number,
        ({ target, runId: r, missed }) => ({ target, r, missed }),
      ),
    ]
  }

  /** Topic by topic: there are few in one transaction, and each is looked up by its name then. */
  function writeBroadcasts(
    x: Execution,
    end: ExchangeMethod,
    unitOfWork: PostgresUnitOfWork,
  ): readonly Promise<unknown>[] {
    const { broadcasts, takenBroadcasts, delivered, positions, retained, forgotten, now } = unitOfWork
    const written = [...broadcasts, ...takenBroadcasts, ...delivered].map(({ topic }) => topic)
    const topics = new Set([...written, ...forgotten.keys()])
    return Array.from(topics, (name) => {
      const isOf = (one: { readonly topic: string }): boolean => one.topic === name
      const sent = broadcasts.filter(isOf).map(({ policy, ...rest }) => ({ ...rest, policy: jsonOf(policy) }))
      const taken = [
        ...takenBroadcasts.filter(isOf).map(({ position, by }) => ({ position, by, more: 0 })),
        ...delivered.filter(isOf).map(({ position, runs: more }) => ({ position, by: null, more })),
      ]
      const moved = [positions.get(name) ?? null, forgotten.get(name) ?? null, now, retained.get(name) ?? null]
      return x.execute(byEnd[end].broadcasts, [
        ofTopic(name),
        name,
        JSON.stringify(sent),
        JSON.stringify(taken),
        ...moved,
      ])
    })
  }

  /** The chores that are left, and those that are done. */
  function writeChores(x: Execution, end: ExchangeMethod, unitOfWork: PostgresUnitOfWork): readonly Promise<unknown>[] {
    const chores = [...unitOfWork.chores.values()]
    // The run or topic of a chore is locked, and has its shard.
    const ofChore = ({ chore }: ChoreLeft): number => shardOfChore(dialect, chore) as number
    const of = (over: boolean): readonly ChoreLeft[] => chores.filter(({ isOver }) => isOver === over)
    const { setChores, deleteChores } = byEnd[end]
    return [
      ...send(x, setChores, of(false), ofChore, choreJson),
      ...send(x, deleteChores, of(true), ofChore, ({ chore: { kind, target } }) => ({ kind, target })),
    ]
  }

  return {
    async write(x, end, unitOfWork) {
      const changed = Array.from(unitOfWork.changed, (id) => unitOfWork.run(id)).filter((run) => run !== undefined)
      // The first in the feed has the first entry: a run that starts or ends another one comes before that.
      const order = [...unitOfWork.appended.map(({ runId }) => runId), ...changed.map(({ id }) => id)]
      const byShard = new Map(order.map((id) => [ofRun(id), new Appends()] as const))
      const fed = [...byShard]
      const shards = fed.toSorted(([a], [b]) => a - b)
      for (const { runId, seq, append, transition, delivered } of unitOfWork.appended) {
        const appends = byShard.get(ofRun(runId))
        if (append.length > 0) appends?.add(runId, seq, append, transition, delivered)
        else if (delivered > 0) appends?.addFirst(runId)
      }
      const runsOf = (shard: number) => changed.filter(({ id }) => ofRun(id) === shard)
      const isAlone = isOnlyRows(unitOfWork)
      const sent: Promise<unknown>[] = []
      for (const [shard, appends] of shards) {
        const given = [x, end, shard, runsOf(shard), appends, unitOfWork.now] as const
        if (given[3].length === 0) continue
        sent.push(isAlone ? rows.write(...given) : rows.writeRows(...given))
      }
      if (!isAlone) {
        sent.push(
          ...writeMessages(x, end, unitOfWork),
          ...writeWaits(x, end, unitOfWork),
          ...writeBroadcasts(x, end, unitOfWork),
        )
        sent.push(...topicRows.write(x, unitOfWork), ...writeChores(x, end, unitOfWork))
        for (const [shard, appends] of fed) sent.push(rows.feed(x, end, shard, appends))
      }
      const changes = changed.map((run) => [unitOfWork.before(run.id), run] as const)
      sent.push(...keys.follow(x, end, changes))
      await Promise.all(sent)
      addHints(x, unitOfWork)
    },
  }
}

function isOnlyRows({
  hasChildren,
  takes,
  puts,
  settled,
  chores,
  delivered,
  addedWaits,
  deletedWaits,
  missed,
  broadcasts,
  takenBroadcasts,
  topics: looked,
}: PostgresUnitOfWork): boolean {
  const lists = [takes.length, puts.size, settled.length, addedWaits.size, deletedWaits.size, missed.size]
  const topics = [chores.size, delivered.length, broadcasts.length, takenBroadcasts.length, looked.size]
  return !hasChildren && [...lists, ...topics].every((size) => size === 0)
}

/** Hints of runs that may be claimed, that have ended, and that have messages or control requests. */
function addHints(x: Execution, unitOfWork: PostgresUnitOfWork): void {
  for (const id of unitOfWork.changed) {
    const run = unitOfWork.run(id)
    const before = unitOfWork.before(id)
    if (run === undefined) continue
    const isNew = before?.controlRequest !== run.controlRequest || before?.deletedAt !== run.deletedAt
    if (isNew && isControlled(run)) x.hints.push({ kind: 'control', runId: id })
    // A row that only counts one message more, or is watched from here on, is scheduled as before.
    const isMoved = before?.due !== run.due || before.readiness !== run.readiness || before.status !== run.status
    if (!isMoved) continue
    hintOf(x, before?.status, run)
    hintDeadline(x, run, unitOfWork.now)
  }
  for (const runId of unitOfWork.messageArrived) x.hints.push({ kind: 'message', runId })
  if ([...unitOfWork.chores.values()].some(({ isOver }) => !isOver)) x.hints.push({ kind: 'chore' })
}

/** Sends each shard its own. */
function send<One>(
  x: Execution,
  query: Statement,
  all: readonly One[],
  shardOf: (one: One) => number,
  jsonOfOne: (one: One) => object,
): readonly Promise<unknown>[] {
  const byShard = new Map<number, object[]>()
  for (const one of all) {
    const shard = shardOf(one)
    const some = byShard.get(shard)
    if (some === undefined) byShard.set(shard, [jsonOfOne(one)])
    else some.push(jsonOfOne(one))
  }
  const shards = [...byShard].sort(([a], [b]) => a - b)
  return shards.map(([shard, json]) => x.execute(query, [shard, JSON.stringify(json)]))
}

interface WaitChunk {
  readonly shard: number
  readonly kind: WaitRow['kind']
  readonly waits: WaitRow[]
}

function chunksOf(waits: readonly WaitRow[], shardOf: (wait: WaitRow) => number | undefined): readonly WaitChunk[] {
  const chunks: WaitChunk[] = []
  const placed = waits.flatMap((wait) => {
    const shard = shardOf(wait)
    return shard === undefined ? [] : [{ wait, shard, place: `${wait.kind} ${wait.target}` }]
  })
  placed.sort((a, b) => a.shard - b.shard || (a.place < b.place ? -1 : 1))
  const targets = new Set<string>()
  let last: WaitChunk | undefined
  for (const { wait, shard, place } of placed) {
    targets.add(place)
    const isFull = last !== undefined && targets.size * (last.waits.length + 1) > mostCombinations
    if (last === undefined || isFull || last.shard !== shard || last.kind !== wait.kind) {
      chunks.push((last = { shard, kind: wait.kind, waits: [] }))
      targets.clear()
      targets.add(place)
    }
    last.waits.push(wait)
  }
  return chunks
}

function jsonOf(policy: unknown): string | null {
  return policy === null ? null : JSON.stringify(policy)
}

function putJson({ message, outcome, takenBy, fate }: Put): object {
  const { runId, position, id, kind, name, data, policy, at } = message
  const said = { r: runId, position, id, kind, name, data, at }
  return { ...said, ...policyColumns(policy), outcome, taken_by: takenBy, fate }
}

function waitJson({ kind, target, runId, effect, delivery, openedAt, since }: WaitRow): object {
  return { kind, target, r: runId, effect, delivery, at: openedAt, since }
}

interface ChoreLeft {
  readonly chore: Chore
  readonly due: number
}

function choreJson({ chore: { kind, target, position, after }, due }: ChoreLeft): object {
  return { kind, target, position, at: after?.openedAt ?? null, run: after?.runId ?? null, due }
}

function writingStatements({ schema }: Dialect) {
  const given = (columns: string): string => `
    with given as materialized (select * from json_to_recordset($2::text::json) as given (${columns}))`
  const wait = 'kind text, target text, r uuid, effect text, delivery text, at bigint, since integer'
  const put = `
    insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at,
      outcome, taken_by, fate)
    select $1::smallint, r, position, id, kind, name, data, on_unread, delivery, retain_ms, at, outcome, taken_by, fate
    from json_to_recordset($2::text::json) as fresh (r uuid, position integer, id text, kind text, name text, data text,
      on_unread text, delivery text, retain_ms bigint, at bigint, outcome text, taken_by integer, fate text)`
  const settle = `${given('r uuid, position integer, seq integer, fate text')}
    ${updateMessages(schema, {
      from: 'given',
      found: null,
      take: 'given.seq, given.fate',
    })}`
  // Looked up by the whole key, under any statistics.
  const deleteWaits = `
    with given as materialized (select * from json_to_recordset($3::text::json) as given (${wait}))
    delete from ${schema}.waits as wait using given
    where wait.shard = $1::smallint and wait.kind = $2::text and wait.target = any(array(select target from given))
      and wait.run_id = any(array(select r from given)) and wait.target = given.target and wait.run_id = given.r
      and wait.effect = given.effect`
  const addWaits = `
    insert into ${schema}.waits (shard, kind, target, run_id, effect, delivery, opened_at, since)
    select $1::smallint, kind, target, r, effect, delivery, at, since
    from json_to_recordset($2::text::json) as given (${wait}) on conflict do nothing`
  const setMissed = `${given('target text, r uuid, missed integer')}
    update ${schema}.waits as wait set missed = given.missed from given
    where wait.shard = $1::smallint and wait.kind = 'topic' and wait.target = any(array(select target from given))
      and wait.run_id = any(array(select r from given)) and wait.target = given.target and wait.run_id = given.r
      and wait.effect = 'notify'`
  const broadcasts = `
    with sent as (
      insert into ${schema}.broadcasts (shard, topic, position, id, delivery, data, policy, at, expires_at, taken_by, delivered_to)
      select $1::smallint, $2::text, position, id, delivery, data, policy, at, "expiresAt", "takenBy", "deliveredTo"
      from json_to_recordset($3::text::json) as sent (position integer, id text, delivery text, data text,
        policy text, at bigint, "expiresAt" bigint, "takenBy" uuid, "deliveredTo" integer)),
    given as materialized (
      select * from json_to_recordset($4::text::json) as given (position integer, by uuid, more integer)),
    taken as (
      update ${schema}.broadcasts as broadcast
      set taken_by = coalesce(given.by, broadcast.taken_by), delivered_to = broadcast.delivered_to + given.more from given
      where broadcast.shard = $1::smallint and broadcast.topic = $2::text
        and broadcast.position = any(array(select position from given)) and broadcast.position = given.position),
    moved as (
      update ${schema}.topics as topic set position = $5::integer, retain_ms = $8::bigint
      where topic.shard = $1::smallint and topic.name = $2::text and $5::integer is not null)
    delete from ${schema}.broadcasts as broadcast
    where broadcast.shard = $1::smallint and broadcast.topic = $2::text and broadcast.position = any(array(
      (select old.position from ${schema}.broadcasts as old
      where old.shard = $1::smallint and old.topic = $2::text and old.at < $6::bigint
        and (old.delivery = 'all' or old.taken_by is not null)
      order by old.at limit ${forgottenAtOnce})
      union all
      (select old.position from ${schema}.broadcasts as old
      where old.shard = $1::smallint and old.topic = $2::text and old.at < $6::bigint
        and old.delivery = 'one' and old.taken_by is null and old.expires_at is not null
        and old.expires_at <= $7::bigint
      order by old.expires_at limit ${forgottenAtOnce})
      limit ${forgottenAtOnce}))`
  const setChores = `
    insert into ${schema}.chores (shard, kind, target, position, after_opened_at, after_run, due)
    select $1::smallint, kind, target, position, at, run, due
    from json_to_recordset($2::text::json) as given (
      kind text, target text, position integer, at bigint, run uuid, due bigint)
    on conflict (shard, kind, target) do update set position = excluded.position,
      after_opened_at = excluded.after_opened_at, after_run = excluded.after_run, due = excluded.due`
  const deleteChores = `${given('kind text, target text')}
    delete from ${schema}.chores as chore using given
    where chore.shard = $1::smallint and chore.kind = given.kind and chore.target = given.target`
  const of = (end: ExchangeMethod): Statements => ({
    put: statement(end === 'deliver' ? 'deliver.insert' : `${end}.put`, put),
    putAndSettle: statement(
      end === 'deliver' ? ['deliver.insert', 'deliver.settle'] : [`${end}.put`, `${end}.settle`],
      put,
    ),
    settle: statement(`${end}.settle`, settle),
    deleteWaits: statement(`${end}.waits`, deleteWaits),
    addWaits: statement(`${end}.waits`, addWaits),
    setMissed: statement(`${end}.waits`, setMissed),
    broadcasts: statement(`${end}.broadcasts`, broadcasts),
    setChores: statement(`${end}.chores`, setChores),
    deleteChores: statement(`${end}.chores`, deleteChores),
  })
  const take = statement(
    'commit.take',
    `${given('r uuid, id text, seq integer')}
    ${updateMessages(schema, { from: 'given', found: 'message.id = given.id', take: 'given.seq, null' })}`,
  )
  return {
    take,
    byEnd: Object.fromEntries(exchangeMethods.map((end) => [end, of(end)])) as Record<ExchangeMethod, Statements>,
  }
}
