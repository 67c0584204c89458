// The journal of a run, by pages. A page is bounded by its entries and by the bytes of their payloads, so that it does not
// matter how long a run is, or how heavy; what is asked for as one list and is more than that is refused, never cut short
// without a word.

import type { Entry } from '../../core/model/entry.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { digits } from '../../core/definition/limits.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { noMessages } from '../../engine/batch/mailer.ts'
import type { Store } from '../../store.ts'
import { abortable, checkAbortSignal, type AbortOption } from '../abort-option.ts'
import { checkWhole } from './cursor.ts'
import { idOf, runNotFound, type RunReference } from '../run-reference.ts'
import { entryView, type JournalEntry } from './run-view.ts'

export interface JournalOptions extends AbortOption {
  /** Entries with a higher `seq` than this. @default 0 */
  readonly after?: number
  /**
   * How many at most, up to 10,000. They are fewer, but at least one, if their payloads take more than 16 MiB: go on behind the
   * last. @default all of them; a journal that has more than 10,000, or 16 MiB, is refused
   */
  readonly limit?: number
}

export interface JournalPagesOptions extends AbortOption {
  /** Entries with a higher `seq` than this. @default 0 */
  readonly after?: number
  /** How many on one page, up to 10,000; fewer if their payloads take more than 16 MiB. @default 1_000 */
  readonly limit?: number
}

const mostEntries = 10_000
const mostBytes = 16 * 1024 * 1024
const entriesAtOnce = 1_000

/** The journal, or so many entries of it, as one list. Throws RUN_NOT_FOUND, or INVALID_OPTION if it is too long for that. */
export async function readJournal(
  engine: Engine,
  reference: RunReference,
  options: JournalOptions = {},
): Promise<readonly JournalEntry[]> {
  const request = checkedRequest(engine, reference, options, 'journal()')
  return abortable('journal()', options.abortSignal, () => asList(engine, request))
}

async function asList(
  { store, payloads }: Engine,
  { runId, after, limit }: JournalRequest,
): Promise<readonly JournalEntry[]> {
  // One more than is handed out tells whether there are more.
  const entries = await load(store, { runId, after, limit: limit ?? mostEntries + 1 })
  if (entries.length === 0 && (await store.get([runId]))[0] === undefined) throw runNotFound(runId)
  if (limit === undefined) {
    const last = entries.at(-1)?.seq ?? after
    const isMore = mayBeCut(entries) && (await load(store, { runId, after: last, limit: 1 })).length > 0
    if (isMore || entries.length > mostEntries) throw tooLong(runId)
  }
  const views: JournalEntry[] = []
  for (const entry of entries) views.push(await entryView(runId, entry, payloads))
  return views
}

/** The journal page by page, none of them empty: never more than one is held. */
export function journalPages(
  engine: Engine,
  reference: RunReference,
  options: JournalPagesOptions = {},
): AsyncGenerator<readonly JournalEntry[], void> {
  // Checked now: a generator would say so only when it is asked for its first page.
  return viewedPages(engine, checkedRequest(engine, reference, options, 'journalPages()'), options.abortSignal)
}

async function* viewedPages(
  { store, payloads }: Engine,
  { runId, after, limit }: JournalRequest,
  abortSignal: AbortSignal | undefined,
): AsyncGenerator<readonly JournalEntry[], void> {
  let isEmpty = true
  for await (const page of entryPages(store, runId, after, { limit, abortSignal })) {
    isEmpty = false
    const views: JournalEntry[] = []
    for (const entry of page) views.push(await entryView(runId, entry, payloads))
    yield views
  }
  if (!isEmpty) return
  const [run] = await abortable('journalPages()', abortSignal, () => store.get([runId]))
  if (run === undefined) throw runNotFound(runId)
}

/** The same pages as the store has them. */
export async function* entryPages(
  store: Pick<Store, 'load'>,
  runId: string,
  after: number,
  { limit = entriesAtOnce, abortSignal }: PageOptions = {},
): AsyncGenerator<readonly Entry[], void> {
  for (let last = after; ;) {
    const request = { runId, after: last, limit }
    const entries = await abortable('Reading a journal', abortSignal, () => load(store, request))
    if (entries.length > 0) yield entries
    last = entries.at(-1)?.seq ?? last
    if (entries.length < limit && !mayBeCut(entries)) return
  }
}

interface PageOptions {
  readonly limit?: number | undefined
  readonly abortSignal?: AbortSignal | undefined
}

interface JournalRequest {
  readonly runId: string
  readonly after: number
  readonly limit?: number
}

function checkedRequest(
  engine: Engine,
  reference: RunReference,
  options: JournalOptions,
  where: 'journal()' | 'journalPages()',
): JournalRequest {
  const runId = idOf(reference)
  checkOptions(options, ['after', 'limit', 'abortSignal'], where)
  checkAbortSignal(options.abortSignal)
  const { after = 0, limit } = options
  const name = where.slice(0, -2)
  checkWhole(after, `${name}({ after })`, { least: 0 })
  if (limit !== undefined) checkWhole(limit, `${name}({ limit })`, { least: 1, most: mostEntries })
  engine.assertOpen()
  return { runId, after, ...(limit === undefined ? {} : { limit }) }
}

async function load(store: Pick<Store, 'load'>, request: Required<JournalRequest>): Promise<readonly Entry[]> {
  const [page] = await store.load([{ ...request, mail: noMessages }], mostBytes)
  return page?.entries ?? []
}

/** Whether a page may have ended because of its bytes. A character takes three of them at most. */
function mayBeCut(entries: readonly Entry[]): boolean {
  let length = 0
  for (const { data } of entries) length += data?.length ?? 0
  return length * 3 >= mostBytes
}

function tooLong(runId: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `The journal of run ${runId} has more than ${digits(mostEntries)} entries, or 16 MiB of payloads: too much for one list. ` +
      'Read it with journalPages(run), or a part of it with journal(run, { after, limit }).',
    { details: { runId, mostEntries, mostBytes } },
  )
}
