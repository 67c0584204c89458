// Sends what the rules of the exchange decided: rows and entries, what others get, and who waits for what. All of it goes out
// at once, in few statements for each shard, because nothing in it depends on an answer.

import { bug } from '../../core/error.ts'
import type { Chore } from '../../core/chore.ts'
import type { WaitRow } from '../../core/books.ts'
import { shardFor } from '../../core/id.ts'
import { Appends } from './appends.ts'
import type { PostgresBooks } from './books.ts'
import type { Put } from './decided.ts'
import { enders, type Ender } from './books-statements.ts'
import { statement, type Dialect, type Statement } from './dialect.ts'
import type { Execution } from './execution.ts'
import { hintDeadline, hintOf, rewriting } from './rewriting.ts'
import { shardOfChore, shardOfRun, shardOfWait } from './shards.ts'
import { updateMessages } from './taking.ts'
import { mostCombinations } from './unwatching.ts'

export interface Writing {
  write(x: Execution, end: Ender, books: PostgresBooks): Promise<void>
}

/** How many broadcasts are forgotten at once. */
const forgottenAtOnce = 100

interface Statements {
  readonly put: Statement
  /** Some of what is put is given up at once. */
  readonly putAndSettle: Statement
  readonly settle: Statement
  readonly deleteWaits: Statement
  readonly addWaits: Statement
  readonly setMissed: Statement
  readonly broadcasts: Statement
  readonly setChores: Statement
  readonly deleteChores: Statement
}

export function booksWriting(dialect: Dialect): Writing {
  const rows = rewriting(dialect)
  const { take, byEnd } = writingStatements(dialect)
  const ofRun = (id: string): number => {
    const shard = shardOfRun(dialect, id)
    if (shard === undefined) throw bug('Something is written of a run that cannot exist', { runId: id })
    return shard
  }
  const ofTopic = (name: string): number => shardFor(name, dialect.shards)
  const ofWait = (wait: WaitRow): number | undefined => shardOfWait(dialect, wait)

  /** What others get, and what becomes of what was not read. */
  function writeMail(x: Execution, end: Ender, books: PostgresBooks): readonly Promise<unknown>[] {
    const { put, putAndSettle, settle } = byEnd[end]
    const puts = [...books.puts.values()]
    const inserting = puts.some(({ fate }) => fate !== null) ? putAndSettle : put
    return [
      ...send(
        x,
        take,
        books.takes,
        ({ runId }) => ofRun(runId),
        ({ runId, id, seq }) => ({ r: runId, id, seq }),
      ),
      ...send(x, inserting, puts, ({ message }) => ofRun(message.runId), putJson),
      ...send(
        x,
        settle,
        books.settled,
        ({ message }) => ofRun(message.runId),
        ({ message: { runId, position }, seq, fate }) => ({ r: runId, position, seq, fate }),
      ),
    ]
  }

  function writeWaits(x: Execution, end: Ender, books: PostgresBooks): readonly Promise<unknown>[] {
    const { deleteWaits, addWaits, setMissed } = byEnd[end]
    // Two statements: who gives up a wait and begins it again begins it now.
    const deleted = chunksOf([...books.deletedWaits.values()], ofWait)
    return [
      ...deleted.map(({ shard, kind, waits }) =>
        x.execute(deleteWaits, [shard, kind, JSON.stringify(waits.map(waitJson))]),
      ),
      // Whoever is waited on is there, and has its shard.
      ...send(x, addWaits, [...books.addedWaits.values()], (wait) => ofWait(wait) as number, waitJson),
      ...send(
        x,
        setMissed,
        [...books.missed.values()],
        (wait) => ofWait(wait) as number,
        ({ target, runId: r, missed }) => ({ target, r, missed }),
      ),
    ]
  }

  /** Topic by topic: there are few in one transaction, and each is looked up by its name then. */
  function writeBroadcasts(x: Execution, end: Ender, books: PostgresBooks): readonly Promise<unknown>[] {
    const { broadcasts, takenBroadcasts, told, positions, forgotten, now } = books
    const topics = new Set([...broadcasts, ...takenBroadcasts, ...told].map(({ topic }) => topic))
    return Array.from(topics, (name) => {
      const isOf = (one: { readonly topic: string }): boolean => one.topic === name
      const sent = broadcasts.filter(isOf).map(({ policy, ...rest }) => ({ ...rest, policy: jsonOf(policy) }))
      const taken = [
        ...takenBroadcasts.filter(isOf).map(({ position, by }) => ({ position, by, more: 0 })),
        ...told.filter(isOf).map(({ position, runs: more }) => ({ position, by: null, more })),
      ]
      const moved = [positions.get(name) ?? null, forgotten.get(name) ?? null, now]
      return x.execute(byEnd[end].broadcasts, [
        ofTopic(name),
        name,
        JSON.stringify(sent),
        JSON.stringify(taken),
        ...moved,
      ])
    })
  }

  /** What is left to do, and what is not any more. */
  function writeChores(x: Execution, end: Ender, books: PostgresBooks): readonly Promise<unknown>[] {
    const chores = [...books.chores.values()]
    // Whoever it is about is locked, and has its shard.
    const ofChore = ({ chore }: ChoreLeft): number => shardOfChore(dialect, chore) as number
    const of = (over: boolean): readonly ChoreLeft[] => chores.filter(({ isOver }) => isOver === over)
    const { setChores, deleteChores } = byEnd[end]
    return [
      ...send(x, setChores, of(false), ofChore, choreJson),
      ...send(x, deleteChores, of(true), ofChore, ({ chore: { kind, target } }) => ({ kind, target })),
    ]
  }

  return {
    async write(x, end, books) {
      const changed = Array.from(books.changed, (id) => books.run(id)).filter((run) => run !== undefined)
      // What comes first in the feed has the first entry: a run that starts or ends another one comes before that.
      const order = [...books.appended.map(({ runId }) => runId), ...changed.map(({ id }) => id)]
      const byShard = new Map(order.map((id) => [ofRun(id), new Appends()] as const))
      const fed = [...byShard]
      const shards = fed.toSorted(([a], [b]) => a - b)
      for (const { runId, seq, append, transition, told } of books.appended) {
        const appends = byShard.get(ofRun(runId))
        if (append.length > 0) appends?.add(runId, seq, append, transition, told)
        else if (told > 0) appends?.addFirst(runId)
      }
      const runsOf = (shard: number) => changed.filter(({ id }) => ofRun(id) === shard)
      const isAlone = isOnlyRows(books)
      const sent: Promise<unknown>[] = []
      for (const [shard, appends] of shards) {
        const given = [x, end, shard, runsOf(shard), appends, books.now] as const
        if (given[3].length === 0) continue
        sent.push(isAlone ? rows.write(...given) : rows.writeRows(...given))
      }
      if (!isAlone) {
        sent.push(...writeMail(x, end, books), ...writeWaits(x, end, books), ...writeBroadcasts(x, end, books))
        sent.push(...writeChores(x, end, books))
        for (const [shard, appends] of fed) sent.push(rows.feed(x, end, shard, appends))
      }
      await Promise.all(sent)
      tell(x, books)
    },
  }
}

