// The request of a holder to read a run, and how much of it one load returns.

import { bytesOf, cutBy, type LoadBudgets } from './load-budget.ts'
import type { Entry, EntryKind } from '../../model/entry.ts'
import { messagesAtOnce, type Message } from '../../model/message.ts'

export interface LoadRequest {
  readonly runId: string
  /** Entries with a higher `seq` than this. */
  readonly after: number
  readonly limit: number
  /** Only the last entry of this kind and name, regardless of `after` and `limit`. */
  readonly latest?: { readonly kind: EntryKind; readonly name: string }
  /** The part of the mailbox. @default the first 1,000 messages of any name */
  readonly messages?: MailboxRequest
  /** Without `messages`: messages with a higher position than this, so that a whole mailbox is read page by page. @default 0 */
  readonly messagesAfter?: number
}

/** The first so many messages of each of these names. */
export interface MailboxRequest {
  readonly names: readonly string[]
  readonly limit: number
}

export interface Loaded {
  readonly entries: readonly Entry[]
  /** Messages that no transition has taken yet, first in first out. */
  readonly messages: readonly Message[]
  /** `mostBytes` was reached: there may be more messages than these. */
  readonly cut?: true
}

/** The page of a whole journal and of the unread messages of a mailbox, as far as the bounds of the load allow. */
export function loadPage(
  journal: readonly Entry[],
  unread: readonly Message[],
  request: LoadRequest,
  bounds: LoadBudgets,
): Loaded {
  const entries = entriesOf(journal, request, bounds)
  return { entries, messages: bounds.messages.take(messagesOf(unread, request), bytesOf), ...cutBy(bounds) }
}

/** The entry of `seq` n stands at place n - 1. */
function entriesOf(
  journal: readonly Entry[],
  { after, limit, latest }: LoadRequest,
  bounds: LoadBudgets,
): readonly Entry[] {
  if (latest === undefined) return bounds.entries.take(journal.slice(after, after + limit), bytesOf)
  const last = journal.findLast(({ kind, name }) => kind === latest.kind && name === latest.name)
  return last === undefined ? [] : [last]
}

function messagesOf(unread: readonly Message[], { messages, messagesAfter = 0 }: LoadRequest): readonly Message[] {
  if (messages === undefined) return unread.filter(({ position }) => position > messagesAfter).slice(0, messagesAtOnce)
  const left = new Map(messages.names.map((name) => [name, messages.limit]))
  return unread.filter(({ name }) => {
    const more = left.get(name) ?? 0
    left.set(name, more - 1)
    return more > 0
  })
}
