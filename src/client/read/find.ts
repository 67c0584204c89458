// Finds runs by a filter, in pages, and counts them.

import { HoldfastError } from '../../core/errors/error.ts'
import { checkBatch } from '../../core/definition/limits.ts'
import { runStatuses, type Run, type RunStatus } from '../../core/model/run.ts'
import { checkOptions, didYouMean, shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { lastEntryRequests } from '../../engine/store/journal-pages.ts'
import { adminOf } from '../../engine/store/store-admin.ts'
import type { InvariantCheck, RunFilter, StoreAdmin } from '../../store.ts'
import { abortable, reading, type AbortOption } from '../abort-option.ts'
import { checkRunCursor, checkWhole, mostOnPage } from './cursor.ts'
import { idOf, type RunReference } from '../run-reference.ts'
import { storedKey, warnOfInstance } from '../stored-key.ts'
import { listedView, type RunView } from './run-view.ts'

/** Everything that is given must match; of a list, any of its members. */
export interface Filter {
  readonly ids?: readonly RunReference[]
  readonly type?: string | readonly string[]
  /** `billing.` matches every type that begins with it. */
  readonly typePrefix?: string
  readonly status?: RunStatus | readonly RunStatus[]
  /**
   * The business key. With one `type` whose workflow is registered here, the value of its `unique` field is enough; otherwise name
   * the field, too: `orderId::42`.
   */
  readonly key?: string
  readonly idempotencyKey?: string
  readonly tag?: string
  readonly version?: number
  /** The run that asked for them. */
  readonly parent?: RunReference
  /** Created at this time or later, by the clock of the process that made the id of the run: the id carries that time. */
  readonly createdFrom?: Date
  /** Created before this time, by the same clock. */
  readonly createdBefore?: Date
  /** Those that were removed, and no others. @default false */
  readonly deleted?: boolean
}

export interface FindOptions extends Filter, AbortOption {
  /** How many on one page, at most 200. @default 50 */
  readonly limit?: number
  /** What the page before gave as `next`. */
  readonly after?: string
}

export interface RunPage {
  /** Newest first. */
  readonly runs: readonly RunView[]
  /** Where the next page begins; null if this is the last. */
  readonly next: string | null
}

export interface CountOptions extends AbortOption {
  /** How far to count. @default 10_000 */
  readonly atMost?: number
}

export interface CountResult {
  readonly count: number
  /** There are more than were counted. */
  readonly isCapped: boolean
}

const filterNames = [
  'ids',
  'type',
  'typePrefix',
  'status',
  'key',
  'idempotencyKey',
  'tag',
  'version',
  'parent',
  'createdFrom',
  'createdBefore',
  'deleted',
]
const optionsElsewhere = {
  all: 'It is an option of cancelMany and its siblings, and belongs in their second argument: removeMany({}, { all: true }).',
}
const countedAtMost = 10_000
/** The most that the column of a database holds. */
const highestVersion = 2 ** 31 - 1

/** @internal */
export async function findRuns(engine: Engine, options: FindOptions = {}): Promise<RunPage> {
  checkOptions(options, [...filterNames, 'limit', 'after', 'abortSignal'], 'find()')
  const { limit = 50, after, abortSignal, ...filter } = options
  checkWhole(limit, 'find({ limit })', { least: 1, most: mostOnPage })
  if (after !== undefined) checkRunCursor(after, 'find({ after })')
  engine.assertOpen()
  const admin = adminOf(engine)
  // One more than is asked for says whether there is another page.
  const page = { limit: limit + 1, ...(after === undefined ? {} : { after }) }
  const wanted = filterOf(filter, engine)
  return abortable('find()', abortSignal, async () => {
    const found = await admin.find(wanted, page)
    const { key, type } = filter
    if (found.length === 0 && key !== undefined && typeof type === 'string') warnOfInstance(engine, type, key)
    return pageOf(engine, found, limit)
  })
}

async function pageOf(engine: Engine, found: readonly Run[], limit: number): Promise<RunPage> {
  const runs = found.slice(0, limit)
  return { runs: await listed(engine, runs), next: found.length > limit ? (runs.at(-1)?.id ?? null) : null }
}

/** Runs as they stand in a list, with the error or the pause of those that have one. @internal */
export async function listed(engine: Engine, runs: readonly Run[]): Promise<readonly RunView[]> {
  const ended = runs.filter(({ status }) => status === 'failed' || status === 'paused')
  const loaded = await engine.store.load(lastEntryRequests(ended))
  const last = new Map(ended.map(({ id }, index) => [id, loaded[index]?.entries[0]]))
  return Promise.all(runs.map((run) => listedView(run, last.get(run.id), engine.payloads)))
}

/** @internal */
export async function countRuns(engine: Engine, filter: Filter = {}, options: CountOptions = {}): Promise<CountResult> {
  checkOptions(options, ['atMost', 'abortSignal'], 'count()')
  const { atMost = countedAtMost } = options
  checkWhole(atMost, 'count({ atMost })', { least: 1, most: Number.MAX_SAFE_INTEGER - 1 })
  const wanted = filterOf(filter, engine)
  engine.assertOpen()
  const admin = adminOf(engine)
  const count = await abortable('count()', options.abortSignal, () => admin.count(wanted, atMost + 1))
  return { count: Math.min(count, atMost), isCapped: count > atMost }
}

/** The filter as the store takes it. Throws INVALID_OPTION at a field that could match no run. @internal */
export function filterOf(filter: Filter, engine: Pick<Engine, 'limits' | 'registry'>): RunFilter {
  checkOptions(filter, filterNames, 'A filter of runs', optionsElsewhere)
  const { ids, type, typePrefix, status, key, idempotencyKey, tag, version, parent, deleted } = filter
  const { createdFrom, createdBefore } = filter
  for (const [name, list] of Object.entries({ ids, type, status })) {
    if (Array.isArray(list)) checkBatch(list, engine.limits, `${name} of a filter`)
    else if (name === 'ids' && list !== undefined) {
      throw new HoldfastError('INVALID_OPTION', `ids of a filter must be a list. Got ${shown(list)}.`)
    }
  }
  return {
    ...(ids === undefined ? {} : { ids: ids.map(idOf) }),
    ...(type === undefined ? {} : { types: listOf(type).map((one) => text(one, 'type')) }),
    ...(typePrefix === undefined ? {} : { typePrefix: text(typePrefix, 'typePrefix') }),
    ...(status === undefined ? {} : { statuses: listOf(status).map(checkStatus) }),
    ...(key === undefined ? {} : { key: typed(engine, type, text(key, 'key')) }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey: text(idempotencyKey, 'idempotencyKey') }),
    ...(tag === undefined ? {} : { tag: text(tag, 'tag') }),
    ...(version === undefined
      ? {}
      : { version: checkWhole(version, 'version of a filter', { least: 1, most: highestVersion }) }),
    ...(parent === undefined ? {} : { parentId: idOf(parent) }),
    ...(createdFrom === undefined ? {} : { createdFrom: time(createdFrom, 'createdFrom') }),
    ...(createdBefore === undefined ? {} : { createdBefore: time(createdBefore, 'createdBefore') }),
    ...(deleted === undefined ? {} : { deleted: yesOrNo(deleted, 'deleted') }),
  }
}

