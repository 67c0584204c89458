// A schema in which a worker has been busy for long while a transaction held a snapshot: many runs were started, claimed and
// ended, and every index still has all their entries. Made by SQL, in the forms that the store writes.

import { Client } from 'pg'
import type { Backlog } from './backlog.ts'
import { openExplainedStore, type Explained, type ExplainedStore } from './explained-store.ts'
import { createContractBench, type ContractBench } from '../../src/testing/contract/bench.ts'
import { emptyBacklog } from './run-plans.ts'

/** The session that held them all. */
export const churner = 'churner'

export interface HeldSnapshot extends Omit<ContractBench, 'clock' | 'store'> {
  readonly store: ExplainedStore['store']
  readonly backlog: Backlog
  readonly clock: SlowClock
  /** What the statements of a call have read, by their names: the dearest of each. */
  readonly pages: (call: () => Promise<unknown>) => Promise<ReadonlyMap<string, number>>
  readonly close: () => Promise<void>
}

/** The clock of the process, as the test wants it: every look at it may cost some time. */
interface SlowClock {
  ms: number
  tick: number
}

export async function holdSnapshot(dead: number): Promise<HeldSnapshot> {
  const backlog = await emptyBacklog({ over: 1, held: 1, asleep: 1, ready: 1, timed: 1, blocked: 1 })
  const reader = new Client({ connectionString: backlog.url })
  await reader.connect()
  await reader.query('begin isolation level repeatable read')
  await reader.query('select count(*) from holdfast.runs')
  await backlog.execute(...churnSql(dead))
  await backlog.analyze()
  const slow: SlowClock = { ms: 0, tick: 0 }
  const opened = await openExplainedStore({
    url: backlog.url,
    schema: backlog.schema,
    pool: 'own',
    plans: 'auto',
    monotonic: () => (slow.ms += slow.tick),
  })
  const clock = { now: () => Date.now(), advance: () => undefined }
  return {
    ...createContractBench({ store: opened.store, clock }),
    store: opened.store,
    backlog,
    clock: slow,
    pages: async (call) => pagesOf(await opened.explain(call)),
    async close() {
      await reader.query('rollback')
      await Promise.all([reader.end(), opened.store.close()])
    },
  }
}

function pagesOf(explained: readonly Explained[]): ReadonlyMap<string, number> {
  const pages = new Map<string, number>()
  for (const { name, buffers } of explained) pages.set(name, Math.max(buffers, pages.get(name) ?? 0))
  return pages
}

/** Each was ready, then held with a deadline, then over. A tenth of them had its time until a while ago, the rest has it still. */
function churnSql(dead: number): readonly string[] {
  const now = Date.now()
  const bound = `case when n % 10 = 0 then ${now - 600_000} else ${now + 3_600_000} end + n`
  return [
    `insert into holdfast.runs (shard, id, type, version, status, readiness, due, timeout_at, expires_at, created_at,
        updated_at)
      select 0, (lpad(to_hex(${now}::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, 'charge', 1,
        'pending', 'ready', ${now}, ${bound}, ${bound}, ${now}, ${now}
      from generate_series(1, ${dead}) as n`,
    `update holdfast.runs set status = 'running', readiness = 'leased', due = null, token = 1, session = '${churner}',
        deadline = ${now - 300_000} + created_at % 1000, expires_at = null`,
    `update holdfast.runs set status = 'succeeded', readiness = 'idle', session = null, deadline = null,
        ended_at = updated_at`,
  ]
}
