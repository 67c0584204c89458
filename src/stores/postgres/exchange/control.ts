// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at. Whoever has to hear of an end is told in the
// same transaction.

import { conclude, hasParted } from '../../../core/rules/exchange.ts'
import { uniqueText } from '../../../core/model/key.ts'
import type { Rewrite } from '../../../core/rules/rewrite.ts'
import { holds, isTerminal, type Run } from '../../../core/model/run.ts'
import { control, type ControlResult, type ControlCommand } from '../../../core/rules/control.ts'
import { giveBack } from '../../../core/rules/takeover.ts'
import type { ReleasedLease } from '../../../store.ts'
import { PostgresUnitOfWork } from './unit-of-work.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { ExchangeRunner, ExchangeOptions, Seen } from './exchange.ts'
import type { Execution } from '../execution.ts'
import type { IdempotencyQueries } from '../commit/idempotency.ts'
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

export function createControlQueries(
  { schema, now, shards }: Dialect,
  exchange: ExchangeRunner,
  idempotencyQueries: IdempotencyQueries,
): ControlQueries {
  const time = statement([], `select ${now} as now, $1::smallint as shard`)
  const look = statement(
    'control.look',
    `
    select ${now} as now, null as run_id, null as request
    union all
    select null, run_id::text, transition_id
    from json_to_recordset($2::text::json) as asked ("runId" uuid, id text) cross join lateral (
      select * from ${schema}.journal as entry
      where entry.shard = $1::smallint and entry.run_id = "runId" and entry.transition_id = asked.id offset 0) as entry`,
  )
  const holders = statement(
    'control.look',
    `
    select ${runColumns('run')}
      from (select distinct value as key from json_array_elements_text($2::text::json)) as asked cross join lateral (
        select * from ${schema}.runs
        where shard = $1::smallint and unique_key = asked.key and ended_at is null and deleted_at is null offset 0) as run`,
  )

  async function lookFor(x: Execution, shard: number, requests: readonly ControlCommand[]): Promise<Look> {
    const asked = JSON.stringify(requests.map(({ runId, id }) => ({ runId, id })))
    const seen = await x.execute(look, [shard, asked])
    const applied = seen.slice(1).map((row) => `${row['run_id'] as string} ${row['request'] as string}`)
    return { now: Number(seen[0]?.['now']), applied: new Set(applied) }
  }

  /** Who has the keys of those that are to go on. */
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
      const { answers, deleted } = await exchange.perform(x, {
        end: 'control',
        lockRequest,
        inUserTransaction,
        lockPolicy,
        look: () => lookFor(x, shard, requests),
        lend: (found, { now: time }, crowds) => new PostgresUnitOfWork(found, time, crowds),
        prepare: (unitOfWork, _seen, guard) => lookForRivals(x, shard, requests, unitOfWork, guard),
        decide: (unitOfWork, { applied }, rivals, guard) => ({
          answers: controlAll(unitOfWork, requests, applied, rivals ?? [], guard),
          deleted: unitOfWork.all().filter(({ deletedAt }) => deletedAt === unitOfWork.now),
        }),
      })
      if (shards > 1) await idempotencyQueries.free(x, deleted)
      return answers
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
          const release = (lease: ReleasedLease): void => {
            const run = unitOfWork.run(lease.runId)
            if (run !== undefined && holds(run, lease))
              rewriteRun(unitOfWork, run, giveBack(run, unitOfWork.now, lease.crashes), null)
          }
          for (const [index, lease] of leases.entries()) guard.decide(index, () => release(lease))
        },
      })
    },
  }
}

/** Makes the row what it shall be; if it has ended with that, those who watch it are told. */
export function rewriteRun(
  unitOfWork: PostgresUnitOfWork,
  before: Run,
  write: Rewrite,
  transition: string | null,
): void {
  unitOfWork.write(before, write, transition)
  if (hasParted(before, write.run)) conclude(unitOfWork, write.run)
}

/** One after the other: the second finds what the first made of its run. */
function controlAll(
  unitOfWork: PostgresUnitOfWork,
  requests: readonly ControlCommand[],
  before: ReadonlySet<string>,
  rivals: readonly Run[],
  guard: Guard,
): readonly ControlResult[] {
  const applied = new Set(before)
  /** Who has the key of this run: of those that this batch has changed, as they are by now. */
  const keyHolder = (run: Run): string | null => {
    const [key] = keysOf(run)
    if (key === undefined) return null
    const all = unitOfWork.all()
    const locked = new Set(all.map(({ id }) => id))
    const known = [...all, ...rivals.filter(({ id }) => !locked.has(id))]
    return known.find((one) => one.id !== run.id && isLive(one) && uniqueText(one) === key)?.id ?? null
  }
  const controlOne = (request: ControlCommand): ControlResult => {
    const run = unitOfWork.run(request.runId)
    if (run === undefined) return { outcome: 'not-found' }
    const mark = `${run.id} ${request.id}`
    if (applied.has(mark)) return { outcome: 'done', run: copied(run) }
    const { answer, write } = control(run, request, unitOfWork.now, request.kind === 'retry' ? keyHolder(run) : null)
    if (write !== null) {
      rewriteRun(unitOfWork, run, write, request.id)
      if (write.append.length > 0) applied.add(mark)
    }
    return answer.outcome === 'not-found' ? answer : { ...answer, run: copied(answer.run) }
  }
  return requests.map((request, index) => guard.decide(index, () => controlOne(request)) as ControlResult)
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
