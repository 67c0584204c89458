// Takeover. Runs that may have to be taken over are picked without locks; then the rows are locked, and each is judged anew
// by its own columns: the same holder under the same token, or still none. A session that is dead stays dead, so that is
// enough; a session that was not there when a statement began may be one that opened since.
//
// A run that another transaction has locked waits alone, and so does a run that a policy of row-level security refuses to
// change: a later look finds it again, and all runs behind it are taken over now.
//
// Runs and sessions are never joined, because they may be on different machines. A look that finds nothing to do is the whole
// cost of a rescue, and `rescue-look.ts` says how that stays cheap; every shard with work is a transaction of its own.

import type { Run } from '../../../core/model/run.ts'
import { rescuedTogether, rescueOrder, rescueRun, type RescuedRuns } from '../../../core/rules/claims/rescue.ts'
import type { Rescued, RescueRequest } from '../../../store.ts'
import { PostgresUnitOfWork } from '../exchange/unit-of-work.ts'
import { statement, type Dialect, type Statement } from '../dialect.ts'
import type { ExchangeRunner, Seen } from '../exchange/exchange.ts'
import { createEndedSessions } from './ended-sessions.ts'
import type { Execution, DetailedHint, Transactions } from '../execution.ts'
import { isBound, createRescueLook, type RescueOutlook } from './rescue-look.ts'
import type { RefusedOthers } from '../exchange/refused-others.ts'
import { RefusedRuns } from '../exchange/refused-runs.ts'
import type { RefusedRescue } from '../schema/row-security.ts'
import { runColumns, runOf } from '../schema/rows.ts'
import { setAside, type Sending, type LockPolicy } from '../commit/locked-items.ts'
import { withoutRefused } from '../commit/refused-items.ts'
import { LockRequest } from '../exchange/lock-request.ts'

export interface RescueQueries {
  rescue(transactions: Transactions, request: RescueRequest): Promise<Rescued>
  /** The time of a run may be over before the next time of the last look. */
  notice(hints: readonly DetailedHint[]): void
}

interface Picked {
  readonly id: string
  readonly session: string | null
  readonly token: number
  /** Taken because of its deadline, which may be moved meanwhile. */
  readonly late: boolean
}

interface Choice {
  readonly chosen: readonly Picked[]
  /** There are others behind them. */
  readonly more: boolean
  /** There are some that are left out. */
  readonly leavesOut: boolean
}

interface Taken extends RescuedRuns {
  readonly more: boolean
  /** Some were left to a later look: others had them, or they are refused. */
  readonly passedOver: boolean
  readonly refusals: Refusals
}

/** The request to one shard. */
interface Search {
  readonly shard: number
  readonly dead: readonly string[]
  readonly request: RescueRequest
  readonly limit: number
}

/** The runs that policies refuse in one shard. */
interface Refusals {
  count: number
  /** The last that was said. */
  error: unknown
}

export interface RescuingOptions {
  readonly monotonic: () => number
  readonly refusedOthers: RefusedOthers
  /** Policies of row-level security refuse every change of these runs. Called with every rescue that comes to some. */
  readonly onRefused: (refused: RefusedRescue) => void
}

/** A shard is asked for more at most this many times because its runs could not be locked. */
const mostRounds = 10

/**
 * This many refused runs of a shard are found at once: each costs some transactions. Then they are known, and the next rescue
 * goes on.
 */
const mostRefusals = 50

