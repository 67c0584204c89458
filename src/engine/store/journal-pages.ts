// Reads journals: page by page, or a single entry. A page is bounded by its entries and by the bytes of their payloads, so a
// reader holds at most one page, however long or heavy the journal is. Every reader of a journal that may have more than one
// page goes through `loadTogether`, alone or with other runs.

import type { Entry } from '../../core/model/entry.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'
import { noMessages } from '../batch/message-sender.ts'
import { bytesAtOnce } from '../batch/turn-loads.ts'

/** How many entries on one page. */
const entriesAtOnce = 1_000

export interface JournalPageOptions {
  /** Entries with a higher `seq` than this. @default 0 */
  readonly after?: number
  /** How many entries on one page. @default 1_000 */
  readonly limit?: number | undefined
  /** The entry whose payload reaches this ends its page. @default 16 MiB */
  readonly mostBytes?: number
}

/** Pages with at least one entry each, in order; none if the run does not exist. The store is asked when a page is. */
export async function* loadJournal(
  store: Pick<Store, 'load'>,
  runId: string,
  { after = 0, limit = entriesAtOnce, mostBytes = bytesAtOnce }: JournalPageOptions = {},
): AsyncGenerator<Loaded, void> {
  const journal = { request: { runId, after, limit, messages: noMessages } }
  const isWhole = ({ page: { entries } }: PageOf<typeof journal>): boolean =>
    entries.length < limit && !mayBeCut(entries, mostBytes)
  for await (const [first] of loadTogether(store, [journal], { isWhole, mostBytes })) {
    if (first === undefined || first.isEnd) return
    yield first.page
  }
}

/** A run of which several loads may read a part each. */
export interface PagedRun {
  /** The first page, and what else is read with it. */
  readonly request: LoadRequest
}

export interface PageOf<One extends PagedRun> {
  readonly of: One
  readonly page: Loaded
  /** The page has no entry, and the journal has none behind the page before. */
  readonly isEnd: boolean
}

interface TogetherOptions<One extends PagedRun> {
  /** Whether nothing more of that run is to be read. Asked after the page was used. */
  readonly isWhole: (page: PageOf<One>) => boolean
  /** Of all pages of one load. @default 16 MiB */
  readonly mostBytes?: number
}

const nothing: Loaded = { entries: [], messages: [], cut: true }

/**
 * Reads the journals of these runs together: each round is one load, with a page of each run that is not whole yet. A run that
 * has got a part of its journal goes behind those that have got nothing. Messages come with the first entries only.
 */
export async function* loadTogether<One extends PagedRun>(
  store: Pick<Store, 'load'>,
  runs: readonly One[],
  { isWhole, mostBytes = bytesAtOnce }: TogetherOptions<One>,
): AsyncGenerator<readonly PageOf<One>[], void> {
  let left = runs.map((of) => ({ of, request: of.request }))
  while (left.length > 0) {
    const requests = left.map(({ request }) => request)
    const loaded = await store.load(requests, mostBytes)
    const pages = left.map(({ of }, index): PageOf<One> => {
      const page = loaded[index] ?? nothing
      // The first of a load gets at least one entry, if there is one.
      return { of, page, isEnd: index === 0 && page.entries.length === 0 }
    })
    yield pages
    const [untouched, partial]: [typeof left, typeof left] = [[], []]
    for (const [index, { of, request }] of left.entries()) {
      const read = pages[index]
      if (read === undefined || read.isEnd || isWhole(read)) continue
      const newest = read.page.entries.at(-1)
      if (newest === undefined) untouched.push({ of, request })
      else partial.push({ of, request: { ...request, after: newest.seq, messages: noMessages } })
    }
    left = [...untouched, ...partial]
  }
}

/** Asks for the first page of a journal, behind that entry, and for the first messages if the run may have some. */
export function journalRequest(runId: string, after: number, hasMessages: boolean): LoadRequest {
  return { runId, after, limit: entriesAtOnce, ...(hasMessages ? {} : { messages: noMessages }) }
}

/** All entries after `after` as one list, however long. */
export async function loadEntries(store: Pick<Store, 'load'>, runId: string, after = 0): Promise<readonly Entry[]> {
  const all: Entry[] = []
  for await (const { entries } of loadJournal(store, runId, { after })) for (const entry of entries) all.push(entry)
  return all
}

/** Asks for one entry of a run, and for no messages. */
export function entryRequest(runId: string, seq: number): LoadRequest {
  return { runId, after: seq - 1, limit: 1, messages: noMessages }
}

/** Asks for the last entry of each of these runs, and for no messages. */
export function lastEntryRequests(runs: readonly { readonly id: string; readonly seq: number }[]): LoadRequest[] {
  return runs.map(({ id, seq }) => entryRequest(id, seq))
}

/** Whether the bytes of a page may have ended it. A character takes at most three; of a damaged entry they are unknown. */
function mayBeCut(entries: readonly Entry[], mostBytes: number): boolean {
  let length = 0
  for (const { kind, data } of entries) {
    if (kind === 'damaged') return true
    length += data?.length ?? 0
  }
  return length * 3 >= mostBytes
}
