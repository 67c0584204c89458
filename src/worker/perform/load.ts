// Reads what claimed runs need to go on: the journals of those that are not known here, and the messages of those that are.
// All that were claimed together are read together.

import type { Claim, Frame } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { bug, HoldfastError } from '../../core/errors/error.ts'
import type { Lease, Run } from '../../core/model/run.ts'
import { messagesRequest } from '../../engine/batch/mailbox-reader.ts'
import { journalRequest, loadTogether, type PagedRun, type PageOf } from '../../engine/store/journal-pages.ts'
import type { Store } from '../../store.ts'

/** A claimed run with the part of its journal or mailbox that is still to be read; its frame, if that is kept here. */
export interface Unread extends PagedRun {
  readonly run: Run
  readonly frame: Frame | null
  /** The entries read so far, and the messages; null if the mailbox is left to the frame. */
  readonly entries: Entry[]
  messages: Claim['messages']
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

/** A message has arrived that the frame may wait for. */
export function hasMessage({ arrived, wakeNames }: Frame, { inbox }: Run): boolean {
  return arrived !== null && inbox > arrived && wakeNames?.length !== 0
}

export function mailboxToRead(run: Run, frame: Frame): Unread {
  return { run, frame, entries: [], messages: null, request: messagesRequest(run.id, frame.wakeNames) }
}

/** Its journal from the base on and, if a message was ever sent to it, the first page of its mailbox. */
export function journalToRead(run: Run): Unread {
  const request = journalRequest(run.id, run.base - 1, run.inbox > 0)
  return { run, frame: null, entries: [], messages: null, request }
}

/** Reads the journals of these runs together, and begins each run as soon as all of its journal is there. */
export async function loadAll(store: Pick<Store, 'load'>, unread: readonly Unread[], reader: Reader): Promise<void> {
  const open = new Set(unread)
  const isWhole = ({ of }: PageOf<Unread>): boolean => !open.has(of)
  const rounds = loadTogether(store, unread, { isWhole })
  for (;;) {
    let round: IteratorResult<readonly PageOf<Unread>[], void>
    try {
      round = await rounds.next()
    } catch (error) {
      for (const { run } of open) reader.unreadable(run, error)
      return
    }
    if (round.done === true) return
    for (const page of round.value) if (learn(page, reader)) open.delete(page.of)
  }
}

/** Takes in a page, and begins the run if all of it was read. Returns whether nothing more of it is to be read. */
function learn({ of: one, page, isEnd }: PageOf<Unread>, reader: Reader): boolean {
  const { run, frame, entries } = one
  // A mailbox that was cut may have more messages, so the frame reads them by name when a wait asks for them.
  const unread = page.cut === true ? null : page.messages
  if (frame !== null) {
    reader.resume(run, frame, unread)
    return true
  }
  if (entries.length === 0 && page.entries.length > 0) one.messages = run.inbox === 0 ? [] : unread
  for (const entry of page.entries) entries.push(entry)
  const isWhole = entries.length >= run.seq - run.base + 1
  if (isWhole) reader.open({ run, lease: leaseOf(run), entries, messages: one.messages })
  else if (isEnd) reader.incomplete(run, shorter(run, entries.length))
  return isWhole || isEnd
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
