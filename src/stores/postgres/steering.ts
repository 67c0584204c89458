// Doing what people ask of runs. All rows are taken in order, then looked at; what one request made of a run is what the
// next one finds. Giving leases back is the same without anything to look at. Whoever has to hear of an end is told in the
// same transaction.

import { conclude, hasParted } from '../../core/exchange.ts'
import { uniqueText } from '../../core/key.ts'
import type { Rewrite } from '../../core/rewrite.ts'
import { holds, isTerminal, type Run } from '../../core/run.ts'
import { steer, type Steered, type SteerRequest } from '../../core/steering.ts'
import { giveBack } from '../../core/takeover.ts'
import type { GivenBack } from '../../store.ts'
import { PostgresBooks } from './books.ts'
import { statement, type Dialect } from './dialect.ts'
import type { Exchanging, Manner, Seen } from './exchanging.ts'
import type { Execution } from './execution.ts'
import type { Idempotency } from './idempotency.ts'
import { runColumns, runOf } from './rows.ts'
import type { Guard, Way } from './set-aside.ts'
import type { Wants } from './wants.ts'

export interface Steering {
  /** Steers runs of one shard. */
  steer(
    x: Execution,
    shard: number,
    requests: readonly SteerRequest[],
    wants: Wants,
    how?: Manner,
  ): Promise<readonly Steered[]>
  /** Gives leases of one shard back; lost ones are passed over. */
  release(x: Execution, shard: number, leases: readonly GivenBack[], wants: Wants, way?: Way): Promise<void>
}

interface Look extends Seen {
  /** Requests that were obeyed before, by run and id. */
  readonly obeyed: ReadonlySet<string>
}

export function steering({ schema, now, shards }: Dialect, exchange: Exchanging, idempotency: Idempotency): Steering {
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

  async function lookFor(x: Execution, shard: number, requests: readonly SteerRequest[]): Promise<Look> {
    const asked = JSON.stringify(requests.map(({ runId, id }) => ({ runId, id })))
    const seen = await x.execute(look, [shard, asked])
    const obeyed = seen.slice(1).map((row) => `${row['run_id'] as string} ${row['request'] as string}`)
    return { now: Number(seen[0]?.['now']), obeyed: new Set(obeyed) }
  }

  /** Who has the keys of those that are to go on. */
  async function lookForRivals(
    x: Execution,
    shard: number,
    requests: readonly SteerRequest[],
    books: PostgresBooks,
    guard: Guard,
  ): Promise<readonly Run[]> {
    const keys = requests.flatMap(
      ({ kind, runId }, index) => guard.decide(index, () => (kind === 'retry' ? keysOf(books.run(runId)) : [])) ?? [],
    )
    return keys.length === 0 ? [] : (await x.execute(holders, [shard, JSON.stringify(keys)])).map(runOf)
  }

  return {
    async steer(x, shard, requests, wants, { within = false, way } = {}) {
      for (const { runId } of requests) wants.concern(runId)
      const { answers, deleted } = await exchange.perform(x, {
        end: 'steer',
        wants,
        within,
        way,
        look: () => lookFor(x, shard, requests),
        lend: (found, { now: time }, crowds) => new PostgresBooks(found, time, crowds),
        prepare: (books, _seen, guard) => lookForRivals(x, shard, requests, books, guard),
        decide: (books, { obeyed }, rivals, guard) => ({
          answers: steerAll(books, requests, obeyed, rivals ?? [], guard),
          deleted: books.all().filter(({ deletedAt }) => deletedAt === books.now),
        }),
      })
      if (shards > 1) await idempotency.free(x, deleted)
      return answers
    },

    async release(x, shard, leases, wants, way) {
      for (const { runId } of leases) wants.concern(runId)
      await exchange.perform(x, {
        end: 'release',
        wants,
        within: false,
        way,
        look: async () => ({ now: Number((await x.execute(time, [shard]))[0]?.['now']) }),
        lend: (found, { now: time }, crowds) => new PostgresBooks(found, time, crowds),
        decide: (books, _seen, _made, guard) => {
          const release = (lease: GivenBack): void => {
            const run = books.run(lease.runId)
            if (run !== undefined && holds(run, lease))
              rewriteRun(books, run, giveBack(run, books.now, lease.crashes), null)
          }
          for (const [index, lease] of leases.entries()) guard.decide(index, () => release(lease))
        },
      })
    },
  }
}

/** Makes the row what it shall be; if it has ended with that, those who watch it are told. */
export function rewriteRun(books: PostgresBooks, before: Run, write: Rewrite, transition: string | null): void {
  books.write(before, write, transition)
  if (hasParted(before, write.run)) conclude(books, write.run)
}

/** One after the other: the second finds what the first made of its run. */
function steerAll(
  books: PostgresBooks,
  requests: readonly SteerRequest[],
  before: ReadonlySet<string>,
  rivals: readonly Run[],
  guard: Guard,
): readonly Steered[] {
  const obeyed = new Set(before)
  /** Who has the key of this run: of those that this batch has changed, as they are by now. */
  const keyHolder = (run: Run): string | null => {
    const [key] = keysOf(run)
    if (key === undefined) return null
    const all = books.all()
    const locked = new Set(all.map(({ id }) => id))
    const known = [...all, ...rivals.filter(({ id }) => !locked.has(id))]
    return known.find((one) => one.id !== run.id && isLive(one) && uniqueText(one) === key)?.id ?? null
  }
  const steerOne = (request: SteerRequest): Steered => {
    const run = books.run(request.runId)
    if (run === undefined) return { outcome: 'not-found' }
    const mark = `${run.id} ${request.id}`
    if (obeyed.has(mark)) return { outcome: 'done', run: copied(run) }
    const { answer, write } = steer(run, request, books.now, request.kind === 'retry' ? keyHolder(run) : null)
    if (write !== null) {
      rewriteRun(books, run, write, request.id)
      if (write.append.length > 0) obeyed.add(mark)
    }
    return answer.outcome === 'not-found' ? answer : { ...answer, run: copied(answer.run) }
  }
  return requests.map((request, index) => guard.decide(index, () => steerOne(request)) as Steered)
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
