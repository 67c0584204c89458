// Mailboxes and topics. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement.
// So a run that is being parked is either found asleep and woken, or its holder finds the counter moved. Messages to runs
// that live need no more than that; what goes to a topic, or is given up because its run is over, goes by the rules.

import { usualPages } from '../../core/chore.ts'
import { giveUp } from '../../core/exchange.ts'
import type { Letter } from '../../core/books.ts'
import { receptionOf, type Reception } from '../../core/message.ts'
import { isMailboxFull, sendToTopic } from '../../core/quota.ts'
import { isTerminal, type Run, type RunStatus } from '../../core/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../store.ts'
import { PostgresBooks } from './books.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Exchanging, Manner, Seen } from './exchanging.ts'
import type { Execution } from './execution.ts'
import { hintPlace } from './rewriting.ts'
import { lockRuns, runOf } from './rows.ts'
import { byShard } from './shards.ts'
import { Wants } from './wants.ts'

export type Sending = NewMessage | NewBroadcast

export interface Delivering {
  /** Puts letters into mailboxes of one shard; null, and nothing has changed, if that is not all there is to do. */
  put(x: Execution, shard: number, letters: readonly NewMessage[]): Promise<readonly Delivered[] | null>
  /** Delivers anything to anybody, by the rules. */
  exchange(x: Execution, sent: readonly Sending[], wants: Wants, how?: Manner): Promise<readonly Delivered[]>
}

/** A message as JSON, with the place that it gets. */
interface Fresh extends Omit<Letter, 'policy'> {
  readonly policy: string | null
  readonly position: number
  readonly outcome: Reception
}

type RunsById = ReadonlyMap<string, Run>

/** How many messages are unread, by run and bound; nothing if they cannot be so many. */
type Depths = Map<string, number>

interface Look extends Seen {
  /** What their senders were told, by run and id. */
  readonly known: ReadonlyMap<string, Reception>
}