function isOnlyRows({
  hasChildren,
  takes,
  puts,
  settled,
  chores,
  told,
  addedWaits,
  deletedWaits,
  missed,
  broadcasts,
  takenBroadcasts,
}: PostgresBooks): boolean {
  const lists = [takes.length, puts.size, settled.length, addedWaits.size, deletedWaits.size, missed.size]
  const topics = [chores.size, told.length, broadcasts.length, takenBroadcasts.length]
  return !hasChildren && [...lists, ...topics].every((size) => size === 0)
}

/** Who may be claimed, who has ended, and who has mail. */
function tell(x: Execution, books: PostgresBooks): void {
  for (const id of books.changed) {
    const run = books.run(id)
    const before = books.before(id)
    if (run === undefined) continue
    // A row that only counts one message more, or is watched from here on, is scheduled as before.
    const isMoved = before?.due !== run.due || before.readiness !== run.readiness || before.status !== run.status
    if (!isMoved) continue
    hintOf(x, before?.status, run)
    hintDeadline(x, run, books.now)
  }
  for (const runId of books.mailed) x.hints.push({ kind: 'mail', runId })
  if ([...books.chores.values()].some(({ isOver }) => !isOver)) x.hints.push({ kind: 'chore' })
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
  return { r: runId, position, id, kind, name, data, policy: jsonOf(policy), at, outcome, taken_by: takenBy, fate }
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
    insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, policy, at, outcome, taken_by, fate)
    select $1::smallint, r, position, id, kind, name, data, policy, at, outcome, taken_by, fate
    from json_to_recordset($2::text::json) as fresh (r uuid, position integer, id text, kind text, name text, data text,
      policy text, at bigint, outcome text, taken_by integer, fate text)`
  const settle = `${given('r uuid, position integer, seq integer, fate text')}
    ${updateMessages(schema, {
      from: 'given',
      found: null,
      take: 'given.seq, given.fate',
    })}`
  // Looked up by the whole key, whatever the statistics say.
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
      and wait.effect = 'tell'`
  const broadcasts = `
    with sent as (
      insert into ${schema}.broadcasts (shard, topic, position, id, delivery, data, policy, at, expires_at, taken_by, told)
      select $1::smallint, $2::text, position, id, delivery, data, policy, at, "expiresAt", "takenBy", told
      from json_to_recordset($3::text::json) as sent (position integer, id text, delivery text, data text,
        policy text, at bigint, "expiresAt" bigint, "takenBy" uuid, told integer)),
    given as materialized (
      select * from json_to_recordset($4::text::json) as given (position integer, by uuid, more integer)),
    taken as (
      update ${schema}.broadcasts as broadcast
      set taken_by = coalesce(given.by, broadcast.taken_by), told = broadcast.told + given.more from given
      where broadcast.shard = $1::smallint and broadcast.topic = $2::text
        and broadcast.position = any(array(select position from given)) and broadcast.position = given.position),
    moved as (
      update ${schema}.topics as topic set position = $5::integer
      where topic.shard = $1::smallint and topic.name = $2::text and $5::integer is not null)
    delete from ${schema}.broadcasts as broadcast
    where broadcast.shard = $1::smallint and broadcast.topic = $2::text and broadcast.position = any(array(
      (select old.position from ${schema}.broadcasts as old
      where old.shard = $1::smallint and old.topic = $2::text and old.at < $6::bigint
        and (old.delivery = 'topic' or old.taken_by is not null)
      order by old.at limit ${forgottenAtOnce})
      union all
      (select old.position from ${schema}.broadcasts as old
      where old.shard = $1::smallint and old.topic = $2::text and old.at < $6::bigint
        and old.delivery = 'queue' and old.taken_by is null and old.expires_at is not null
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
  const of = (end: Ender): Statements => ({
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
  return { take, byEnd: Object.fromEntries(enders.map((end) => [end, of(end)])) as Record<Ender, Statements> }
}
