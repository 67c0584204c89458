// Leases due runs. A claim is one statement (`claim-statements.ts`) that begins where the last one ended (`claim-floors.ts`,
// `timed-floors.ts`) and looks as far as it has to (`claim-window.ts`). Runs whose time has come are first moved to the ready
// ones, by the claim that finds them.

import { placesOf } from '../../../core/rules/claims/claim-order.ts'
import { isOfOneRow } from '../../../core/errors/error.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Claimed, ClaimRequest, ClaimSelector, Fresh } from '../../../store.ts'
import { ClaimFloors, type WalkStart } from './claim-floors.ts'
import { resultsOf, sightOf } from './claim-results.ts'
import { ClaimOffset } from './claim-offset.ts'
import { ClaimWindow } from './claim-window.ts'
import { claimStatements, promotedAtOnce, type Choice } from './claim-statements.ts'
import { statement, type Dialect } from '../dialect.ts'
import type { Execution, Row, DetailedHint, Transactions } from '../execution.ts'
import { WalkPace } from './walk-pace.ts'
import { RefusedRuns } from '../exchange/refused-runs.ts'
import { commonOf, entryOf, leasedRunOf, runOf, timeOf } from '../schema/rows.ts'
import { shardOfRun } from '../schema/shards.ts'
import { rolledBack, withoutRefused } from '../commit/refused-items.ts'
import { TimedFloors, type TimedLook } from './timed-floors.ts'

/** A claim looks at most this many rounds for runs that a policy refuses: behind some of them there may be others. */
const mostRounds = 10

/** Every two seconds a claim begins at the front, unless that is slow: a claim of a hundred runs takes a few milliseconds. */
const walks = { leastMs: 2_000, cheapMs: 10 } as const

export interface ClaimQueries {
  /** Leases runs of one shard; `limit` of them at most. */
  claim(transactions: Transactions, shard: number, request: ClaimRequest): Promise<Claimed>
  /** Leases that run, if it is due. */
  claimByName(transactions: Transactions, runId: string, request: ClaimRequest): Promise<Claimed>
  /** A run may have come in before the place where the last claim ended. */
  notice(hints: readonly DetailedHint[]): void
}

interface Found extends Required<Claimed> {
  /** Some have come due and are not among the ready ones yet: nothing was leased, because they may go first. */
  readonly isDue: boolean
  readonly timed: TimedLook
  /** Others hold all that it reached, and there is more behind that. */
  readonly isShort: boolean
  /** It could have leased more: a type had more ready runs than its share of what was read. */
  readonly isUnfilled: boolean
}

/** A type with where its claim begins. */
interface Type extends ClaimSelector {
  readonly lease_ms: number | null
  readonly begin: WalkStart
}

export interface ClaimingOptions {
  readonly monotonic: () => number
  /** At least 0 and less than 1. */
  readonly random: () => number
  /** A policy of row-level security refuses this run to every claim: called when that is found out. */
  readonly onRefused: (runId: string, error: unknown) => void
}

/** How a claim looks at ready runs. */
interface Look {
  readonly again: boolean
  readonly each: 'share' | 'all'
  readonly isInTurn?: boolean
}