export function delivering(dialect: Dialect, exchange: Exchanging): Delivering {
  const { schema, now } = dialect
  const lock = statement('deliver.lock', lockRuns(schema))
  const look = statement(
    'deliver.look',
    `
    select ${now} as now, null as run_id, null as id, null as outcome
    union all
    select null, message.run_id::text, message.id, message.outcome
    from json_to_recordset($2::text::json) as sent ("runId" uuid, id text) cross join lateral (
      select * from ${schema}.messages as message
      where message.shard = $1::smallint and message.run_id = "runId" and message.id = sent.id offset 0) as message`,
  )
  // Under the lock. The oldest tells first whether there can be so many: mostly there cannot, and nothing is counted.
  const countUnread = statement(
    'deliver.look',
    `
    select asked.id::text as run_id, asked.most, counted.unread
    from json_to_recordset($2::text::json) as asked (id uuid, most bigint, inbox bigint, last bigint)
    cross join lateral (
      select coalesce((
        select position from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = asked.id and message.taken_by is null
        order by message.position limit 1), asked.inbox + 1) as position) as oldest
    cross join lateral (
      select count(*) as unread from (
        select 1 from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = asked.id and message.taken_by is null
        limit asked.most) as message) as counted
    where oldest.position <= asked.last - asked.most + 1`,
  )
  const put = statement(
    ['deliver.bump', 'deliver.insert'],
    `
    with given as materialized (
      select * from json_to_recordset($2::text::json) as given (id uuid, inbox integer, readiness text, due bigint)),
    bumped as (
      update ${schema}.runs as run set inbox = given.inbox, readiness = coalesce(given.readiness, run.readiness),
        due = coalesce(given.due, run.due)
      from given
      where run.shard = $1::smallint and run.id = any(array(select id from given)) and run.id = given.id)
    insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, policy, at, outcome)
    select $1::smallint, "runId", position, id, kind, name, data, policy, $4::bigint, outcome
    from json_to_recordset($3::text::json) as fresh (
      "runId" uuid, position integer, id text, kind text, name text, data text, policy text, outcome text)`,
  )

  /** Of runs that have ever got as many messages as they may leave unread: how many they have not read, counted up to that. */
  async function lookDepths(x: Execution, letters: readonly NewMessage[], runs: RunsById): Promise<Depths> {
    const asked = new Map<
      string,
      { readonly id: string; readonly most: number; readonly inbox: number; last: number }
    >()
    for (const { runId: id, mostUnread: most } of letters) {
      const inbox = runs.get(id)?.inbox
      if (inbox === undefined || most === undefined) continue
      const known = asked.get(depthKey(id, most))
      if (known === undefined) asked.set(depthKey(id, most), { id, most, inbox, last: inbox })
      else known.last += 1
    }
    const deep = [...asked.values()].filter(({ most, last }) => last >= most)
    const depths = new Map<string, number>()
    for (const [shard, some] of byShard(dialect, deep, ({ id }) => id)) {
      for (const row of await x.execute(countUnread, [shard, JSON.stringify(some)])) {
        depths.set(depthKey(row['run_id'] as string, Number(row['most'])), Number(row['unread']))
      }
    }
    return depths
  }

  async function lookFor(x: Execution, shard: number, letters: readonly Letter[]): Promise<Look> {
    const sent = letters.map(({ runId, id }) => ({ runId, id }))
    const seen = await x.execute(look, [shard, JSON.stringify(sent)])
    const known = new Map(
      seen
        .slice(1)
        .map((row) => [`${row['run_id'] as string} ${row['id'] as string}`, row['outcome'] as Reception] as const),
    )
    return { now: Number(seen[0]?.['now']), known }
  }

  /** The same of every shard that has one of them. */
  async function lookEverywhere(x: Execution, letters: readonly Letter[]): Promise<Look> {
    const shards = byShard(dialect, letters, ({ runId }) => runId)
    const asked = shards.size === 0 ? [[0, []] as const] : [...shards]
    const seen = await Promise.all(asked.map(([shard, some]) => lookFor(x, shard, some)))
    const times = seen.map((one) => one.now)
    return { now: Math.max(...times), known: new Map(seen.flatMap(({ known }) => [...known])) }
  }

  return {
    async put(x, shard, letters) {
      const targets = [...new Set(letters.map(({ runId }) => runId))]
      const [locked, { now: time, known: told }] = await Promise.all([
        x.execute(lock, [shard, JSON.stringify(targets)]),
        lookFor(x, shard, letters),
      ])
      const runs = new Map(locked.map((row) => [row['id'] as string, runOf(row)]))
      const known = new Map(told)
      if (letters.some((letter) => isGivenUp(letter, runs.get(letter.runId), known))) return null
      const depths = await lookDepths(x, letters, runs)
      const fresh: Fresh[] = []
      const woken = new Set<string>()
      const answers = letters.map((letter): Delivered => {
        const { id, runId } = letter
        const run = runs.get(runId)
        const answer = answered(run, known.get(`${runId} ${id}`))
        if (answer !== null || run === undefined) return answer ?? { outcome: 'target-not-found' }
        if (isFull(letter, run, depths)) return { outcome: 'full' }
        const outcome = receptionOf(run, letter.name)
        const position = run.inbox + 1
        deepen(depths, letter)
        const readiness = outcome === 'delivered' ? 'ready' : run.readiness
        runs.set(runId, { ...run, inbox: position, readiness })
        known.set(`${runId} ${id}`, outcome)
        const policy = letter.policy === null ? null : JSON.stringify(letter.policy)
        const { kind, name, data } = letter
        fresh.push({ id, runId, kind, name, data, policy, position, outcome })
        if (outcome === 'delivered') woken.add(runId)
        return answerOf(outcome, run.status)
      })
      if (fresh.length === 0) return answers
      const bumps = Array.from(new Set(fresh.map(({ runId }) => runId)), (runId) => {
        const run = runs.get(runId) as Run
        const { id, inbox, due, session } = run
        if (session !== null) x.hints.push({ kind: 'mail', runId })
        if (!woken.has(id)) return { id, inbox }
        // A run that is due already keeps its place: whoever is written to often must not be claimed last.
        const ready = { ...run, readiness: 'ready', due: Math.min(due ?? time, time) } as const
        hintPlace(x, ready)
        return { id, inbox, readiness: ready.readiness, due: ready.due }
      })
      await x.execute(put, [shard, JSON.stringify(bumps), JSON.stringify(fresh), time])
      return answers
    },

    exchange: (x, sent, wants, { within = false, way } = {}) =>
      exchange.perform(x, {
        end: 'deliver',
        wants,
        within,
        way,
        look: () => lookEverywhere(x, sent.filter(isLetter)),
        lend: (found, { now: time }, crowds) => new PostgresBooks(found, time, crowds),
        prepare: (books) => {
          const letters = sent.filter(isLetter)
          return lookDepths(x, letters, new Map(books.all().map((run) => [run.id, run])))
        },
        decide: (books, { known: told }, depthsFound, guard) => {
          const known = new Map(told)
          const depths = new Map(depthsFound)
          const deliver = (one: Sending): Delivered =>
            isLetter(one) ? deliverLetter(books, one, known, depths) : sendToTopic(books, one)
          return sent.map((one, index) => guard.decide(index, () => deliver(one)) as Delivered)
        },
      }),
  }
}

