// Commands for many runs at once: all that match a filter, page by page. A preview counts them and shows the first. An empty filter
// is more often a variable that was undefined than a request for every run: it is refused unless the call says `all`.

import { HoldfastError } from '../../core/errors/error.ts'
import { isTerminal, runStatuses, type PauseReason, type Run } from '../../core/model/run.ts'
import type { Control } from '../../core/rules/control.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { lastEntryRequests } from '../../engine/store/journal-pages.ts'
import { filterOf, type Filter } from '../read/find.ts'
import { inBulk, type Bulk, type BulkOptions, type BulkOutcome } from './bulk-pages.ts'
import {
  cancelRequest,
  pauseRequests,
  removeRequest,
  resumeRequests,
  retryRequests,
  type CancelOptions,
  type NoteOptions,
  type PauseOptions,
  type RemoveOptions,
} from './run-control.ts'

const liveStatuses = runStatuses.filter((status) => !isTerminal(status))

/** @internal */
export async function cancelRuns(
  engine: Engine,
  filter: Filter,
  options: CancelOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['mode', 'reason', 'preview', 'all', 'abortSignal'], 'cancelMany()')
  const { preview: _preview, all, ...cancel } = options
  const control = cancelRequest(cancel)
  const bulk = {
    filter: meant(engine, filter, all, 'cancelMany()'),
    statuses: liveStatuses,
    requests: allAlike(engine, control),
  }
  return inBulk(engine, bulk, options)
}

/** The same command for each run. */
function allAlike(engine: Engine, control: Control): Bulk['requests'] {
  return async (runs) => runs.map(({ id }) => ({ ...control, id: engine.transitionId(), runId: id }))
}

/** @internal */
export async function retryRuns(
  engine: Engine,
  filter: Filter,
  options: NoteOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['note', 'preview', 'all', 'abortSignal'], 'retryMany()')
  const { preview: _preview, all, ...retry } = options
  const bulk: Bulk = {
    filter: meant(engine, filter, all, 'retryMany()'),
    statuses: ['failed'],
    requests: (runs) => retryRequests(engine, runs, retry),
  }
  return inBulk(engine, bulk, options)
}

/** A run that is paused already, or being cancelled, cannot be paused. */
const pausableStatuses = liveStatuses.filter((status) => status !== 'paused' && status !== 'cancelling')

/** @internal */
export async function pauseRuns(
  engine: Engine,
  filter: Filter,
  options: PauseOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['reason', 'note', 'preview', 'all', 'abortSignal'], 'pauseMany()')
  const { preview: _preview, all, ...pause } = options
  const pauses = pauseRequests(engine, pause)
  const bulk: Bulk = {
    filter: meant(engine, filter, all, 'pauseMany()'),
    statuses: pausableStatuses,
    requests: async (runs) => pauses(runs),
  }
  return inBulk(engine, bulk, options)
}

/** @internal */
export async function removeRuns(
  engine: Engine,
  filter: Filter,
  options: RemoveOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['reason', 'preview', 'all', 'abortSignal'], 'removeMany()')
  const { preview: _preview, all, ...remove } = options
  const control = removeRequest(remove)
  const wanted = meant(engine, filter, all, 'removeMany()')
  if (wanted.deleted === true) {
    const message = 'removeMany(): { deleted: true } matches runs that are removed already. Leave it out.'
    throw new HoldfastError('INVALID_OPTION', message)
  }
  return inBulk(engine, { filter: wanted, requests: allAlike(engine, control) }, options)
}

export interface ResumeManyOptions extends NoteOptions, BulkOptions {
  /** Only runs that were paused for this reason. @default any */
  readonly reason?: PauseReason | 'drift' | 'unreadable'
}

/** @internal */
export async function resumeRuns(
  engine: Engine,
  filter: Filter,
  options: ResumeManyOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['note', 'preview', 'all', 'reason', 'abortSignal'], 'resumeMany()')
  const { reason, note, all } = options
  const resumptions = resumeRequests(engine, note)
  const bulk: Bulk = {
    filter: meant(engine, filter, all, 'resumeMany()'),
    statuses: ['paused'],
    requests: async (runs) => resumptions(runs),
    ...(reason === undefined ? {} : { chosen: (runs: readonly Run[]) => pausedFor(engine, runs, reason) }),
  }
  return inBulk(engine, bulk, options)
}

/** Those of paused runs whose last entry gives this reason. */
async function pausedFor(engine: Engine, runs: readonly Run[], reason: string): Promise<readonly Run[]> {
  const loaded = await engine.store.load(lastEntryRequests(runs))
  return runs.filter((_, index) => {
    const entry = loaded[index]?.entries[0]
    return entry?.kind === 'paused' && entry.meta.reason === reason
  })
}

/** The filter. Throws INVALID_OPTION if it is empty without `all`; `deleted` alone does not narrow it. */
function meant(engine: Engine, filter: Filter, all: unknown, where: string): Filter {
  if (all !== undefined && typeof all !== 'boolean') {
    throw new HoldfastError('INVALID_OPTION', `${where}: all is true or false. Got ${shown(all)}.`)
  }
  filterOf(filter, engine)
  const { deleted: _deleted, ...rest } = filter
  const isEmpty = Object.values(rest).every((value) => value === undefined)
  if (isEmpty === (all ?? false)) return filter
  throw new HoldfastError(
    'INVALID_OPTION',
    isEmpty
      ? `${where}: an empty filter matches every run. Say { all: true } in the second argument if that is meant.`
      : `${where}: { all: true } means every run and goes with the filter {}. Leave out one of the two.`,
  )
}
