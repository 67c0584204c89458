// Reads what a journal or mailbox keeps elsewhere, so that its texts are at hand where they are folded.

import type { Host } from '../definition/definition.ts'
import type { Entry } from '../model/entry.ts'
import { fetchPatiently } from './fetch.ts'

/** The entries with the texts of their payloads. */
export async function fetchedEntries(
  host: Pick<Host, 'ports' | 'payloads'>,
  entries: readonly Entry[],
  isWanted: () => boolean,
): Promise<readonly Entry[]> {
  const fetched = entries.map((entry) => fetchedEntry(host, entry, isWanted))
  return fetched.some((one) => one instanceof Promise) ? Promise.all(fetched) : (fetched as readonly Entry[])
}

function fetchedEntry(
  host: Pick<Host, 'ports' | 'payloads'>,
  entry: Entry,
  isWanted: () => boolean,
): Entry | Promise<Entry> {
  if (entry.data === null) return entry
  const text = host.payloads.fetch(entry.data)
  if (typeof text === 'string') return text === entry.data ? entry : ({ ...entry, data: text } as Entry)
  return fetchPatiently(host, text, entry.data, isWanted).then((data) => ({ ...entry, data }) as Entry)
}
