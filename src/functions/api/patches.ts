// Changes of the code that take effect in runs which have not come so far, and in no other. The answer is given once per
// run and change: what was recorded is true for ever, and what was false once, because the run had already gone the old
// way, is false on every replay, because the journal still has what came after.

import type { Draft } from '../../core/model/entry.ts'
import type { History } from '../replay/history.ts'

interface PatchesDeps {
  readonly history: History
  readonly isWriting: boolean
  readonly writer: { append(draft: Draft): void }
  scheduleTurn(): void
}

export class Patches {
  private readonly deps: PatchesDeps
  private readonly answers = new Map<string, boolean>()

  constructor(deps: PatchesDeps) {
    this.deps = deps
  }

  has(id: string): boolean {
    const { deps, answers } = this
    const known = answers.get(id)
    if (known !== undefined) return known
    const isRecorded = deps.history.hasPatch(id)
    const isNew = !isRecorded && deps.history.next() === undefined
    answers.set(id, isRecorded || isNew)
    if (isNew && deps.isWriting) {
      deps.writer.append({ kind: 'patched', name: id, meta: null, data: null })
      deps.scheduleTurn()
    }
    return isRecorded || isNew
  }
}
