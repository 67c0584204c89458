// Mailboxes and topics. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement.
// So a run that is being parked is either found asleep and woken, or its holder finds the counter moved. Messages to runs
// that live need no more than that; what goes to a topic, or is given up because its run is over, goes by the rules.

import { defaultPageLimits } from '../../../core/model/chore.ts'
import { settleUnread } from '../../../core/rules/exchange.ts'
import type { MessageDraft } from '../../../core/rules/unit-of-work.ts'
import { deliveryOutcomeOf, type DeliveryOutcome } from '../../../core/model/message.ts'
import { isMailboxFull, sendToTopic } from '../../../core/rules/quota.ts'
import { isTerminal, type Run, type RunStatus } from '../../../core/model/run.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../../store.ts'
import { PostgresUnitOfWork } from './unit-of-work.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner, ExchangeOptions, Seen } from './exchange.ts'
import type { Execution } from '../execution.ts'
import { hintPlace } from '../commit/rewrite.ts'
import { lockRuns, runOf } from '../schema/rows.ts'
import { byShard } from '../schema/shards.ts'
import { LockRequest } from './lock-request.ts'

export type Sending = NewMessage | NewBroadcast

export interface DeliverQueries {
  /** Puts messages into mailboxes of one shard; null, and nothing has changed, if that is not all there is to do. */
  put(x: Execution, shard: number, drafts: readonly NewMessage[]): Promise<readonly Delivered[] | null>
  /** Delivers anything to anybody, by the rules. */
  exchange(
    x: Execution,
    sent: readonly Sending[],
    lockRequest: LockRequest,
    how?: ExchangeOptions,
  ): Promise<readonly Delivered[]>
}

/** A message as JSON, with the place that it gets. */
interface Fresh extends Omit<MessageDraft, 'policy'> {
  readonly policy: string | null
  readonly position: number
  readonly outcome: DeliveryOutcome
}

type RunsById = ReadonlyMap<string, Run>

/** How many messages are unread, by run and bound; nothing if they cannot be so many. */
type Depths = Map<string, number>

interface Look extends Seen {
  /** What their senders were told, by run and id. */
  readonly known: ReadonlyMap<string, DeliveryOutcome>
}