export function createRescueQueries(
  dialect: Dialect,
  exchange: ExchangeRunner,
  options: RescuingOptions,
): RescueQueries {
  const { monotonic, refusedOthers, onRefused } = options
  const { schema, now, skipLocked } = dialect
  const statements = rescueStatements(schema, now, skipLocked)
  const rescueLooks = createRescueLook(dialect, monotonic)
  const refused = new RefusedRuns(monotonic)
  const endedSessions = createEndedSessions(dialect, 'rescue')

  async function endExpired(x: Execution): Promise<number> {
    return (await x.execute(statements.sessions, [0])).length
  }

  /** Those that may have to be taken, but for those that are left out. */
  async function pick(x: Execution, { shard, dead, limit }: Search, leftOut: ReadonlySet<string>): Promise<Choice> {
    const found = await x.execute(statements.pick, [
      shard,
      JSON.stringify({ dead, most: limit + 1 + leftOut.size, since: rescueLooks.floor }),
    ])
    const picked = new Map<string, Picked>()
    let leavesOut = false
    for (const row of found) {
      const id = row['id'] as string
      const late = row['late'] === true
      // A run that lost its holder needs no deadline any more.
      const one = { id, session: row['session'] as string | null, token: Number(row['token']), late }
      if (leftOut.has(id)) leavesOut = true
      else if (!picked.has(id)) picked.set(id, one)
    }
    const chosen = [...picked.values()].slice(0, limit).toSorted(rescueOrder)
    return { chosen, more: picked.size > chosen.length, leavesOut }
  }

  /** The outcome of each of them; null if it could not be locked. */
  function rescueRuns(
    x: Execution,
    { shard, request }: Search,
    chosen: readonly Picked[],
    lockRequest: LockRequest,
    lockPolicy: LockPolicy,
  ): Promise<readonly (RescuedRuns | null)[]> {
    // Once it is known that other runs must be notified, all are locked in one order; only then is a lock waited for.
    const isKnown = lockRequest.ends.size > 0
    for (const { id } of chosen) {
      lockRequest.own.add(id)
      if (isKnown) lockRequest.runs.add(id)
    }
    return exchange.perform(x, {
      end: 'rescue',
      lockRequest,
      inUserTransaction: false,
      lockPolicy,
      look: () => lock(x, shard, chosen, isKnown),
      lend: (found, { now: time }, crowds) => new PostgresUnitOfWork(found, time, crowds),
      decide: (unitOfWork, { locked }, _made, guard) => {
        const runs = new Map(locked.map((run) => [run.id, run]))
        return chosen.map(({ id }, place) => {
          const run = runs.get(id)
          if (run === undefined) return null
          return guard.decide(place, () => rescueRun(unitOfWork, unitOfWork.run(id), request)) ?? null
        })
      },
    })
  }

  async function lock(
    x: Execution,
    shard: number,
    chosen: readonly Picked[],
    isKnown: boolean,
  ): Promise<Seen & { readonly locked: readonly Run[] }> {
    const rows = await x.execute(isKnown ? statements.judge : statements.lock, [shard, JSON.stringify(chosen)])
    return { now: Number(rows[0]?.['now'] ?? 0), locked: rows.map(runOf) }
  }

  /**
   * The outcomes of those that could be locked, by their id. Locks are waited for shortly, and then locked runs are skipped.
   * A run that is refused is left out of the following rescues, for a while.
   */
  async function rescueChosen(
    transactions: Transactions,
    search: Search,
    chosen: readonly Picked[],
    refusals: Refusals,
  ): Promise<ReadonlyMap<string, RescuedRuns>> {
    const fates = new Map<string, RescuedRuns>()
    const send = async (
      some: readonly Picked[],
      { lockPolicy, patient }: Sending,
    ): Promise<readonly (RescuedRuns | null)[]> => {
      const lockRequest = new LockRequest()
      const work = (x: Execution) => rescueRuns(x, search, some, lockRequest, lockPolicy)
      const answered = await refusedOthers.spare(transactions, lockRequest, () =>
        transactions.transaction('rescue.commit', work, { patient }),
      )
      // These are taken over, regardless of the rest of their batch.
      for (const [place, { id }] of some.entries()) {
        const fate = answered[place] ?? null
        if (fate === null) continue
        fates.set(id, fate)
        refused.forget(id)
      }
      return answered
    }
    const rescueSome = async (items: readonly Picked[]): Promise<void> => {
      if (refusals.count < mostRefusals) await setAside(dialect, { items, busy: null, hasOutbound: true, send })
    }
    await withoutRefused(chosen, rescueSome, ({ id }, error) => {
      refused.add(id)
      refusals.count += 1
      refusals.error = error
    })
    return fates
  }

  async function rescueShard(transactions: Transactions, search: Search): Promise<Taken> {
    const all: RescuedRuns[] = []
    const refusals: Refusals = { count: 0, error: null }
    const leftOut = new Set(refused.current)
    let { limit } = search
    let passedOver = false
    for (let round = 1; ; round += 1) {
      const { chosen, more, leavesOut } = await transactions.alone((x) => pick(x, { ...search, limit }, leftOut))
      const fates = await rescueChosen(transactions, search, chosen, refusals)
      all.push(...fates.values())
      for (const { id } of chosen) if (!fates.has(id)) leftOut.add(id)
      passedOver ||= leavesOut || fates.size < chosen.length
      const taken = rescuedTogether(all)
      const count = taken.takenOver.length + taken.ended.length
      limit = search.limit - count
      // If some could not be had, those behind them are to be had as well.
      const isDone = !more || fates.size === chosen.length || limit <= 0 || round === mostRounds
      if (!isDone && refusals.count < mostRefusals) continue
      return {
        ...taken,
        more: more && (count > 0 || !passedOver),
        passedOver,
        refusals,
      }
    }
  }

  return {
    async rescue(transactions, request) {
      const seen = await rescueLooks.look(transactions, 'first')
      if (isQuiet(seen)) {
        const { next, suspects, now: time } = seen
        return { sessionsEnded: 0, takenOver: [], ended: [], paused: [], suspects, more: false, next, now: time }
      }
      // A transaction of its own: a session that was declared dead is so before anything is taken from it.
      const sessionsEnded = await transactions.transaction('rescue.sessions-commit', endExpired)
      if (sessionsEnded > 0) await endedSessions.forget(transactions)
      const all: Taken[] = []
      let left = request.limit
      let isCut = false
      const living = await transactions.alone((x) => rescueLooks.living(x))
      const swept = new Set<string>()
      for (const [shard, { holders, next }] of seen.shards.entries()) {
        // Also sessions that lived a moment ago: they may have been declared dead just now.
        const dead = [...new Set([...holders, ...seen.living.keys()])].filter((id) => !living.has(id))
        const isConcerned = dead.length > 0 || (next !== null && next <= seen.now)
        // The only shard is always looked at: little is lost, and time went by since the look.
        if (!isConcerned && dialect.shards > 1) continue
        isCut ||= left <= 0 && all.length > 0
        if (isCut) break
        const taken = await rescueShard(transactions, { shard, dead, request, limit: left })
        all.push(taken)
        for (const id of dead) swept.add(id)
        left -= taken.takenOver.length + taken.ended.length
      }
      const refusing = all.flatMap(({ refusals }) => (refusals.count > 0 ? [refusals] : []))
      const last = refusing.at(-1)
      if (last !== undefined) {
        const hasMore = refusing.some(({ count }) => count >= mostRefusals)
        onRefused({ runs: refused.current, hasMore, error: last.error })
      }
      const isPassedOver = all.some(({ passedOver }) => passedOver)
      const more = isCut || all.some((one) => one.more)
      const after = await rescueLooks.look(transactions, 'last')
      if (!more && !isPassedOver) rescueLooks.swept(swept)
      return {
        ...rescuedTogether(all),
        sessionsEnded,
        suspects: after.suspects,
        more,
        // Locked runs are left to the next look, which comes soon.
        next: isPassedOver ? Math.min(after.next ?? after.now, after.now) : after.next,
        now: after.now,
      }
    },
    notice: (hints) => rescueLooks.notice(hints),
  }
}

