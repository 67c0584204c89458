// Reads what claimed runs need to go on: the journals of those that are not known here, and the messages of those that are. All that
// were claimed together are read together, so many bytes at a time.

import type { Claim, Frame } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { bug, HoldfastError } from '../../core/errors/error.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import { bytesAtOnce, messagesRequest } from '../../engine/batch/message-reader.ts'
import { noMessages } from '../../engine/batch/mailer.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'

/** How much of a journal is read at once. */
const entriesAtOnce = 1_000

const nothing: Loaded = { entries: [], messages: [], cut: true }

/** A claimed run with the part of its journal or mailbox that is still to be read; its frame, if that is kept here. */
export interface Unread {
  readonly run: Run
  readonly frame: Frame | null
  readonly request: LoadRequest
  /** The entries read so far, and the messages; null if the mailbox is left to the frame. */
  readonly entries: Entry[]
  readonly messages: Claim['messages']
}

/** Continues the runs whose journals were read. */
export interface Reader {
  /** The whole journal is there. */
  open(claim: Claim): void
  /** The messages that the frame waits for; null if it must read them itself. */
  resume(run: Run, frame: Frame, messages: Claim['messages']): void
  /** Nothing could be read. */
  unreadable(run: Run, error: unknown): void
  /** The store shows less of its journal than there is. */
  incomplete(run: Run, error: HoldfastError): void
}

export function unreadMessages(run: Run, frame: Frame): Unread {
  return { run, frame, entries: [], messages: null, request: messagesRequest(run.id, frame.wakeNames) }
}

/** Its journal from the base on and, if a message was ever sent to it, the first page of its mailbox. */
export function unreadJournal(run: Run): Unread {
  const { id, base, inbox } = run
  const request = { runId: id, after: base - 1, limit: entriesAtOnce, ...(inbox === 0 ? { messages: noMessages } : {}) }
  return { run, frame: null, entries: [], messages: null, request }
}

/**
 * Reads the journals of these runs, in as many loads as it takes, and begins each run as soon as all of its journal is there.
 * A run that has got a part of its journal goes behind those that have got nothing.
 */
export async function loadAll(store: Pick<Store, 'load'>, unread: readonly Unread[], reader: Reader): Promise<void> {
  let left = unread
  while (left.length > 0) {
    let loaded: readonly Loaded[]
    try {
      loaded = await store.load(
        left.map(({ request }) => request),
        bytesAtOnce,
      )
    } catch (error) {
      for (const { run } of left) reader.unreadable(run, error)
      return
    }
    const [untouched, partial]: [Unread[], Unread[]] = [[], []]
    left.forEach((one, index) => {
      const page = loaded[index] ?? nothing
      const isFirst = index === 0
      const more = learn(one, page, isFirst, reader)
      if (more !== null) (page.entries.length === 0 ? untouched : partial).push(more)
    })
    left = [...untouched, ...partial]
  }
}

/** Begins a run if all of it was read; otherwise returns the rest to read. */
function learn(one: Unread, page: Loaded, isFirst: boolean, reader: Reader): Unread | null {
  const { run, frame, request } = one
  // A mailbox that was cut may have more messages, so the frame reads them by name when a wait asks for them.
  const unread = page.cut === true ? null : page.messages
  if (frame !== null) {
    reader.resume(run, frame, unread)
    return null
  }
  const isNew = one.entries.length === 0
  for (const entry of page.entries) one.entries.push(entry)
  const messages = isNew && page.entries.length > 0 ? (run.inbox === 0 ? [] : unread) : one.messages
  if (one.entries.length >= run.seq - run.base + 1) {
    reader.open({ run, lease: leaseOf(run), entries: one.entries, messages })
    return null
  }
  // The first of a load gets at least one entry, if there is one.
  if (isFirst && page.entries.length === 0) {
    reader.incomplete(run, shorter(run, one.entries.length))
    return null
  }
  if (page.entries.length === 0) return one
  return { ...one, messages, request: { ...request, after: run.base - 1 + one.entries.length, messages: noMessages } }
}

/** Entries were deleted, or the database hides them from this process. */
function shorter({ id: runId, seq, base }: Run, found: number): HoldfastError {
  const entries = seq - base + 1
  return new HoldfastError(
    'STORE_REFUSED',
    `The store shows ${found} of the ${entries} entries of the journal of run ${runId}. If row-level security is enabled on its ` +
      'tables, let the user of this worker bypass it. Otherwise entries were deleted: restore them, or remove the run.',
    { details: { runId, found, entries } },
  )
}

/** The lease under which a run was claimed. */
export function leaseOf(run: Run): Lease {
  if (run.session === null) throw bug('A claimed run has no holder', { runId: run.id })
  return { session: run.session, token: run.token }
}
