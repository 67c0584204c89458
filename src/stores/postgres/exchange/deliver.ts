// Mailboxes and topics, by the rules of the core. A delivery locks the run first, in any status, and reads in the next
// statement. So a run that is being parked is either found parked and woken, or its holder finds the counter moved. Messages
// to live runs need no more than that; a message to a topic, or one that is given up because its run is over, is an exchange.

import { defaultPageLimits } from '../../../core/model/chore.ts'
import type { DeliveryOutcome, MessageDraft } from '../../../core/model/message.ts'
import type { Run } from '../../../core/model/run.ts'
import { deliver, deliverToMailbox } from '../../../core/rules/messages/deliver.ts'
import type { Delivered, NewBroadcast, NewMessage } from '../../../store.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner, ExchangeOptions } from './exchange.ts'
import type { Execution } from '../execution.ts'
import { hintPlace } from '../commit/rewrite.ts'
import { lockRuns, runOf } from '../schema/rows.ts'
import { byShard } from '../schema/shards.ts'
import { LockRequest } from './lock-request.ts'
import { depthKey, LiveMailboxes, PostgresDeliveryWork, type Depths, type MailboxLook } from './mailbox-work.ts'

export type Sending = NewMessage | NewBroadcast

export interface DeliverQueries {
  /** Puts messages into mailboxes of one shard; null, and nothing has changed, if that is not all there is to do. */
  put(x: Execution, shard: number, drafts: readonly NewMessage[]): Promise<readonly Delivered[] | null>
  /** Delivers messages and broadcasts of every kind, by the rules of the exchange. */
  exchange(
    x: Execution,
    sent: readonly Sending[],
    lockRequest: LockRequest,
    how?: ExchangeOptions,
  ): Promise<readonly Delivered[]>
}

type RunsById = ReadonlyMap<string, Run>

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
  // Under the lock. The oldest one shows first whether there can be so many: mostly there cannot, and nothing is counted.
  const countUnread = statement(
    'deliver.look',
    `
    select requested.id::text as run_id, requested.most, counted.unread
    from json_to_recordset($2::text::json) as requested (id uuid, most bigint, inbox bigint, last bigint)
    cross join lateral (
      select coalesce((
        select position from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = requested.id and message.taken_by is null
        order by message.position limit 1), requested.inbox + 1) as position) as oldest
    cross join lateral (
      select count(*) as unread from (
        select 1 from ${schema}.messages as message
        where message.shard = $1::smallint and message.run_id = requested.id and message.taken_by is null
        limit requested.most) as message) as counted
    where oldest.position <= requested.last - requested.most + 1`,
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
    insert into ${schema}.messages (shard, run_id, position, id, kind, name, data, on_unread, delivery, retain_ms, at,
      outcome)
    select $1::smallint, "runId", position, id, kind, name, data, on_unread, delivery, retain_ms, $4::bigint, outcome
    from json_to_recordset($3::text::json) as fresh (
      "runId" uuid, position integer, id text, kind text, name text, data text, on_unread text, delivery text,
      retain_ms bigint, outcome text)`,
  )

  /** How many messages a run has not read, counted up to its bound; only for runs that ever got that many. */
  async function lookDepths(x: Execution, drafts: readonly NewMessage[], runs: RunsById): Promise<Depths> {
    const requested = new Map<
      string,
      { readonly id: string; readonly most: number; readonly inbox: number; last: number }
    >()
    for (const { runId: id, mostUnread: most } of drafts) {
      const inbox = runs.get(id)?.inbox
      if (inbox === undefined || most === undefined) continue
      const known = requested.get(depthKey(id, most))
      if (known === undefined) requested.set(depthKey(id, most), { id, most, inbox, last: inbox })
      else known.last += 1
    }
    const deep = [...requested.values()].filter(({ most, last }) => last >= most)
    const depths = new Map<string, number>()
    for (const [shard, some] of byShard(dialect, deep, ({ id }) => id)) {
      for (const row of await x.execute(countUnread, [shard, JSON.stringify(some)])) {
        depths.set(depthKey(row['run_id'] as string, Number(row['most'])), Number(row['unread']))
      }
    }
    return depths
  }

  async function lookFor(x: Execution, shard: number, drafts: readonly MessageDraft[]): Promise<MailboxLook> {
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
  async function lookEverywhere(x: Execution, drafts: readonly MessageDraft[]): Promise<MailboxLook> {
    const shards = byShard(dialect, drafts, ({ runId }) => runId)
    const requested = shards.size === 0 ? [[0, []] as const] : [...shards]
    const seen = await Promise.all(requested.map(([shard, some]) => lookFor(x, shard, some)))
    const times = seen.map((one) => one.now)
    return { now: Math.max(...times), known: new Map(seen.flatMap(({ known }) => [...known])) }
  }

  return {
    async put(x, shard, drafts) {
      const targets = [...new Set(drafts.map(({ runId }) => runId))]
      const [locked, seen] = await Promise.all([
        x.execute(lock, [shard, JSON.stringify(targets)]),
        lookFor(x, shard, drafts),
      ])
      const runs = new Map(locked.map((row) => [row['id'] as string, runOf(row)]))
      const work = new LiveMailboxes(runs, seen, await lookDepths(x, drafts, runs))
      const answers: Delivered[] = []
      for (const draft of drafts) {
        const answer = deliverToMailbox(work, work.run(draft.runId), draft)
        if (answer === null) return null
        answers.push(answer)
      }
      const { fresh, woken } = work
      if (fresh.length === 0) return answers
      const bumps = Array.from(new Set(fresh.map(({ runId }) => runId)), (runId) => {
        const run = work.run(runId) as Run
        const { id, inbox, readiness, due, session } = run
        if (session !== null) x.hints.push({ kind: 'message', runId })
        if (!woken.has(id)) return { id, inbox }
        hintPlace(x, run)
        return { id, inbox, readiness, due }
      })
      await x.execute(put, [shard, JSON.stringify(bumps), JSON.stringify(fresh), seen.now])
      return answers
    },

    exchange: (x, sent, lockRequest, { inUserTransaction = false, lockPolicy } = {}) =>
      exchange.perform(x, {
        end: 'deliver',
        lockRequest,
        inUserTransaction,
        lockPolicy,
        look: () => lookEverywhere(x, sent.filter(isMessage)),
        lend: (found, seen, crowds) => new PostgresDeliveryWork(found, seen, crowds),
        prepare: (unitOfWork) => {
          const drafts = sent.filter(isMessage)
          return lookDepths(x, drafts, new Map(unitOfWork.all().map((run) => [run.id, run])))
        },
        decide: (unitOfWork, _seen, depths, guard) => {
          unitOfWork.depths = depths ?? new Map()
          const deliverOne = (one: Sending): Delivered =>
            deliver(unitOfWork, isMessage(one) ? unitOfWork.run(one.runId) : undefined, one)
          return sent.map((one, index) => guard.decide(index, () => deliverOne(one)) as Delivered)
        },
      }),
  }
}

/** The rows that their delivery may touch. */
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