export function createDeliverQueries(dialect: Dialect, exchange: ExchangeRunner): DeliverQueries {
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
  async function lookDepths(x: Execution, drafts: readonly NewMessage[], runs: RunsById): Promise<Depths> {
    const asked = new Map<
      string,
      { readonly id: string; readonly most: number; readonly inbox: number; last: number }
    >()
    for (const { runId: id, mostUnread: most } of drafts) {
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

  async function lookFor(x: Execution, shard: number, drafts: readonly MessageDraft[]): Promise<Look> {
    const sent = drafts.map(({ runId, id }) => ({ runId, id }))
    const seen = await x.execute(look, [shard, JSON.stringify(sent)])
    const known = new Map(
      seen
        .slice(1)
        .map(
          (row) => [`${row['run_id'] as string} ${row['id'] as string}`, row['outcome'] as DeliveryOutcome] as const,
        ),
    )
    return { now: Number(seen[0]?.['now']), known }
  }

  /** The same of every shard that has one of them. */
  async function lookEverywhere(x: Execution, drafts: readonly MessageDraft[]): Promise<Look> {
    const shards = byShard(dialect, drafts, ({ runId }) => runId)
    const asked = shards.size === 0 ? [[0, []] as const] : [...shards]
    const seen = await Promise.all(asked.map(([shard, some]) => lookFor(x, shard, some)))
    const times = seen.map((one) => one.now)
    return { now: Math.max(...times), known: new Map(seen.flatMap(({ known }) => [...known])) }
  }

  return {
    async put(x, shard, drafts) {
      const targets = [...new Set(drafts.map(({ runId }) => runId))]
      const [locked, { now: time, known: knownAnswers }] = await Promise.all([
        x.execute(lock, [shard, JSON.stringify(targets)]),
        lookFor(x, shard, drafts),
      ])
      const runs = new Map(locked.map((row) => [row['id'] as string, runOf(row)]))
      const known = new Map(knownAnswers)
      if (drafts.some((draft) => isGivenUp(draft, runs.get(draft.runId), known))) return null
      const depths = await lookDepths(x, drafts, runs)
      const fresh: Fresh[] = []
      const woken = new Set<string>()
      const answers = drafts.map((draft): Delivered => {
        const { id, runId } = draft
        const run = runs.get(runId)
        const answer = answered(run, known.get(`${runId} ${id}`))
        if (answer !== null || run === undefined) return answer ?? { outcome: 'target-not-found' }
        if (isFull(draft, run, depths)) return { outcome: 'full' }
        const outcome = deliveryOutcomeOf(run, draft.name)
        const position = run.inbox + 1
        deepen(depths, draft)
        const readiness = outcome === 'delivered' ? 'ready' : run.readiness
        runs.set(runId, { ...run, inbox: position, readiness })
        known.set(`${runId} ${id}`, outcome)
        const policy = draft.policy === null ? null : JSON.stringify(draft.policy)
        const { kind, name, data } = draft
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

    exchange: (x, sent, lockRequest, { inUserTransaction = false, lockPolicy } = {}) =>
      exchange.perform(x, {
        end: 'deliver',
        lockRequest,
        inUserTransaction,
        lockPolicy,
        look: () => lookEverywhere(x, sent.filter(isMessage)),
        lend: (found, { now: time }, crowds) => new PostgresUnitOfWork(found, time, crowds),
        prepare: (unitOfWork) => {
          const drafts = sent.filter(isMessage)
          return lookDepths(x, drafts, new Map(unitOfWork.all().map((run) => [run.id, run])))
        },
        decide: (unitOfWork, { known: knownAnswers }, depthsFound, guard) => {
          const known = new Map(knownAnswers)
          const depths = new Map(depthsFound)
          const deliver = (one: Sending): Delivered =>
            isMessage(one) ? deliverMessage(unitOfWork, one, known, depths) : sendToTopic(unitOfWork, one)
          return sent.map((one, index) => guard.decide(index, () => deliver(one)) as Delivered)
        },
      }),
  }
}

/** What it may touch to deliver these. */
export function lockRequestOfSending(sent: readonly Sending[]): LockRequest {
  const lockRequest = new LockRequest()
  for (const one of sent) {
    if (isMessage(one)) {
      lockRequest.concern(one.runId)
      continue
    }
    lockRequest.broadcast(one.topic, one.id, defaultPageLimits.subscribers)
    lockRequest.keptOf(one)
  }
  return lockRequest
}

export function isMessage(sent: Sending): sent is NewMessage {
  return !('topic' in sent)
}

/** It comes too late for its run, and something is to become of it all the same. */
function isGivenUp(
  { runId, id, policy }: MessageDraft,
  run: Run | undefined,
  known: ReadonlyMap<string, DeliveryOutcome>,
): boolean {
  if (policy === null || run === undefined || run.deletedAt !== null) return false
  return isTerminal(run.status) && !known.has(`${runId} ${id}`)
}

/** It has no place among what its run has not read. */
function isFull(draft: NewMessage, run: Run, depths: Depths): boolean {
  return isMailboxFull(run, draft, (most) => depths.get(depthKey(draft.runId, most)) ?? 0)
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

/** The answer to a message that changes nothing; null if it is to be put into the mailbox. */
function answered(run: Run | undefined, before: DeliveryOutcome | undefined): Delivered | null {
  if (run === undefined) return { outcome: 'target-not-found' }
  if (before !== undefined) return { ...answerOf(before, run.status), repeated: true }
  if (run.deletedAt !== null) return { outcome: 'target-not-found' }
  return isTerminal(run.status) ? { outcome: 'target-terminated', status: run.status } : null
}

function answerOf(outcome: DeliveryOutcome, status: RunStatus) {
  return outcome === 'target-terminated' ? ({ outcome, status } as const) : ({ outcome } as const)
}

function deliverMessage(
  unitOfWork: PostgresUnitOfWork,
  draft: NewMessage,
  known: Map<string, DeliveryOutcome>,
  depths: Depths,
): Delivered {
  const { runId, id } = draft
  const run = unitOfWork.run(runId)
  const answer = answered(run, known.get(`${runId} ${id}`))
  if (run === undefined || (answer !== null && !isGivenUp(draft, run, known))) {
    return answer ?? { outcome: 'target-not-found' }
  }
  if (answer === null && isFull(draft, run, depths)) return { outcome: 'full' }
  deepen(depths, draft)
  const outcome = unitOfWork.receive(draft)
  known.set(`${runId} ${id}`, outcome)
  const put = unitOfWork.puts.get(`${runId} ${id}`)
  if (outcome === 'target-terminated' && put !== undefined) settleUnread(unitOfWork, put.message)
  return answerOf(outcome, run.status)
}
