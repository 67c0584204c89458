// What one page of a `send` chore reads of its sender's journal: the messages to its receiver, bounded in entries and in bytes.

import { defaultPageLimits, type Chore, partiesOf } from '../../../../core/model/chore.ts'
import type { Row } from '../../execution.ts'
import { entryOf } from '../../schema/rows.ts'
import type { LockedRows } from '../locked-rows.ts'

/** How much of what was sent one page of a chore reads, and at least one message. */
const sentBytes = 1024 * 1024

/** The messages behind the bound came without their payloads: the page ends before the first of them. */
export function pageOf(rows: readonly Row[]): Pick<LockedRows, 'sentEntries' | 'sentUpTo'> {
  const end = rows.findIndex((row) => row['data'] === null)
  if (end === -1) return { sentEntries: rows.map(entryOf), sentUpTo: null }
  return { sentEntries: rows.slice(0, end).map(entryOf), sentUpTo: Number(rows[end]?.['seq']) - 1 }
}

/** The page of that chore, as its statements ask for it. */
export function requestOf({ target, position: first }: Chore) {
  const { senderId: id, receiver } = partiesOf(target)
  const kind = receiver.kind === 'topic' ? 'broadcast-sent' : 'signal-sent'
  const last = first + defaultPageLimits.sent - 1
  return { id, first, last, kind, receiver: receiver.name, bytes: sentBytes }
}
