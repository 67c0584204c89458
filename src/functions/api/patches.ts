// Changes of the code that take effect in runs which have not reached them yet, and in no other. Each run answers once per
// change: a recorded `true` stays true for ever, and a `false`, because the run had already passed the old code, is false on
// every replay, because the journal still has the later entries.

import type { FrameState } from '../frame/frame-state.ts'

export class Patches {
  private readonly state: FrameState
  private readonly answers = new Map<string, boolean>()

  constructor(state: FrameState) {
    this.state = state
  }

  has(id: string): boolean {
    const { state, answers } = this
    const known = answers.get(id)
    if (known !== undefined) return known
    const isRecorded = state.history.hasPatch(id)
    const isNew = !isRecorded && state.history.isOver
    answers.set(id, isRecorded || isNew)
    if (isNew && state.isWriting) {
      state.writer.append({ kind: 'patched', name: id, meta: null, data: null })
      state.scheduleTurn()
    }
    return isRecorded || isNew
  }
}
