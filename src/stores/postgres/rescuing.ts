// Takeover. What may have to be taken is picked without locks; then the rows are taken, and each is judged anew by what is
// true of the row itself: the same holder under the same token, or still nobody. A session that is dead stays dead, so that
// is enough; a session that was not there when a statement began may be one that opened since.
//
// What somebody else has locked waits alone, and so does a run whose end concerns somebody who is locked: the next look finds
// it again, and whatever stands behind it is taken now.
//
// Runs and sessions are never joined, because they may lie on different machines. A look that finds nothing to do is all that
// a rescue costs, and `outlook.ts` says how that stays cheap; every shard that has something is a transaction of its own.

import { isOfOneRow, type HoldfastError } from '../../core/error.ts'
import type { Run } from '../../core/run.ts'
import { takeOver, timeOut } from '../../core/takeover.ts'
import type { Rescued, RescueRequest } from '../../store.ts'
import type { PostgresBooks } from './books.ts'
import { statement, type Dialect, type Statement } from './dialect.ts'
import type { Exchanging, Seen } from './exchanging.ts'
import type { Execution, Told, Transactions } from './execution.ts'
import { isBound, lookout, type Outlook } from './outlook.ts'
import type { RefusedRescue } from './row-security.ts'
import { runColumns, runOf } from './rows.ts'
import { asideOf, hasMetLock, type Way } from './set-aside.ts'
import { rewriteRun } from './steering.ts'
import { Wants } from './wants.ts'

export interface Rescuing {
  rescue(transactions: Transactions, request: RescueRequest): Promise<Rescued>
  /** The time of a run may be over before what the last look saw. */
  notice(hints: readonly Told[]): void
}

interface Picked {
  readonly id: string
  readonly session: string | null
  readonly token: number
  /** Taken because of its deadline, which may be moved meanwhile. */
  readonly late: boolean
}

type Judged = Pick<Rescued, 'takenOver' | 'ended' | 'paused'>

interface Taken extends Judged {
  readonly more: boolean
  /** Somebody else had some of the rows. */
  readonly passedOver: boolean
}

/** What one shard is asked for. */
interface Search {
  readonly shard: number
  readonly dead: readonly string[]
  readonly request: RescueRequest
  readonly limit: number
  readonly refusals: Refusals
}

/** What policies refuse in one rescue. */
interface Refusals {
  readonly runs: string[]
  hasMore: boolean
  /** The last that was said. */
  error: unknown
}

export interface RescuingOptions {
  readonly monotonic: () => number
  /** Policies of row-level security let nobody change these runs. Called with every rescue that comes to some. */
  readonly onRefused: (refused: RefusedRescue) => void
}

/** So often a shard is asked for more because somebody has locked what it gave. */
const mostRounds = 10

/** So often a transaction is given up because of something that cannot be passed over. */
const mostWaits = 20

