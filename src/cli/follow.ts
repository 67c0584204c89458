// Follows a run by its journal until it ends, or until only an operator can continue it: because it is paused for drift, or
// was removed.

import type { JournalEntry, RunView } from '../client/read/run-view.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { isTerminal } from '../core/model/run.ts'
import type { Holdfast } from '../holdfast.ts'
import { messageOf } from './output/plain-json.ts'

const entriesAtOnce = 500
const shortestPauseMs = 50
const longestPauseMs = 500

/** Every entry of a journal, page by page: never more than one page is held. */
export async function* entriesOf(holdfast: Holdfast, id: string, after = 0): AsyncGenerator<JournalEntry, void> {
  for await (const page of holdfast.journalPages(id, { after, limit: entriesAtOnce })) yield* page
}

/**
 * Calls back with each entry as it comes, from the first. Returns the ended run. Throws DRIFT or WRONG_STATUS if it will not
 * end.
 */
export async function follow(
  holdfast: Holdfast,
  id: string,
  onEntry: (entry: JournalEntry) => Promise<void>,
): Promise<RunView> {
  let [last, pauseMs] = [0, shortestPauseMs]
  let newest: JournalEntry | null = null
  for (;;) {
    // Read first, so that the entries that are read afterwards hold the end if the run has ended.
    const view = await holdfast.get(id)
    const before = last
    for await (const entry of entriesOf(holdfast, id, last)) {
      await onEntry(entry)
      last = entry.seq
      newest = entry
    }
    if (isTerminal(view.status)) return view
    if (view.deletedAt !== null) throw removed(view)
    if (view.status === 'paused' && newest?.kind === 'paused' && newest.meta.reason === 'drift') {
      throw drifted(id, newest.meta.message)
    }
    if (view.unreadable !== null && view.status === 'paused') throw unreadable(id, view.unreadable.note)
    pauseMs = last === before ? Math.min(longestPauseMs, pauseMs * 1.5) : shortestPauseMs
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

function removed({ id, status }: RunView): HoldfastError {
  const message = `Run ${id} was removed while it was ${status}: no worker performs it any more.`
  return new HoldfastError('WRONG_STATUS', message, { details: { runId: id, status } })
}

function unreadable(id: string, note: string): HoldfastError {
  return new HoldfastError('PAYLOAD_CORRUPT', `Run ${id} is paused: ${note}`, { details: { runId: id } })
}

function drifted(id: string, message: string): HoldfastError {
  return new HoldfastError(
    'DRIFT',
    `Run ${id} is paused, because its code and its journal disagree.\n${message}\n` +
      `Deploy code that fits, or repair the journal, then: holdfast resume ${id}`,
    { details: { runId: id } },
  )
}

/** The error of a run that did not succeed. */
export function assertSucceeded({ id, status, error }: RunView): void {
  if (status === 'failed') {
    throw new HoldfastError('RUN_FAILED', `Run ${id} failed: ${messageOf(error)}`, {
      cause: error,
      details: { runId: id },
    })
  }
  if (status === 'cancelled') {
    throw new HoldfastError('RUN_CANCELLED', `Run ${id} was cancelled.`, { details: { runId: id } })
  }
}
