// Reads all that a run has unread, page by page. A page is bounded by its messages and by the bytes of their payloads, so a reader
// holds at most one page, however full or heavy the mailbox is.

import { messagesAtOnce, type Message } from '../../core/model/message.ts'
import type { Store } from '../../store.ts'
import { messagesRequest } from '../batch/mailbox-reader.ts'
import { bytesAtOnce } from '../batch/turn-loads.ts'

/**
 * Pages with at least one message each, in the order of arrival. The store is asked when a page is: a message that arrives before
 * the last page was read is on it.
 */
export async function* loadMailbox(
  store: Pick<Store, 'load'>,
  runId: string,
  mostBytes = bytesAtOnce,
): AsyncGenerator<readonly Message[], void> {
  for (let messagesAfter = 0; ;) {
    const [page] = await store.load([{ ...messagesRequest(runId, null), messagesAfter }], mostBytes)
    const last = page?.messages.at(-1)
    if (page === undefined || last === undefined) return
    yield page.messages
    if (page.messages.length < messagesAtOnce && page.cut !== true) return
    messagesAfter = last.position
  }
}
