// The cursor of a rekey: the run or dead letter behind which the walk goes on, and between which ids the runs are that had a holder
// when the walk came to them.

import { checkLetterCursorWord, checkRunCursor, noCursor } from '../read/cursor.ts'

/** In front of the id, for runs that were removed. */
export const removedMark = 'removed:'
/** In front of the cursor of a dead letter. */
export const lettersMark = 'letters:'
/** Between the position and the ids of held runs. Neither an id nor the word of a dead letter has a comma. */
const heldMark = ',held:'

interface Range {
  readonly newest: string
  readonly oldest: string
}

/** Where a walk begins: a part of it, and the cursor behind which it begins there. */
export interface RekeyStart {
  readonly part: 'runs' | 'removed' | 'letters'
  readonly after?: string
  /** The cursor without the held runs; null if the walk begins at its beginning. */
  readonly position: string | null
  /** The runs to visit again. */
  readonly held: Range | null
}

/** Throws INVALID_OPTION unless it is the `next` of a rekey, or undefined. */
export function startOf(after: unknown): RekeyStart {
  const name = 'rekey({ after })'
  if (after === undefined) return { part: 'runs', position: null, held: null }
  if (typeof after !== 'string') throw noCursor(after, name)
  const at = after.indexOf(heldMark)
  const position = at === -1 ? after : after.slice(0, at)
  const held = at === -1 ? null : rangeIn(after.slice(at + heldMark.length), name)
  if (position.startsWith(lettersMark)) {
    return { part: 'letters', after: checkLetterCursorWord(position.slice(lettersMark.length), name), position, held }
  }
  checkRunCursor(position, name, removedMark)
  if (!position.startsWith(removedMark)) return { part: 'runs', after: position, position, held }
  return { part: 'removed', after: position.slice(removedMark.length), position, held }
}

function rangeIn(text: string, name: string): Range {
  const [newest, oldest = '', ...more] = text.split(':')
  if (more.length > 0) throw noCursor(text, name)
  return { newest: checkRunCursor(newest, name), oldest: checkRunCursor(oldest, name) }
}

/** The ids between which all held runs are. */
export class HeldRange {
  private range: Range | null

  constructor(range: Range | null) {
    this.range = range
  }

  add(id: string): void {
    const { newest, oldest } = this.range ?? { newest: id, oldest: id }
    this.range = { newest: id > newest ? id : newest, oldest: id < oldest ? id : oldest }
  }

  /** For the end of a cursor. */
  get text(): string {
    return this.range === null ? '' : `${heldMark}${this.range.newest}:${this.range.oldest}`
  }
}
