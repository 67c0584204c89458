// The journal of a run with its payloads decoded, by pages or as one list. A journal that is too long for one list is refused,
// never cut short in silence.

import { HoldfastError } from '../../core/errors/error.ts'
import { digits } from '../../core/definition/limits.ts'
import { checkOptions } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import { bytesAtOnce } from '../../engine/batch/turn-loads.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import { abortable, abortableLoads, checkAbortSignal, type AbortOption } from '../abort-option.ts'
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

/** The journal, or this many entries of it, as one list. Throws RUN_NOT_FOUND, or INVALID_OPTION if it is too long for that. @internal */
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
  // One more than is handed out says whether there are more.
  const pages = loadJournal(store, runId, { after, limit: limit ?? mostEntries + 1 })
  const { value: page } = await pages.next()
  const entries = page?.entries ?? []
  if (entries.length === 0 && (await store.get([runId]))[0] === undefined) throw runNotFound(runId)
  const isWhole = limit !== undefined || (entries.length <= mostEntries && (await pages.next()).done === true)
  if (!isWhole) throw tooLong(runId)
  const views: JournalEntry[] = []
  for (const entry of entries) views.push(await entryView(runId, entry, payloads))
  return views
}

/** The journal page by page, none of them empty. Never more than one page is held in memory. @internal */
export function journalPages(
  engine: Engine,
  reference: RunReference,
  options: JournalPagesOptions = {},
): AsyncGenerator<readonly JournalEntry[], void> {
  // Checked here, because a generator throws only when its first page is asked for.
  return viewedPages(engine, checkedRequest(engine, reference, options, 'journalPages()'), options.abortSignal)
}

async function* viewedPages(
  { store, payloads }: Engine,
  { runId, after, limit }: JournalRequest,
  abortSignal: AbortSignal | undefined,
): AsyncGenerator<readonly JournalEntry[], void> {
  let isEmpty = true
  for await (const { entries } of loadJournal(abortableLoads(store, abortSignal), runId, { after, limit })) {
    isEmpty = false
    const views: JournalEntry[] = []
    for (const entry of entries) views.push(await entryView(runId, entry, payloads))
    yield views
  }
  if (!isEmpty) return
  const [run] = await abortable('journalPages()', abortSignal, () => store.get([runId]))
  if (run === undefined) throw runNotFound(runId)
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

function tooLong(runId: string): HoldfastError {
  return new HoldfastError(
    'INVALID_OPTION',
    `The journal of run ${runId} has more than ${digits(mostEntries)} entries, or 16 MiB of payloads: too much for one list. ` +
      'Read it with journalPages(run), or a part of it with journal(run, { after, limit }).',
    { details: { runId, mostEntries, mostBytes: bytesAtOnce } },
  )
}
