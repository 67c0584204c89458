// The same for many runs at once: all that match a filter, page by page. A preview only says how many that would be.
// A filter that chooses nothing is more often a variable that was undefined than a wish for every run there is: it is refused
// unless the call says `all`.

import { HoldfastError } from '../core/error.ts'
import { isTerminal, runStatuses, type PauseReason, type Run, type RunStatus } from '../core/run.ts'
import type { SteerRequest } from '../core/steering.ts'
import { checkOptions, shown } from '../core/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { noMail } from '../engine/mail.ts'
import { abortable, checkAbortSignal, type AbortOption } from './abort-option.ts'
import { adminOf, countRuns, filterOf, type Filter } from './finding.ts'
import {
  cancelRequest,
  resumeRequests,
  retryRequests,
  steerAll,
  type CancelOptions,
  type NoteOptions,
} from './steering.ts'

export interface BulkOptions {
  /** Only counts what matches. @default false */
  readonly preview?: boolean
  /** Means every run: it goes with the filter `{}`, which is refused without it. @default false */
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
}

const runsAtOnce = 200
const liveStatuses = runStatuses.filter((status) => !isTerminal(status))

export async function cancelRuns(
  engine: Engine,
  filter: Filter,
  options: CancelOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['mode', 'reason', 'preview', 'all', 'abortSignal'], 'cancelMany()')
  const { preview: _preview, all, ...cancel } = options
  const steer = cancelRequest(cancel)
  return inBulk(engine, narrowed(meant(engine, filter, all, 'cancelMany()'), liveStatuses), options, async (runs) =>
    runs.map(({ id }) => ({ ...steer, id: engine.transitionId(), runId: id })),
  )
}

export async function retryRuns(
  engine: Engine,
  filter: Filter,
  options: NoteOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['note', 'preview', 'all', 'abortSignal'], 'retryMany()')
  const { preview: _preview, all, ...retry } = options
  const failed = narrowed(meant(engine, filter, all, 'retryMany()'), ['failed'])
  return inBulk(engine, failed, options, (runs) => retryRequests(engine, runs, retry))
}

export interface ResumeManyOptions extends NoteOptions, BulkOptions {
  /** Only runs that were paused for this reason. @default any */
  readonly reason?: PauseReason | 'drift' | 'unreadable'
}

export async function resumeRuns(
  engine: Engine,
  filter: Filter,
  options: ResumeManyOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['note', 'preview', 'all', 'reason', 'abortSignal'], 'resumeMany()')
  const { reason, note, all } = options
  const paused = narrowed(meant(engine, filter, all, 'resumeMany()'), ['paused'])
  const chosen = reason === undefined ? undefined : (runs: readonly Run[]) => pausedFor(engine, runs, reason)
  const resumptions = resumeRequests(engine, note)
  const requests = async (runs: readonly Run[]): Promise<readonly SteerRequest[]> => resumptions(runs)
  return inBulk(engine, paused, options, requests, chosen)
}

/** Those of paused runs whose last entry gives this reason. */
async function pausedFor(engine: Engine, runs: readonly Run[], reason: string): Promise<readonly Run[]> {
  const last = runs.map(({ id, seq }) => ({ runId: id, after: seq - 1, limit: 1, mail: noMail }))
  const loaded = await engine.store.load(last)
  return runs.filter((_, index) => {
    const entry = loaded[index]?.entries[0]
    return entry?.kind === 'paused' && entry.meta.reason === reason
  })
}

async function inBulk(
  engine: Engine,
  filter: Filter,
  options: BulkOptions & AbortOption,
  requestsFor: (runs: readonly Run[]) => Promise<readonly SteerRequest[]>,
  chosen?: (runs: readonly Run[]) => Promise<readonly Run[]>,
): Promise<BulkOutcome> {
  const { preview = false } = options
  const signal = checkAbortSignal(options.abortSignal)
  const inTime = <Value>(work: () => Promise<Value>): Promise<Value> => abortable('This call', signal, work)
  if (preview && chosen === undefined) {
    const { abortSignal } = options
    const { count, isCapped } = await countRuns(engine, filter, abortSignal === undefined ? {} : { abortSignal })
    return { matched: count, isCapped, changed: 0, skipped: 0 }
  }
  const wanted = filterOf(filter, engine.limits)
  engine.assertOpen()
  const admin = adminOf(engine)
  let [matched, changed] = [0, 0]
  const count = (answers: readonly { readonly outcome: string }[]): void => {
    changed += answers.filter(({ outcome }) => outcome === 'done' || outcome === 'wished').length
  }
  /** What somebody else has locked comes last: the pages behind it need not wait for that. */
  const locked: SteerRequest[] = []
  for (let after: string | undefined; ;) {
    const page = { limit: runsAtOnce, ...(after === undefined ? {} : { after }) }
    const found = await inTime(() => admin.find(wanted, page))
    after = found.at(-1)?.id
    if (after === undefined) break
    const runs = chosen === undefined ? found : await inTime(() => chosen(found))
    matched += runs.length
    if (preview) continue
    const requests = await inTime(() => requestsFor(runs))
    const answers = await steerAll(engine, requests, options, { waitsForLocks: false })
    count(answers)
    requests.forEach((request, at) => answers[at]?.outcome === 'busy' && locked.push(request))
  }
  if (locked.length > 0) count(await steerAll(engine, locked, options))
  return { matched, isCapped: false, changed, skipped: preview ? 0 : matched - changed }
}

/** The filter, unless it chooses nothing by mistake. `deleted` alone chooses nothing: it only says where to look. */
function meant(engine: Engine, filter: Filter, all: unknown, where: string): Filter {
  if (all !== undefined && typeof all !== 'boolean') {
    throw new HoldfastError('INVALID_OPTION', `${where}: all is true or false. Got ${shown(all)}.`)
  }
  filterOf(filter, engine.limits)
  const { deleted: _deleted, ...rest } = filter
  const isEmpty = Object.values(rest).every((value) => value === undefined)
  if (isEmpty === (all ?? false)) return filter
  throw new HoldfastError(
    'INVALID_OPTION',
    isEmpty
      ? `${where}: an empty filter matches every run. Say { all: true } if that is meant.`
      : `${where}: { all: true } means every run and goes with the filter {}. Leave out one of the two.`,
  )
}

/** The filter, and of the statuses only those to which this can be done. */
function narrowed(filter: Filter, statuses: readonly RunStatus[]): Filter {
  const asked = filter.status === undefined ? statuses : [filter.status].flat()
  return { ...filter, status: asked.filter((status) => statuses.includes(status)) }
}
