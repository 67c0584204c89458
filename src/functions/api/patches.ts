// Changes of the code that take effect in runs which have not reached them yet, and in no other. Each run answers once per
// change: a recorded `true` stays true for ever, and a `false`, because the run had already passed the old code, is false on
// every replay, because the journal still has the later entries.

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
