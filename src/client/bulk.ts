// The same for many runs at once: all that match a filter, page by page. A preview only says how many that would be.

import { isTerminal, runStatuses, type Run, type RunStatus } from '../core/run.ts'
import type { SteerRequest } from '../core/steering.ts'
import { checkOptions } from '../core/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import { adminOf, countRuns, filterOf, type Filter } from './finding.ts'
import { cancelRequest, retryRequests, steerAll, type CancelOptions, type NoteOptions } from './steering.ts'

export interface BulkOptions {
  /** Only counts what matches. @default false */
  readonly preview?: boolean
}

export interface BulkOutcome {
  /** How many runs matched. A preview counts no further than to 10,000. */
  readonly matched: number
  readonly isCapped: boolean
  /** How many were changed, or will be by their holders. */
  readonly changed: number
  /** How many matched and could not be changed: they had ended meanwhile, or their key is taken. */
  readonly skipped: number
}

const runsAtOnce = 200
const liveStatuses = runStatuses.filter((status) => !isTerminal(status))

export async function cancelRuns(
  engine: Engine,
  filter: Filter,
  options: CancelOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['mode', 'reason', 'preview'], 'cancelMany()')
  const { preview = false, ...cancel } = options
  const steer = cancelRequest(cancel)
  return inBulk(engine, narrowed(filter, liveStatuses), preview, async (runs) =>
    runs.map(({ id }) => ({ ...steer, id: engine.transitionId(), runId: id })),
  )
}

export async function retryRuns(
  engine: Engine,
  filter: Filter,
  options: NoteOptions & BulkOptions = {},
): Promise<BulkOutcome> {
  checkOptions(options, ['note', 'preview'], 'retryMany()')
  const { preview = false, ...retry } = options
  return inBulk(engine, narrowed(filter, ['failed']), preview, (runs) => retryRequests(engine, runs, retry))
}

async function inBulk(
  engine: Engine,
  filter: Filter,
  preview: boolean,
  requestsFor: (runs: readonly Run[]) => Promise<readonly SteerRequest[]>,
): Promise<BulkOutcome> {
  if (preview) {
    const { count, isCapped } = await countRuns(engine, filter)
    return { matched: count, isCapped, changed: 0, skipped: 0 }
  }
  const wanted = filterOf(filter)
  engine.assertOpen()
  const admin = adminOf(engine)
  let [matched, changed] = [0, 0]
  for (let after: string | undefined; ;) {
    const runs = await admin.find(wanted, { limit: runsAtOnce, ...(after === undefined ? {} : { after }) })
    after = runs.at(-1)?.id
    if (after === undefined) return { matched, isCapped: false, changed, skipped: matched - changed }
    matched += runs.length
    const answers = await steerAll(engine, await requestsFor(runs))
    changed += answers.filter(({ outcome }) => outcome === 'done' || outcome === 'wished').length
  }
}

/** The filter, and of the statuses only those to which this can be done. */
function narrowed(filter: Filter, statuses: readonly RunStatus[]): Filter {
  const asked = filter.status === undefined ? statuses : [filter.status].flat()
  return { ...filter, status: asked.filter((status) => statuses.includes(status)) }
}