function isQuiet({ next, now, living, shards }: RescueOutlook): boolean {
  return (next === null || next > now) && shards.every(({ holders }) => holders.every((id) => living.has(id)))
}

interface Statements {
  readonly sessions: Statement
  readonly pick: Statement
  readonly lock: Statement
  /** The same for runs that are locked already. */
  readonly judge: Statement
}

function rescueStatements(schema: string, now: string, skipLocked: string): Statements {
  const clock = `clock as materialized (select ${now} as now)`
  const isHeld = `run.status in ('running', 'cancelling')`
  const over = (column: string, condition: string, late: boolean): string =>
    `(select run.id, run.session, run.token, ${String(late)} from ${schema}.runs as run
      where run.shard = $1::smallint and run.${column} >= (select since from given)
        and run.${column} <= (select now from clock) and ${condition}
      order by run.${column}, run.id limit (select most from given))`
  const judged = (locking: string): string => `
    with ${clock}, picked as materialized (
      select * from json_to_recordset($2::text::json) as picked (id uuid, session text, token bigint, late boolean))
    select ${runColumns('run')}, now
    from (select * from picked order by id) as picked cross join clock cross join lateral (
      select * from ${schema}.runs as run
      where run.shard = $1::smallint and run.id = picked.id and case
        when picked.session is null then ${isBound} and (run.timeout_at <= now or run.expires_at <= now)
        else ${isHeld} and run.session = picked.session and run.token = picked.token
          and (not picked.late or run.deadline <= now) end
      ${locking}) as run`
  return {
    // Judged anew after a wait, so that a beat which came first keeps its session.
    sessions: statement(
      'rescue.sessions',
      `
    with ${clock}
    update ${schema}.sessions as session set ended_at = now from clock
    where session.shard = $1::smallint and session.ended_at is null and session.alive_until <= now
    returning session.id`,
    ),
    pick: statement(
      'rescue.pick',
      `
    with ${clock}, given as materialized (
      select * from json_to_record($2::text::json) as given (dead json, most bigint, since bigint))
    (select run.id, run.session, run.token, false as late from ${schema}.runs as run
      where run.shard = $1::smallint and ${isHeld}
        and run.session = any(array(select json_array_elements_text(dead) from given))
      order by run.session, run.id limit (select most from given))
    union all
    ${over('deadline', isHeld, true)}
    union all
    ${over('timeout_at', isBound, false)}
    union all
    ${over('expires_at', isBound, false)}`,
    ),
    lock: statement('rescue.lock', judged(`for no key update ${skipLocked}`)),
    judge: statement('rescue.look', judged('offset 0')),
  }
}
