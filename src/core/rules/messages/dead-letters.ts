// Messages that were given up because their run had ended, and that are kept for people to see.

import type { DeadLetter, DeadLetterFilter, Page } from '../../model/store-admin.ts'

/** Where a dead letter stands among the others. */
export type DeadLetterPosition = Pick<DeadLetter, 'at' | 'runId' | 'id'>

/**
 * A page of dead letters, the newest first. `last` is the message after which the page begins, which may have been settled since;
 * undefined if there never was such a message.
 */
export function deadLetterPage(
  letters: readonly DeadLetter[],
  { name, runId }: DeadLetterFilter,
  { limit, after }: Page,
  last: DeadLetterPosition | undefined,
): readonly DeadLetter[] {
  if (after !== undefined && last === undefined) return []
  const isMeant = (letter: DeadLetter): boolean =>
    (name === undefined || letter.name === name) &&
    (runId === undefined || letter.runId === runId) &&
    (last === undefined || newerFirst(last, letter) < 0)
  return letters.filter(isMeant).sort(newerFirst).slice(0, limit)
}

function newerFirst(a: DeadLetterPosition, b: DeadLetterPosition): number {
  return b.at - a.at || compared(b.runId, a.runId) || compared(b.id, a.id)
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