/** What it may touch to deliver these. */
export function wantsOfSending(sent: readonly Sending[]): Wants {
  const wants = new Wants()
  for (const one of sent) {
    if (isLetter(one)) {
      wants.concern(one.runId)
      continue
    }
    wants.broadcast(one.topic, one.id, usualPages.subscribers)
    wants.keptOf(one)
  }
  return wants
}

export function isLetter(sent: Sending): sent is NewMessage {
  return !('topic' in sent)
}

/** It comes too late for its run, and something is to become of it all the same. */
function isGivenUp(
  { runId, id, policy }: Letter,
  run: Run | undefined,
  known: ReadonlyMap<string, Reception>,
): boolean {
  if (policy === null || run === undefined || run.deletedAt !== null) return false
  return isTerminal(run.status) && !known.has(`${runId} ${id}`)
}

/** It has no place among what its run has not read. */
function isFull(letter: NewMessage, run: Run, depths: Depths): boolean {
  return isMailboxFull(run, letter, (most) => depths.get(depthKey(letter.runId, most)) ?? 0)
}

function depthKey(runId: string, most: number): string {
  return `${runId} ${most}`
}

/** One more lies there. */
function deepen(depths: Depths, { runId, mostUnread = 0 }: NewMessage): void {
  const key = depthKey(runId, mostUnread)
  const unread = depths.get(key)
  if (unread !== undefined) depths.set(key, unread + 1)
}

/** The answer to a letter that changes nothing; null if it is to be put into the mailbox. */
function answered(run: Run | undefined, before: Reception | undefined): Delivered | null {
  if (run === undefined) return { outcome: 'target-not-found' }
  if (before !== undefined) return { ...answerOf(before, run.status), repeated: true }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  return isTerminal(run.status) ? { outcome: 'target-terminated', status: run.status } : null
}

function answerOf(outcome: Reception, status: RunStatus) {
  return outcome === 'target-terminated' ? ({ outcome, status } as const) : ({ outcome } as const)
}

function deliverLetter(
  books: PostgresBooks,
  letter: NewMessage,
  known: Map<string, Reception>,
  depths: Depths,
): Delivered {
  const { runId, id } = letter
  const run = books.run(runId)
  const answer = answered(run, known.get(`${runId} ${id}`))
  if (run === undefined || (answer !== null && !isGivenUp(letter, run, known))) {
    return answer ?? { outcome: 'target-not-found' }
  }
  if (answer === null && isFull(letter, run, depths)) return { outcome: 'full' }
  deepen(depths, letter)
  const outcome = books.receive(letter)
  known.set(`${runId} ${id}`, outcome)
  const put = books.puts.get(`${runId} ${id}`)
  if (outcome === 'target-terminated' && put !== undefined) giveUp(books, put.message)
  return answerOf(outcome, run.status)
}
