// Takeover. What may have to be taken is picked without locks; then the rows are taken, and each is judged anew by what is
// true of the row itself: the same holder under the same token, or still nobody. A session that is dead stays dead, so that
// is enough; a session that was not there when a statement began may be one that opened since.
//
// Whoever holds something is read before who is alive: a session opens before it leases, so that nobody is thought dead who
// only just came. Runs and sessions are never joined, because they may lie on different machines. A look that finds
// nothing to do is all that a rescue costs; every shard that has something is a transaction of its own.

import type { Run } from '../../core/run.ts'
import { takeOver, timeOut } from '../../core/takeover.ts'
import type { Rescued, RescueRequest } from '../../store.ts'
import type { PostgresBooks } from './books.ts'
import { statement, type Dialect, type Statement } from './dialect.ts'
import type { Exchanging, Seen } from './exchanging.ts'
import type { Execution, Transactions } from './execution.ts'
import { runColumns, runOf, timeOf } from './rows.ts'
import { everyShard } from './shards.ts'
import { rewriteRun } from './steering.ts'
import { Wants } from './wants.ts'

export interface Rescuing {
  rescue(transactions: Transactions, request: RescueRequest): Promise<Rescued>
}

interface Outlook {
  /** When the next of anything runs out. */
  readonly next: number | null
  readonly now: number
  /** Those that live, and until when. */
  readonly living: ReadonlyMap<string, number>
  /** Who holds something in each shard, and when something in it runs out. */
  readonly shards: readonly { readonly holders: readonly string[]; readonly next: number | null }[]
}

interface Picked {
  readonly id: string
  readonly session: string | null
  readonly token: number
  /** Taken because of its deadline, which may be moved meanwhile. */
  readonly late: boolean
}

interface Taken extends Pick<Rescued, 'takenOver' | 'ended' | 'more'> {
  /** Somebody else had some of the rows. */
  readonly passedOver: boolean
}

