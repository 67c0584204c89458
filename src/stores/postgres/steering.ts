// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at.

import { uniqueText } from '../../core/key.ts'
import { holds, isTerminal, type Lease, type Run } from '../../core/run.ts'
import { steer, type Steered, type SteerRequest } from '../../core/steering.ts'
import { giveBack } from '../../core/takeover.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Execution } from './execution.ts'
import type { Idempotency } from './idempotency.ts'
import type { Rewriting } from './rewriting.ts'
import { lockRuns, runColumns, runOf } from './rows.ts'

type HeldLease = Lease & { readonly runId: string }

export interface Steering {
  /** Steers runs of one shard. */
  steer(x: Execution, shard: number, requests: readonly SteerRequest[]): Promise<readonly Steered[]>
  /** Gives leases of one shard back; lost ones are passed over. */
  release(x: Execution, shard: number, leases: readonly HeldLease[]): Promise<void>
}

export function steering({ schema, now, shards }: Dialect, rewriting: Rewriting, idempotency: Idempotency): Steering {
  const locking = lockRuns(schema)
  const steerLock = statement('steer.lock', locking)
  const releaseLock = statement('release.lock', locking)
  const time = statement([], `select ${now} as now, $1::smallint as shard`)
  const look = statement(
    'steer.look',
    `
    select ${now} as now, null as run_id, null as request
    union all
    select null, run_id::text, transition_id
    from json_to_recordset($2::text::json) as asked ("runId" uuid, id text) cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = "runId" and entry.transition_id = asked.id offset 0) as entry`,
  )
  const holders = statement(
    'steer.look',
    `
    select ${runColumns('run')}
      from (select distinct value as key from json_array_elements_text($2::text::json)) as asked cross join lateral (
        select * from ${schema}.runs
        where shard = $1::smallint and unique_key = asked.key and ended_at is null and deleted_at is null offset 0) as run`,
  )

  return {
    async steer(x, shard, requests) {
      const ids = JSON.stringify([...new Set(requests.map(({ runId }) => runId))])
      const asked = JSON.stringify(requests.map(({ runId, id }) => ({ runId, id })))
      const [locked, seen] = await Promise.all([x.execute(steerLock, [shard, ids]), x.execute(look, [shard, asked])])
      const now = Number(seen[0]?.['now'])
      const obeyed = new Set(seen.slice(1).map((row) => `${row['run_id'] as string} ${row['request'] as string}`))
      const rewrites = rewriting.rewrites(shard, locked.map(runOf), now)
      const keys = requests.flatMap(({ kind, runId }) => (kind === 'retry' ? keysOf(rewrites.get(runId)) : []))
      const rivals = keys.length === 0 ? [] : (await x.execute(holders, [shard, JSON.stringify(keys)])).map(runOf)
      /** Who has the key of this run: of those that this batch has changed, as they are by now. */
      const keyHolder = (run: Run): string | null => {
        const [key] = keysOf(run)
        if (key === undefined) return null
        const known = [...rewrites.all(), ...rivals.filter(({ id }) => rewrites.get(id) === undefined)]
        return known.find((one) => one.id !== run.id && isLive(one) && uniqueText(one) === key)?.id ?? null
      }
      const answers = requests.map((request): Steered => {
        const run = rewrites.get(request.runId)
        if (run === undefined) return { outcome: 'not-found' }
        const mark = `${run.id} ${request.id}`
        if (obeyed.has(mark)) return { outcome: 'done', run: copied(run) }
        const { answer, write } = steer(run, request, now, request.kind === 'retry' ? keyHolder(run) : null)
        if (write !== null) {
          rewrites.write(run, write, request.id)
          if (write.append.length > 0) obeyed.add(mark)
        }
        return answer.outcome === 'not-found' ? answer : { ...answer, run: copied(answer.run) }
      })
      await rewrites.flush(x, 'steer')
      if (shards > 1)
        await idempotency.free(
          x,
          rewrites.all().filter(({ deletedAt }) => deletedAt === now),
        )
      return answers
    },

    async release(x, shard, leases) {
      const ids = JSON.stringify(leases.map(({ runId }) => runId))
      const [locked, [clock]] = await Promise.all([x.execute(releaseLock, [shard, ids]), x.execute(time, [shard])])
      const now = Number(clock?.['now'])
      const rewrites = rewriting.rewrites(shard, locked.map(runOf), now)
      for (const lease of leases) {
        const run = rewrites.get(lease.runId)
        if (run !== undefined && holds(run, lease)) rewrites.write(run, giveBack(run, now), null)
      }
      await rewrites.flush(x, 'release')
    },
  }
}

function keysOf(run: Run | undefined): readonly string[] {
  const key = run === undefined ? null : uniqueText(run)
  return key === null ? [] : [key]
}

function isLive({ status, deletedAt }: Run): boolean {
  return deletedAt === null && !isTerminal(status)
}

function copied(run: Run): Run {
  return structuredClone(run)
}
