// Reads the journal of a run: page by page, or a single entry. A page is bounded by its entries and by the bytes of their payloads,
// so a reader holds at most one page, however long or heavy the journal is.

import type { Entry } from '../../core/model/entry.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'
import { noMessages } from '../batch/mailer.ts'
import { bytesAtOnce } from '../batch/message-reader.ts'

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
  { after = 0, limit = 1_000, mostBytes = bytesAtOnce }: JournalPageOptions = {},
): AsyncGenerator<Loaded, void> {
  for (let last = after; ;) {
    const [page] = await store.load([{ runId, after: last, limit, messages: noMessages }], mostBytes)
    const newest = page?.entries.at(-1)
    if (page === undefined || newest === undefined) return
    yield page
    if (page.entries.length < limit && !mayBeCut(page.entries, mostBytes)) return
    last = newest.seq
  }
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