function yesOrNo(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw new HoldfastError('INVALID_OPTION', `${name} of a filter must be true or false. Got ${shown(value)}.`)
}

/** Every invariant of the store by name, with the runs that break it. @internal */
export async function checkInvariants({ store }: Engine, options?: AbortOption): Promise<readonly InvariantCheck[]> {
  const { doctor } = store as Partial<StoreAdmin>
  if (doctor === undefined)
    throw new HoldfastError('INVALID_OPTION', 'This store cannot check its invariants: it has no doctor().')
  return reading('doctor()', options, () => doctor.call(store))
}

function listOf<Member>(given: Member | readonly Member[]): readonly Member[] {
  return Array.isArray(given) ? (given as readonly Member[]) : [given as Member]
}

function checkStatus(status: RunStatus): RunStatus {
  if (runStatuses.includes(status)) return status
  throw new HoldfastError(
    'INVALID_OPTION',
    `There is no status ${shown(status)}.${didYouMean(status, runStatuses)} Known: ${runStatuses.join(', ')}.`,
  )
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new HoldfastError('INVALID_OPTION', `${name} of a filter must be a text. Got ${shown(value)}.`)
}

function time(value: Date, name: string): number {
  const at = value instanceof Date ? value.getTime() : Number.NaN
  if (!Number.isNaN(at)) return at
  throw new HoldfastError('INVALID_OPTION', `${name} of a filter must be a valid Date. Got ${shown(value)}.`)
}

/** With one type that is known here, the key is that of its workflow: the value of the field by which it is unique is enough. */
function typed({ registry }: Pick<Engine, 'registry'>, type: Filter['type'], key: string): string {
  const [only, second] = type === undefined ? [] : listOf(type)
  return only === undefined || second !== undefined ? key : storedKey(registry, only, key)
}
