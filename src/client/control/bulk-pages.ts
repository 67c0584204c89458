// Controls all runs that match a filter, page by page. Runs that another transaction has locked come last, and a run that has moved
// on since its page was read is read again. A preview changes nothing.

import { runStatuses, type Run, type RunStatus } from '../../core/model/run.ts'
import type { ControlResult, ControlCommand } from '../../core/rules/control.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Busy } from '../../store.ts'
import { abortable, checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import { countRuns, filterOf, listed, type Filter } from '../read/find.ts'
import type { RunView } from '../read/run-view.ts'
import { controlAll } from './run-control.ts'

export interface BulkOptions {
  /** Changes nothing: counts the runs that match, and shows the first of them. @default false */
  readonly preview?: boolean
  /** Selects every run: goes with the filter `{}`, which is refused without it. @default false */
  readonly all?: boolean
}

export interface BulkOutcome {
  /** How many runs matched. A preview counts no further than to 10,000. */
  readonly matched: number
  readonly isCapped: boolean
  /** How many were changed, or will be by their holders. */
  readonly changed: number
  /** How many matched and could not be changed: they had ended meanwhile, their key is taken, or they are locked. */
  readonly skipped: number
  /** Only of a preview: the first runs that match, newest first and ten at most. */
  readonly first?: readonly RunView[]
}

const runsAtOnce = 200
const mostShown = 10

/** A command, and the runs that it is for. */
export interface Bulk {
  readonly filter: Filter
  /** The statuses in which a run takes the command. @default any */
  readonly statuses?: readonly RunStatus[]
  readonly requests: (runs: readonly Run[]) => Promise<readonly ControlCommand[]>
  /** The runs of a page that the command is for. @default all */
  readonly chosen?: (runs: readonly Run[]) => Promise<readonly Run[]>
}

type InTime = <Value>(work: () => Promise<Value>) => Promise<Value>

/** @internal */
export async function inBulk(engine: Engine, bulk: Bulk, options: BulkOptions & AbortOption): Promise<BulkOutcome> {
  const signal = checkAbortSignal(options.abortSignal)
  const inTime: InTime = (work) => abortable('This call', signal, work)
  if (options.preview === true) return previewed(engine, bulk, options, inTime)
  const tally = new Tally()
  for await (const runs of pagesOf(engine, bulk, inTime)) {
    tally.matched += runs.length
    const requests = await inTime(() => bulk.requests(runs))
    tally.add(requests, await controlAll(engine, requests, options, { waitsForLocks: false }))
  }
  for (let look = 1; tally.moved.length > 0 && look <= looks; look += 1) {
    const runs = await inTime(() => stillMeant(engine, bulk, tally.takeMoved()))
    const requests = await inTime(() => bulk.requests(runs))
    tally.add(requests, await controlAll(engine, requests, options, { waitsForLocks: false }))
  }
  // Last, so that no page waits for a run that another transaction has locked.
  if (tally.locked.length > 0) tally.add([], await controlAll(engine, tally.locked, options))
  const { matched, changed } = tally
  return { matched, isCapped: false, changed, skipped: matched - changed }
}

/** The answers of the runs so far. */
class Tally {
  matched = 0
  changed = 0
  /** Commands for runs that another transaction has locked. */
  readonly locked: ControlCommand[] = []
  /** Runs that have moved on since their page was read: their note was encrypted for an entry that has another place now. */
  moved: string[] = []

  add(requests: readonly ControlCommand[], answers: readonly (ControlResult | Busy)[]): void {
    for (const [at, answer] of answers.entries()) {
      const request = requests[at]
      if (answer.outcome === 'done' || answer.outcome === 'requested') this.changed += 1
      else if (request === undefined) continue
      else if (answer.outcome === 'busy') this.locked.push(request)
      else if (answer.outcome === 'refused' && answer.reason === 'changed') this.moved.push(request.runId)
    }
  }

  takeMoved(): readonly string[] {
    return this.moved.splice(0)
  }
}

/** How often a run is read again that moves on while it is controlled. */
const looks = 5

/** Those of the runs that have moved on whose status still takes the command. */
async function stillMeant(engine: Engine, bulk: Bulk, ids: readonly string[]): Promise<readonly Run[]> {
  const { status = runStatuses } = narrowed(bulk.filter, bulk.statuses)
  const statuses = [status].flat()
  const wanted: Run[] = []
  for (let at = 0; at < ids.length; at += runsAtOnce) {
    const found = await engine.store.get(ids.slice(at, at + runsAtOnce))
    const same = found.filter(
      (run): run is Run => run !== undefined && run.deletedAt === null && statuses.includes(run.status),
    )
    wanted.push(...(bulk.chosen === undefined ? same : await bulk.chosen(same)))
  }
  return wanted
}

/** The runs that the command is for, page by page. */
async function* pagesOf(engine: Engine, bulk: Bulk, inTime: InTime): AsyncGenerator<readonly Run[]> {
  const { chosen } = bulk
  const wanted = filterOf(narrowed(bulk.filter, bulk.statuses), engine)
  engine.assertOpen()
  const admin = adminOf(engine)
  for (let after: string | undefined; ;) {
    const page = { limit: runsAtOnce, ...(after === undefined ? {} : { after }) }
    const found = await inTime(() => admin.find(wanted, page))
    after = found.at(-1)?.id
    if (after === undefined) return
    yield chosen === undefined ? found : await inTime(() => chosen(found))
  }
}

async function previewed(
  engine: Engine,
  bulk: Bulk,
  { abortSignal }: AbortOption,
  inTime: InTime,
): Promise<BulkOutcome> {
  const first: Run[] = []
  let matched = 0
  for await (const runs of pagesOf(engine, bulk, inTime)) {
    first.push(...runs.slice(0, mostShown - first.length))
    matched += runs.length
    // Without a choice within pages the store counts, which is faster than reading them.
    if (bulk.chosen === undefined) break
  }
  const shown = { changed: 0, skipped: 0, first: await inTime(() => listed(engine, first)) }
  if (bulk.chosen !== undefined) return { matched, isCapped: false, ...shown }
  const filter = narrowed(bulk.filter, bulk.statuses)
  const { count, isCapped } = await countRuns(engine, filter, abortSignal === undefined ? {} : { abortSignal })
  return { matched: count, isCapped, ...shown }
}

/** The filter, with only those of its statuses that take the command. */
function narrowed(filter: Filter, statuses: readonly RunStatus[] | undefined): Filter {
  if (statuses === undefined) return filter
  const chosen = filter.status === undefined ? statuses : [filter.status].flat()
  return { ...filter, status: chosen.filter((status) => statuses.includes(status)) }
}
