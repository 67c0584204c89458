// Executes control commands, by the rules of the core. All rows are locked in order, then read; each command sees the effects
// of those before it. Releasing leases is the same without anything to read. The runs that must be notified of an end are
// notified in the same transaction.

import { uniqueText } from '../../../core/model/key.ts'
import { isTerminal, type Run } from '../../../core/model/run.ts'
import type { Keyed } from '../../../core/rules/commit.ts'
import { controlRun, type ControlWork } from '../../../core/rules/control-run.ts'
import type { ControlResult, ControlCommand } from '../../../core/rules/control.ts'
import { releaseRun } from '../../../core/rules/claims/rescue.ts'
import type { SubscriberCounts } from '../../subscriber-counts.ts'
import type { LockedRows } from './locked-rows.ts'
import type { ReleasedLease } from '../../../store.ts'
import { PostgresUnitOfWork } from './unit-of-work.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner, ExchangeOptions, Seen } from './exchange.ts'
import type { Execution } from '../execution.ts'
import { runColumns, runOf } from '../schema/rows.ts'
import type { Guard, LockPolicy } from '../commit/locked-items.ts'
import type { LockRequest } from './lock-request.ts'

export interface ControlQueries {
  /** Steers runs of one shard. */
  control(
    x: Execution,
    shard: number,
    requests: readonly ControlCommand[],
    lockRequest: LockRequest,
    how?: ExchangeOptions,
  ): Promise<readonly ControlResult[]>
  /** Gives leases of one shard back; lost ones are passed over. */
  release(
    x: Execution,
    shard: number,
    leases: readonly ReleasedLease[],
    lockRequest: LockRequest,
    lockPolicy?: LockPolicy,
  ): Promise<void>
}

interface Look extends Seen {
  /** Requests that were obeyed before, by run and id. */
  readonly applied: ReadonlySet<string>
}

export function createControlQueries({ schema, now }: Dialect, exchange: ExchangeRunner): ControlQueries {
  const time = statement([], `select ${now} as now, $1::smallint as shard`)
  const look = statement(
    'control.look',
    `
    select ${now} as now, null as run_id, null as request
    union all
    select null, run_id::text, transition_id
    from json_to_recordset($2::text::json) as requested ("runId" uuid, id text) cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = "runId" and entry.transition_id = requested.id offset 0) as entry`,
  )
  const holders = statement(
    'control.look',
    `
    select ${runColumns('run')}
      from (select distinct value as key from json_array_elements_text($2::text::json)) as requested cross join lateral (
        select run_id from ${schema}.keys
        where shard = $1::smallint and key = requested.key and type = ''::text offset 0) as held cross join lateral (
        select * from ${schema}.runs where shard = $1::smallint and id = held.run_id offset 0) as run`,
  )

  async function lookFor(x: Execution, shard: number, requests: readonly ControlCommand[]): Promise<Look> {
    const requested = JSON.stringify(requests.map(({ runId, id }) => ({ runId, id })))
    const seen = await x.execute(look, [shard, requested])
    const applied = seen.slice(1).map((row) => `${row['run_id'] as string} ${row['request'] as string}`)
    return { now: Number(seen[0]?.['now']), applied: new Set(applied) }
  }

  /** The holders of the keys of runs that are to go on. */
  async function lookForRivals(
    x: Execution,
    shard: number,
    requests: readonly ControlCommand[],
    unitOfWork: PostgresUnitOfWork,
    guard: Guard,
  ): Promise<readonly Run[]> {
    const keys = requests.flatMap(
      ({ kind, runId }, index) =>
        guard.decide(index, () => (kind === 'retry' ? keysOf(unitOfWork.run(runId)) : [])) ?? [],
    )
    return keys.length === 0 ? [] : (await x.execute(holders, [shard, JSON.stringify(keys)])).map(runOf)
  }

  return {
    async control(x, shard, requests, lockRequest, { inUserTransaction = false, lockPolicy } = {}) {
      for (const { runId } of requests) lockRequest.concern(runId)
      return exchange.perform(x, {
        end: 'control',
        lockRequest,
        inUserTransaction,
        lockPolicy,
        look: () => lookFor(x, shard, requests),
        lend: (found, seen, crowds) => new PostgresControlWork(found, seen, crowds),
        prepare: (unitOfWork, _seen, guard) => lookForRivals(x, shard, requests, unitOfWork, guard),
        decide: (unitOfWork, _seen, rivals, guard) => {
          unitOfWork.rivals = rivals ?? []
          const controlOne = (request: ControlCommand): ControlResult =>
            structuredClone(controlRun(unitOfWork, unitOfWork.run(request.runId), request))
          return requests.map((request, index) => guard.decide(index, () => controlOne(request)) as ControlResult)
        },
      })
    },

    async release(x, shard, leases, lockRequest, lockPolicy) {
      for (const { runId } of leases) lockRequest.concern(runId)
      await exchange.perform(x, {
        end: 'release',
        lockRequest,
        inUserTransaction: false,
        lockPolicy,
        look: async () => ({ now: Number((await x.execute(time, [shard]))[0]?.['now']) }),
        lend: (found, { now: time }, crowds) => new PostgresUnitOfWork(found, time, crowds),
        decide: (unitOfWork, _seen, _made, guard) => {
          const release = (lease: ReleasedLease): void => releaseRun(unitOfWork, unitOfWork.run(lease.runId), lease)
          for (const [index, lease] of leases.entries()) guard.decide(index, () => release(lease))
        },
      })
    },
  }
}

class PostgresControlWork extends PostgresUnitOfWork implements ControlWork {
  /** Live runs that had a key which a run of this batch needs, when they were looked up. */
  rivals: readonly Run[] = []
  private readonly seen: Look

  constructor(found: LockedRows, seen: Look, crowds: SubscriberCounts) {
    super(found, seen.now, crowds)
    this.seen = seen
  }

  hasTransition(runId: string, id: string): boolean {
    if (this.seen.applied.has(`${runId} ${id}`)) return true
    return this.appended.some((one) => one.runId === runId && one.transition === id)
  }

  /** The runs that this batch has changed, as they are by now. */
  keyHolder(run: Keyed): string | null {
    const key = uniqueText(run)
    if (key === null) return null
    const all = this.all()
    const locked = new Set(all.map(({ id }) => id))
    const known = [...all, ...this.rivals.filter(({ id }) => !locked.has(id))]
    return known.find((one) => one.id !== run.id && isLive(one) && uniqueText(one) === key)?.id ?? null
  }
}

function keysOf(run: Run | undefined): readonly string[] {
  const key = run === undefined ? null : uniqueText(run)
  return key === null ? [] : [key]
}

function isLive({ status, deletedAt }: Run): boolean {
  return deletedAt === null && !isTerminal(status)
}
