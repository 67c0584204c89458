// Mailboxes. Whoever leaves a message takes the run first, whatever that is doing, and looks in the next statement. So a run
// that is being parked is either found asleep and woken, or its holder finds the counter moved.

import { isTerminal, type Run } from '../../core/run.ts'
import type { Delivered, NewMessage } from '../../store.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import { lockRuns, runOf } from './rows.ts'

export interface Delivering {
  /** Delivers messages to runs of one shard. */
  deliver(x: Execution, shard: number, messages: readonly NewMessage[]): Promise<readonly Delivered[]>
}

/** A message as JSON, with the place that it gets. */
interface Fresh extends NewMessage {
  readonly position: number
  readonly outcome: 'delivered' | 'queued'
}

export function delivering({ schema, now }: Dialect): Delivering {
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
    insert into ${schema}.messages (shard, run_id, position, id, name, data, at, outcome)
    select $1::smallint, "runId", position, id, name, data, $4::bigint, outcome
    from json_to_recordset($3::text::json) as fresh (
      "runId" uuid, position integer, id text, name text, data text, outcome text)`,
  )

  return {
    async deliver(x, shard, messages) {
      const targets = [...new Set(messages.map(({ runId }) => runId))]
      const sent = messages.map(({ runId, id }) => ({ runId, id }))
      const [locked, seen] = await Promise.all([
        x.execute(lock, [shard, JSON.stringify(targets)]),
        x.execute(look, [shard, JSON.stringify(sent)]),
      ])
      const runs = new Map(locked.map((row) => [row['id'] as string, runOf(row)]))
      const time = Number(seen[0]?.['now'])
      const known = new Map(
        seen
          .slice(1)
          .map((row) => [`${row['run_id'] as string} ${row['id'] as string}`, row['outcome'] as Fresh['outcome']]),
      )
      const fresh: Fresh[] = []
      const woken = new Set<string>()
      const answers = messages.map((message): Delivered => {
        const { id, runId } = message
        const run = runs.get(runId)
        if (run === undefined) return { outcome: 'target-not-found' }
        const before = known.get(`${runId} ${id}`)
        if (before !== undefined) return { outcome: before }
        if (run.deletedAt !== null) return { outcome: 'target-not-found' }
        if (isTerminal(run.status)) return { outcome: 'target-terminated', status: run.status }
        const outcome = run.status === 'waiting' ? 'delivered' : 'queued'
        const position = run.inbox + 1
        runs.set(runId, { ...run, inbox: position })
        known.set(`${runId} ${id}`, outcome)
        fresh.push({ ...message, position, outcome })
        if (outcome === 'delivered') woken.add(runId)
        return { outcome }
      })
      if (fresh.length === 0) return answers
      const bumps = Array.from(new Set(fresh.map(({ runId }) => runId)), (runId) => {
        const { id, inbox, due, type } = runs.get(runId) as Run
        if (!woken.has(id)) return { id, inbox }
        x.hints.push({ kind: 'ready', type })
        // A run that is due already keeps its place: whoever is written to often must not be claimed last.
        return { id, inbox, readiness: 'ready', due: Math.min(due ?? time, time) }
      })
      await x.execute(put, [shard, JSON.stringify(bumps), JSON.stringify(fresh), time])
      return answers
    },
  }
}
