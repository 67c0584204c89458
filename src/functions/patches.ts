// Changes of the code that take effect in runs which have not come so far, and in no other. The answer is given once per
// run and change: what was recorded is true for ever, and what was false once, because the run had already gone the old
// way, is false on every replay, because the journal still has what came after.

import type { Draft } from '../core/entry.ts'
import type { History } from './history.ts'

interface Owner {
  readonly history: History
  readonly isWriting: boolean
  readonly writer: { append(draft: Draft): void }
  stir(): void
}

export class Patches {
  private readonly owner: Owner
  private readonly answers = new Map<string, boolean>()

  constructor(owner: Owner) {
    this.owner = owner
  }

  has(id: string): boolean {
    const { owner, answers } = this
    const known = answers.get(id)
    if (known !== undefined) return known
    const isRecorded = owner.history.hasPatch(id)
    const isNew = !isRecorded && owner.history.next() === undefined
    answers.set(id, isRecorded || isNew)
    if (isNew && owner.isWriting) {
      owner.writer.append({ kind: 'patched', name: id, meta: null, data: null })
      owner.stir()
    }
    return isRecorded || isNew
  }
}