export function rescuing(dialect: Dialect, exchange: Exchanging): Rescuing {
  const { schema, now, skipLocked } = dialect
  const shards = everyShard(dialect)
  const statements = rescueStatements(schema, now, skipLocked)

  async function outlook(x: Execution, isLast: boolean): Promise<Outlook> {
    const { held, alive } = isLast ? statements.next : statements.outlook
    const [found, sessions] = await Promise.all([
      Promise.all(shards.map((shard) => x.execute(held, [shard]))),
      x.execute(alive, [0]),
    ])
    const rows = found.map(([row]) => ({
      holders: JSON.parse((row?.['holders'] as string | null | undefined) ?? '[]') as string[],
      next: earliest([row?.['deadline'], row?.['timeout'], row?.['expiry']].map(timeOf)),
      now: Number(row?.['now']),
    }))
    const living = new Map(sessions.map((row) => [row['id'] as string, Number(row['alive_until'])]))
    const next = earliest([...living.values(), ...rows.map((row) => row.next)])
    // The earliest of them: what was not over by then is not yet.
    return { next, now: earliest(rows.map((row) => row.now)) ?? 0, living, shards: rows }
  }

  async function endExpired(x: Execution): Promise<number> {
    return (await x.execute(statements.sessions, [0])).length
  }

  async function rescueRuns(
    x: Execution,
    shard: number,
    dead: readonly string[],
    request: RescueRequest,
    limit: number,
    wants: Wants,
  ): Promise<Taken> {
    const found = await x.execute(statements.pick, [shard, JSON.stringify({ dead, most: limit + 1 })])
    const picked = new Map<string, Picked>()
    for (const row of found) {
      const id = row['id'] as string
      const late = row['late'] === true
      // What lost its holder needs no deadline any more.
      const one = { id, session: row['session'] as string | null, token: Number(row['token']), late }
      if (!picked.has(id)) picked.set(id, one)
    }
    const chosen = [...picked.values()].slice(0, limit)
    const more = picked.size > limit
    if (chosen.length === 0) return { takenOver: [], ended: [], more, passedOver: false }
    // Once it is known that others have to hear of something, all are locked in one order; only then is nobody passed over.
    const isKnown = wants.ends.size > 0
    if (isKnown) for (const { id } of chosen) wants.runs.add(id)
    const taken = await exchange.perform(x, {
      end: 'rescue',
      wants,
      within: false,
      look: () => lock(x, shard, chosen, isKnown),
      decide: (books, { locked }) => take(books, locked, request),
    })
    return { ...taken, more, passedOver: taken.count < chosen.length }
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

  function take(
    books: PostgresBooks,
    locked: readonly Run[],
    request: RescueRequest,
  ): Pick<Rescued, 'takenOver' | 'ended'> & { readonly count: number } {
    const takenOver: Rescued['takenOver'][number][] = []
    const ended: Rescued['ended'][number][] = []
    for (const { id: runId, type, session } of locked) {
      // As it is by now: its parent may have been ended just before it.
      const run = books.run(runId) as Run
      // Undo work has no bound on its time.
      if (session === null && run.status === 'cancelling') continue
      const taken = session === null ? timeOut(run, request, books.now) : takeOver(run, request, books.now)
      rewriteRun(books, run, taken, null)
      const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
      if (reason !== null) ended.push({ runId, type, reason })
      else if (session !== null) takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
    }
    return { takenOver, ended, count: locked.length }
  }

  return {
    async rescue(transactions, request) {
      const seen = await transactions.alone((x) => outlook(x, false))
      if (isQuiet(seen)) {
        return { sessionsEnded: 0, takenOver: [], ended: [], more: false, next: seen.next, now: seen.now }
      }
      // A transaction of its own: whoever was declared dead is so before anything is taken from it.
      const sessionsEnded = await transactions.transaction('rescue.sessions-commit', endExpired)
      const all: Taken[] = []
      let left = request.limit
      let isCut = false
      const living = await transactions.alone(stillAlive)
      for (const [shard, { holders, next }] of seen.shards.entries()) {
        const dead = holders.filter((id) => !living.has(id))
        const isConcerned = dead.length > 0 || (next !== null && next <= seen.now)
        // The only shard is always looked at: little is lost, and time went by since the look.
        if (!isConcerned && shards.length > 1) continue
        isCut ||= left <= 0 && all.length > 0
        if (isCut) break
        const most = left
        const wants = new Wants()
        const taken = await transactions.transaction('rescue.commit', (x) =>
          rescueRuns(x, shard, dead, request, most, wants),
        )
        all.push(taken)
        left -= taken.takenOver.length + taken.ended.length
      }
      const after = await transactions.alone((x) => outlook(x, true))
      const isPassedOver = all.some(({ passedOver }) => passedOver)
      return {
        sessionsEnded,
        takenOver: all.flatMap(({ takenOver }) => takenOver),
        ended: all.flatMap(({ ended }) => ended),
        more: isCut || all.some(({ more }) => more),
        // What somebody had locked is there for the next look, soon.
        next: isPassedOver ? Math.min(after.next ?? after.now, after.now) : after.next,
        now: after.now,
      }
    },
  }

  async function stillAlive(x: Execution): Promise<ReadonlySet<string>> {
    return new Set((await x.execute(statements.outlook.alive, [0])).map((row) => row['id'] as string))
  }
}

function isQuiet({ next, now, living, shards }: Outlook): boolean {
  return (next === null || next > now) && shards.every(({ holders }) => holders.every((id) => living.has(id)))
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : known.reduce((least, time) => Math.min(least, time))
}

interface Look {
  readonly held: Statement
  readonly alive: Statement
}

interface Statements {
  /** Before anything is done: it has no place in the plan, which begins once there is something to do. */
  readonly outlook: Look
  readonly next: Look
  readonly sessions: Statement
  readonly pick: Statement
  readonly lock: Statement
  /** The same of what is locked already. */
  readonly judge: Statement
}

function rescueStatements(schema: string, now: string, skipLocked: string): Statements {
  const clock = `clock as materialized (select ${now} as now)`
  const isHeld = `run.status in ('running', 'cancelling')`
  // Whom time may end. Undo work has no bound on its time, and nothing ends what is over or was removed.
  const isBound = `run.session is null and run.status not in ('paused', 'cancelling') and run.undo <> 'due'
        and run.deleted_at is null and run.ended_at is null`
  const first = (column: string, condition: string): string =>
    `(select run.${column} from ${schema}.runs as run
        where run.shard = $1::smallint and run.${column} is not null and ${condition}
        order by run.${column} limit 1)`
  // Each holder is one step along the index, however much it holds.
  const held = `
    with recursive ${clock}, holder as (
      (select run.session from ${schema}.runs as run
      where run.shard = $1::smallint and run.session is not null order by run.session limit 1)
      union all
      select (select run.session from ${schema}.runs as run
        where run.shard = $1::smallint and run.session > holder.session order by run.session limit 1)
      from holder where holder.session is not null)
    select (select json_agg(session)::text from holder where session is not null) as holders,
      ${first('deadline', 'true')} as deadline,
      ${first('timeout_at', isBound)} as timeout,
      ${first('expires_at', isBound)} as expiry,
      now
    from clock`
  const alive = `select id, alive_until from ${schema}.sessions where shard = $1::smallint and ended_at is null`
  const look = (plan: Statement['plan']): Look => ({ held: statement(plan, held), alive: statement(plan, alive) })

  const over = (column: string, condition: string, late: boolean): string =>
    `(select run.id, run.session, run.token, ${String(late)} from ${schema}.runs as run
      where run.shard = $1::smallint and run.${column} <= (select now from clock) and ${condition}
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
    outlook: look([]),
    next: look(['rescue.next']),
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
      select * from json_to_record($2::text::json) as given (dead json, most bigint))
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