export function rescuing(dialect: Dialect, exchange: Exchanging, { monotonic, onRefused }: RescuingOptions): Rescuing {
  const { schema, now, skipLocked } = dialect
  const statements = rescueStatements(schema, now, skipLocked)
  const lookouts = lookout(dialect, monotonic)

  async function endExpired(x: Execution): Promise<number> {
    return (await x.execute(statements.sessions, [0])).length
  }

  /** Those that may have to be taken, but for those that are known to be locked. */
  async function pick(
    x: Execution,
    { shard, dead, limit }: Search,
    aside: ReadonlySet<string>,
  ): Promise<readonly Picked[]> {
    const found = await x.execute(statements.pick, [
      shard,
      JSON.stringify({ dead, most: limit + 1 + aside.size, since: lookouts.floor }),
    ])
    const picked = new Map<string, Picked>()
    for (const row of found) {
      const id = row['id'] as string
      const late = row['late'] === true
      // What lost its holder needs no deadline any more.
      const one = { id, session: row['session'] as string | null, token: Number(row['token']), late }
      if (!picked.has(id) && !aside.has(id)) picked.set(id, one)
    }
    return [...picked.values()]
  }

  async function rescueRuns(
    x: Execution,
    { shard, request }: Search,
    chosen: readonly Picked[],
    wants: Wants,
    way: Way,
  ): Promise<Judged & { readonly locked: readonly Run[] }> {
    // Once it is known that others have to hear of something, all are locked in one order; only then is anybody waited for.
    const isKnown = wants.ends.size > 0
    if (isKnown) for (const { id } of chosen) wants.runs.add(id)
    return exchange.perform(x, {
      end: 'rescue',
      wants,
      within: false,
      way,
      look: () => lock(x, shard, chosen, isKnown),
      decide: (books, { locked }, _made, guard) => {
        const places = new Map(chosen.map(({ id }, place) => [id, place]))
        const judged = { takenOver: [], ended: [], paused: [] }
        for (const run of locked) guard.decide(places.get(run.id) ?? 0, () => take(books, run, request, judged))
        return { ...judged, locked }
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

  function take(books: PostgresBooks, { id: runId, type, session }: Run, request: RescueRequest, judged: Lists): void {
    // As it is by now: its parent may have been ended just before it.
    const run = books.run(runId) as Run
    // Undo work has no bound on its time.
    if (session === null && run.status === 'cancelling') return
    const taken = session === null ? timeOut(run, request, books.now) : takeOver(run, request, books.now)
    rewriteRun(books, run, taken, null)
    if (taken.isConvicted) judged.paused.push(runId)
    const reason = taken.run.status === 'cancelled' ? 'cancelled' : taken.reason
    if (reason !== null) judged.ended.push({ runId, type, reason })
    else if (session !== null) judged.takenOver.push({ runId, type, session, crashes: Math.max(run.crashes, 1) })
  }

  /** One transaction of a shard: waits shortly for locks, then passes over what is locked, and says whom it left. */
  async function rescueSome(
    transactions: Transactions,
    search: Search,
    aside: Set<string>,
  ): Promise<Judged & { readonly more: boolean; readonly left: readonly string[] }> {
    const patient = skipLocked === ''
    let way: Way = 'wait'
    let most = search.limit
    for (let waits = 0; ;) {
      const wants = new Wants()
      let chosen: readonly Picked[] = []
      try {
        const work = async (x: Execution) => {
          const picked = await pick(x, search, aside)
          chosen = picked.slice(0, most)
          const more = picked.length > chosen.length
          if (chosen.length === 0) return { takenOver: [], ended: [], paused: [], more, left: [] }
          const { locked, ...judged } = await rescueRuns(x, search, chosen, wants, way)
          const got = new Set(locked.map(({ id }) => id))
          return { ...judged, more, left: chosen.flatMap(({ id }) => (got.has(id) ? [] : [id])) }
        }
        return await transactions.transaction('rescue.commit', work, { patient })
      } catch (error) {
        // A policy that refuses one row says as little of which it is as a lock that cannot be passed over.
        if (!isOfOneRow(error) && (patient || !hasMetLock(error))) throw error
        if (way === 'pass over') {
          const known = asideOf(error as HoldfastError)
          waits += known.length === 0 ? 1 : 0
          const isLast = waits > mostWaits
          if (isOfOneRow(error) && (isLast || chosen.length === 1)) noteRefusal(search.refusals, chosen, error)
          if (isLast) return { takenOver: [], ended: [], paused: [], more: false, left: ids(chosen) }
          for (const place of known) aside.add((chosen[place] as Picked).id)
          // Nobody knows which of them: fewer at once, until it is alone.
          if (known.length === 0 && chosen.length === 1) for (const { id } of chosen) aside.add(id)
          most = known.length > 0 || chosen.length === 1 ? search.limit : Math.ceil(chosen.length / 2)
        }
        way = 'pass over'
      }
    }
  }

  async function rescueShard(transactions: Transactions, search: Search): Promise<Taken> {
    const all: Lists = { takenOver: [], ended: [], paused: [] }
    const aside = new Set<string>()
    let { limit } = search
    for (let round = 1; ; round += 1) {
      const { takenOver, ended, paused, more, left } = await rescueSome(transactions, { ...search, limit }, aside)
      all.takenOver.push(...takenOver)
      all.ended.push(...ended)
      all.paused.push(...paused)
      limit -= takenOver.length + ended.length
      for (const id of left) aside.add(id)
      // If nothing but locked ones came, those behind them are to be had as well.
      const isDone = !more || left.length === 0 || limit <= 0 || round === mostRounds
      const hasTaken = all.takenOver.length + all.ended.length > 0
      if (isDone) return { ...all, more: more && (hasTaken || aside.size === 0), passedOver: aside.size > 0 }
    }
  }

  return {
    async rescue(transactions, request) {
      const seen = await lookouts.look(transactions, 'first')
      if (isQuiet(seen)) {
        const { next, suspects, now: time } = seen
        return { sessionsEnded: 0, takenOver: [], ended: [], paused: [], suspects, more: false, next, now: time }
      }
      // A transaction of its own: whoever was declared dead is so before anything is taken from it.
      const sessionsEnded = await transactions.transaction('rescue.sessions-commit', endExpired)
      const all: Taken[] = []
      let left = request.limit
      let isCut = false
      const living = await transactions.alone((x) => lookouts.living(x))
      const swept = new Set<string>()
      const refusals: Refusals = { runs: [], hasMore: false, error: null }
      for (const [shard, { holders, next }] of seen.shards.entries()) {
        // Also those who lived a moment ago: they may have been declared dead just now.
        const dead = [...new Set([...holders, ...seen.living.keys()])].filter((id) => !living.has(id))
        const isConcerned = dead.length > 0 || (next !== null && next <= seen.now)
        // The only shard is always looked at: little is lost, and time went by since the look.
        if (!isConcerned && dialect.shards > 1) continue
        isCut ||= left <= 0 && all.length > 0
        if (isCut) break
        const taken = await rescueShard(transactions, { shard, dead, request, limit: left, refusals })
        all.push(taken)
        for (const id of dead) swept.add(id)
        left -= taken.takenOver.length + taken.ended.length
      }
      if (refusals.error !== null) onRefused(refusals)
      const isPassedOver = all.some(({ passedOver }) => passedOver)
      const more = isCut || all.some((one) => one.more)
      const after = await lookouts.look(transactions, 'last')
      if (!more && !isPassedOver) lookouts.swept(swept)
      return {
        sessionsEnded,
        takenOver: all.flatMap(({ takenOver }) => takenOver),
        ended: all.flatMap(({ ended }) => ended),
        paused: all.flatMap(({ paused }) => paused),
        suspects: after.suspects,
        more,
        // What somebody had locked is there for the next look, soon.
        next: isPassedOver ? Math.min(after.next ?? after.now, after.now) : after.next,
        now: after.now,
      }
    },
    notice: (hints) => lookouts.notice(hints),
  }
}

/** What was taken, while it is being gathered. */
interface Lists {
  readonly takenOver: Rescued['takenOver'][number][]
  readonly ended: Rescued['ended'][number][]
  readonly paused: string[]
}

/** The run itself if it was alone; otherwise all that is known is that there are more. */
function noteRefusal(refusals: Refusals, chosen: readonly Picked[], error: unknown): void {
  refusals.error = error
  if (chosen.length === 1) refusals.runs.push(...ids(chosen))
  else refusals.hasMore = true
}

function ids(picked: readonly Picked[]): readonly string[] {
  return picked.map(({ id }) => id)
}

function isQuiet({ next, now, living, shards }: Outlook): boolean {
  return (next === null || next > now) && shards.every(({ holders }) => holders.every((id) => living.has(id)))
}

interface Statements {
  readonly sessions: Statement
  readonly pick: Statement
  readonly lock: Statement
  /** The same of what is locked already. */
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