export function createClaimQueries(dialect: Dialect, { monotonic, random, onRefused }: ClaimingOptions): ClaimQueries {
  /** By the keys that are named: a claim with other keys may find runs before the place where these claims begin. */
  const floorsBy = new Map<string, ClaimFloors>()
  const timedFloors = new TimedFloors()
  const windows = { ready: new ClaimWindow(), isolated: new ClaimWindow() }
  const offsets = new ClaimOffset(random)
  const paces = new Map<number, WalkPace>()
  const statements = claimStatements(dialect)
  const time = statement([], `select ${dialect.now} as now, $1::smallint as shard`)
  /** Without SKIP LOCKED a claim waits for the transaction that has locked a run, and so never skips one. */
  const passesOver = dialect.skipLocked !== ''

  const refused = new RefusedRuns(monotonic)

  /** Which runs are meant by a claim with these keys; undefined if all are. */
  function choiceOf(keys: ClaimRequest['keys']): Choice | undefined {
    const without = refused.current
    if (keys === undefined && without.length === 0) return undefined
    return { ...(keys === undefined ? {} : { keys }), ...(without.length === 0 ? {} : { without }) }
  }

  function paceOf(shard: number): WalkPace {
    const known = paces.get(shard)
    if (known !== undefined) return known
    const walkPace = new WalkPace(monotonic, walks)
    paces.set(shard, walkPace)
    return walkPace
  }

  function floorsFor(keys: ClaimRequest['keys']): ClaimFloors {
    const name = JSON.stringify(keys ?? null)
    let floors = floorsBy.get(name)
    if (floors === undefined) floorsBy.set(name, (floors = new ClaimFloors(monotonic)))
    return floors
  }

  async function findApart(
    x: Execution,
    shard: number,
    { session, selectors, limit, keys }: ClaimRequest,
  ): Promise<Claimed> {
    const selected = distinct(selectors).map((one, of) => ({ ...one, of }))
    for (;;) {
      const window = windows.isolated.of(shard, limit)
      const values = [shard, session, limit, window, JSON.stringify(selected)]
      const choice = choiceOf(keys)
      if (choice !== undefined) values.push(JSON.stringify(choice))
      const rows = await x.execute(statements.isolated(choice !== undefined), values)
      const { now: time, found, most, next_due } = rows[0] as Row
      const runs = rows.filter((row) => row['id'] !== null).map(runOf)
      const isShort = passesOver && most !== 0 && runs.length === 0 && Number(found) >= window
      if (isShort && windows.isolated.widen(shard, window)) continue
      if (!isShort) windows.isolated.found(shard, Number(found) - runs.length, limit)
      const nextDue = next_due === null ? null : Number(next_due)
      return { runs, more: Number(found) > runs.length, nextDue, now: Number(time) }
    }
  }

  /**
   * `again`: due runs were moved already; those that still were not are locked by another transaction. `each`: how many of each
   * type are read. `isInTurn`: nothing is leased whose turn may not have come.
   */
  async function find(
    x: Execution,
    shard: number,
    request: ClaimRequest,
    { again, each, isInTurn = true }: Look,
  ): Promise<Found> {
    const { session, limit, keys } = request
    const floors = floorsFor(keys)
    const selectors = distinct(request.selectors)
    const offset = windows.ready.rounds(shard, offsets.next(shard, Math.max(limit, 1)), selectors.length)
    const reach = selectors.length === 1 ? windows.ready.ofOne(shard, limit) : windows.ready.ofEach(shard, limit, each)
    const window = offset + reach
    const walkPace = paceOf(shard)
    const at = walkPace.isCut || dialect.isSpread ? Number((await x.execute(time, [shard]))[0]?.['now']) : null
    const cutAt = walkPace.isCut ? at : null
    const how = { isFront: walkPace.isDue, mayWalk: walkPace.isRested, cutAt }
    const types = selectors.map((one): Type => ({ ...one, begin: floors.begin(shard, one, how) }))
    const timed = timedFloors.look(shard, selectors, how)
    const places = placesOf(selectors)
    const selected = types.map(({ begin, ...one }, of) => {
      return { ...one, ...begin.place, of, type_at: places.get(one.type) as number }
    })
    const lease = statements.lease({
      shard,
      session,
      limit,
      window,
      offset,
      again,
      isInTurn,
      selectors: selected,
      choice: choiceOf(keys),
      timed,
    })
    const isWalk = timed.aheadMs === null || types.some(({ begin }) => begin.from === 'front')
    const values = dialect.isSpread ? [...lease.values, at] : lease.values
    const ask = (): Promise<readonly Row[]> => x.execute(lease.statement, values)
    const answer = await (isWalk ? walkPace.walk(ask, how.isFront) : walkPace.beside(ask)).catch((error: unknown) => {
      floors.failed(shard, types)
      timedFloors.failed(shard, selectors)
      throw error
    })
    const rows = answer.toSorted((one, other) => Number(one['nth']) - Number(other['nth']))
    const first = rows[0] as Row
    const due = first['next_due'] === null ? null : Number(first['next_due'])
    const now = Number(first['now'])
    const nextDue = timedFloors.saw(shard, selectors, timed, { due, now })
    const runs: Run[] = []
    const fresh: Fresh[] = []
    const common = commonOf({ shard, session, only: selectors.length === 1 ? selectors[0] : undefined })
    for (const row of rows) {
      if (row['id'] === null) continue
      const run = leasedRunOf(row, common)
      runs.push(run)
      // Its only entry, and so the seq of the run is that of the entry.
      if (row['kind'] !== null) fresh.push({ runId: run.id, entry: entryOf(row) })
    }
    const found = Number(first['found'])
    const results = resultsOf(rows, types)
    const isCut = results.some(({ picked }) => picked >= window)
    // Runs that were picked and not leased are still there, or another claim was quicker, and there may be more behind them.
    const more = found > runs.length || isCut
    // Nothing was looked at if it leased nothing because some have come due, or because its session has ended.
    const hasLooked = first['most'] !== 0
    const isShort = passesOver && hasLooked && runs.length === 0 && isCut
    const skipped = Number(first['skipped'])
    // What it had to skip, others have: no look that reads more of each type would get it.
    const isUnfilled = hasLooked && runs.length + skipped < limit && isCut && reach <= limit
    if (hasLooked) {
      floors.saw(
        shard,
        types,
        results.map((one) => sightOf(one, window)),
        now,
      )
      windows.ready.sawTypes(shard, results.filter(({ picked }) => picked > 0).length)
      if (!isShort) windows.ready.found(shard, skipped, limit)
      offsets.skipped(shard, skipped, limit)
    } else floors.failed(shard, types)
    return { runs, fresh, more, nextDue, now, isDue: nextDue !== null && nextDue <= now, timed, isShort, isUnfilled }
  }

  /**
   * Looks again, at as many runs of each type as fill the claim, because a type had more than its share. Those that the first
   * look has leased are committed, and must be known to their holder if this one fails.
   */
  async function fill(db: Transactions, shard: number, request: ClaimRequest, found: Found): Promise<Found> {
    const { runs, fresh } = found
    const rest = { ...request, limit: request.limit - runs.length }
    try {
      const second = await db.alone((x) => find(x, shard, rest, { again: true, each: 'all' }))
      const isShort = second.isShort && runs.length === 0
      return { ...second, runs: [...runs, ...second.runs], fresh: [...fresh, ...second.fresh], isShort }
    } catch (error) {
      if (runs.length === 0) throw error
      return found
    }
  }

  async function promote(x: Execution, shard: number, request: ClaimRequest, { since }: TimedLook): Promise<void> {
    const types = JSON.stringify(distinct(request.selectors))
    const choice = choiceOf(undefined)
    const values = [shard, types, since, ...(choice === undefined ? [] : [JSON.stringify(choice)])]
    for (const row of await x.execute(statements.promote(choice !== undefined), values)) {
      const type = { type: row['type'] as string, version: Number(row['version']) }
      // Claims with these or other keys may find it before the place where they begin.
      const place = { rank: Number(row['rank']), due: Number(row['due']) }
      for (const floors of floorsBy.values()) floors.lower(shard, type, place)
    }
  }

  /** When the next run comes due that is not due yet; null also if that is not known. */
  async function following(
    db: Transactions,
    shard: number,
    { selectors }: ClaimRequest,
    { runs }: Found,
  ): Promise<number | null> {
    try {
      const [row] = await db.alone((x) => x.execute(statements.next, [shard, JSON.stringify(distinct(selectors))]))
      return timeOf(row?.['due'])
    } catch (error) {
      if (runs.length === 0) throw error
      return null
    }
  }

  /** Leases ready runs, after it has made those ready that have come due. */
  async function look(x: Execution, shard: number, request: ClaimRequest): Promise<Found> {
    const found = await find(x, shard, request, { again: false, each: 'share' })
    if (!found.isDue) return found
    await promote(x, shard, request, found.timed)
    return find(x, shard, request, { again: true, each: 'share' })
  }

  /** Each look is committed by itself, also where a pooler makes every call a transaction. */
  async function claim(db: Transactions, shard: number, request: ClaimRequest): Promise<Claimed> {
    if (request.isolated === true) return db.alone((x) => findApart(x, shard, request))
    let found = await db.alone((x) => look(x, shard, request))
    if (found.isUnfilled) found = await fill(db, shard, request, found)
    const again = (how: Look): Promise<Found> => db.alone((x) => find(x, shard, request, how))
    while (found.isShort && windows.ready.widen(shard, windows.ready.of(shard, request.limit))) {
      found = await again({ again: true, each: 'all' })
    }
    if (found.isShort && request.selectors.length > 1)
      found = await again({ again: true, each: 'all', isInTurn: false })
    const { runs, fresh, more, nextDue, now: time, isDue } = found
    // Runs that have come due and were not moved are locked by another transaction: there is more, and others come due behind
    // them.
    const claimed = isDue
      ? { runs, more: true, nextDue: await following(db, shard, request, found), now: time }
      : { runs, more, nextDue, now: time }
    return fresh.length === 0 ? claimed : { ...claimed, fresh }
  }

  /**
   * A policy of row-level security refuses to change one of the runs that a claim picked, and so the whole claim: the
   * database does not say which. The refused runs are searched among the candidates of the claim, and left out for a while.
   * False if there are none.
   */
  async function findRefused(transactions: Transactions, shard: number, request: ClaimRequest): Promise<boolean> {
    const { session, limit, selectors, keys, isolated = false } = request
    const types = JSON.stringify(distinct(selectors))
    let isFound = false
    for (const readiness of isolated ? (['isolated'] as const) : (['timed', 'ready'] as const)) {
      // As far as a claim looks: other transactions may have locked some runs in front of the refused ones.
      const window = readiness === 'timed' ? promotedAtOnce : windows[readiness].of(shard, limit)
      const values = [shard, types, window, JSON.stringify(choiceOf(keys) ?? {})]
      const rows = await transactions.alone((x) => x.execute(statements.candidates[readiness], values))
      const ids = rows.map((row) => row['id'] as string)
      const probe = (some: readonly string[]): Promise<void> =>
        rolledBack(transactions, (x) => x.execute(statements.probe, [shard, session, JSON.stringify(some)]))
      await withoutRefused(ids, probe, (id, error) => {
        isFound = true
        if (refused.add(id)) onRefused(id, error)
      })
    }
    return isFound
  }

  return {
    async claim(transactions, shard, request) {
      for (let rounds = 1; ; rounds += 1) {
        try {
          const claimed = await claim(transactions, shard, request)
          if (refused.hasAny) for (const { id } of claimed.runs) refused.forget(id)
          return claimed
        } catch (error) {
          if (!isOfOneRow(error) || rounds === mostRounds) throw error
          // It is searched from the first run on: a claim that began further on met others.
          const isElsewhere = offsets.reset(shard)
          if (!(await findRefused(transactions, shard, request)) && !isElsewhere) throw error
        }
      }
    },
    async claimByName(transactions, runId, { session, selectors, limit, keys }) {
      const shard = shardOfRun(dialect, runId)
      const most = shard === undefined ? 0 : limit
      const choice = keys === undefined ? null : JSON.stringify(keys)
      const values = [shard ?? 0, session, runId, most, JSON.stringify(distinct(selectors)), choice]
      const rows = await transactions.alone((x) => x.execute(statements.named, values))
      const runs = rows.filter((row) => row['id'] !== null).map(runOf)
      return { runs, more: false, nextDue: null, now: Number(rows[0]?.['now']) }
    },
    notice(hints) {
      for (const floors of floorsBy.values()) floors.notice(hints)
      timedFloors.notice(hints)
    },
  }
}

/** One for each type and version: the first that names it. */
function distinct(
  selectors: readonly ClaimSelector[],
): readonly (ClaimSelector & { readonly lease_ms: number | null })[] {
  const seen = new Set<string>()
  const first: (ClaimSelector & { readonly lease_ms: number | null })[] = []
  for (const { type, version, leaseMs } of selectors) {
    if (seen.size === seen.add(`${version} ${type}`).size) continue
    first.push({ type, version, lease_ms: leaseMs ?? null })
  }
  return first
}
