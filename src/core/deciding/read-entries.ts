// Reads what a journal or mailbox keeps elsewhere, so that its texts are at hand where they are folded.

import type { Host } from '../definition/definition.ts'
import type { Entry } from '../model/entry.ts'
import { fetchPatiently } from '../runtime/fetch.ts'

type Reader = Pick<Host, 'ports' | 'payloads'>

/** The entries with the texts of their payloads. */
export async function fetchedEntries(
  host: Reader,
  entries: readonly Entry[],
  isWanted: () => boolean,
): Promise<readonly Entry[]> {
  const { payloads } = host
  if (entries.every(({ data }) => data === null || payloads.isKeptAsIs(data))) return entries
  return Promise.all(entries.map(async (entry) => fetchedEntry(host, entry, isWanted)))
}

async function fetchedEntry(host: Reader, entry: Entry, isWanted: () => boolean): Promise<Entry> {
  if (entry.data === null) return entry
  const text = host.payloads.fetch(entry.data)
  const data = typeof text === 'string' ? text : await fetchPatiently(host, text, entry.data, isWanted)
  return { ...entry, data }
}
