// Messages that gave up because their run had ended, and that somebody wants to see.

import type { DeadLetter, DeadLetterFilter } from '../../store.ts'
import type { Row } from './tables/row.ts'

export function deadLetters(
  rows: Iterable<Row>,
  { name, runId }: DeadLetterFilter,
  limit: number,
  after: string | undefined,
): readonly DeadLetter[] {
  const all: DeadLetter[] = []
  // The one after which the page begins may have been settled since.
  let last: Place | null = null
  for (const row of rows) {
    last ??= placeIn(row, after)
    if (row.mailbox === null || (runId !== undefined && row.id !== runId)) continue
    for (const { message, fate } of row.mailbox.values()) {
      if (fate !== 'dead' || (name !== undefined && message.name !== name)) continue
      all.push({ ...message, status: row.status, endedAt: row.endedAt })
    }
  }
  if (after !== undefined && last === null) return []
  const left = last === null ? all : all.filter((letter) => newerFirst(last, letter) < 0)
  return left.sort(newerFirst).slice(0, limit)
}

type Place = Pick<DeadLetter, 'at' | 'runId' | 'id'>

function placeIn({ id, mailbox }: Row, after: string | undefined): Place | null {
  if (after?.startsWith(`${id} `) !== true) return null
  return mailbox?.get(after.slice(id.length + 1))?.message ?? null
}

function newerFirst(a: Place, b: Place): number {
  return b.at - a.at || compared(b.runId, a.runId) || compared(b.id, a.id)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
