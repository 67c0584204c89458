// The steps that stay undone when a run ends without a frame: those of its journal that a frame would have undone, by the
// same rules as the history of a frame, which does not exist when a run is given up.

import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import type { Store } from '../../store.ts'

/** The names of its steps that may have happened and are not undone. Those whose undo has failed come first. */
export async function stepsNotUndone(store: Pick<Store, 'load'>, run: Run): Promise<readonly string[]> {
  if (run.undo === 'none') return []
  const steps = new Steps()
  for await (const { entries } of loadJournal(store, run.id, { after: run.base - 1 })) {
    for (const entry of entries) steps.add(entry)
  }
  return steps.notUndone
}

class Steps {
  private readonly failed: string[] = []
  /** By name: the entry of the step. */
  private readonly toUndo = new Map<string, number>()
  private readonly begun = new Set<string>()

  get notUndone(): readonly string[] {
    return [...new Set([...this.failed, ...this.toUndo.keys(), ...this.begun])]
  }

  add(entry: Entry): void {
    switch (entry.kind) {
      case 'begun':
        this.begun.add(entry.name)
        return
      case 'attempt-failed':
        if (entry.name !== null) this.begun.delete(entry.name)
        return
      case 'abandoned':
        this.begun.delete(entry.name)
        if (entry.meta.undo === true) this.toUndo.set(entry.name, entry.seq)
        return
      case 'step-succeeded':
      case 'step-failed':
        this.begun.delete(entry.name)
        if (entry.meta.undo === true) this.toUndo.set(entry.name, entry.seq)
        else this.toUndo.delete(entry.name)
        return
      case 'undone':
        this.toUndo.delete(entry.name)
        return
      case 'undo-failed':
        this.failed.push(entry.name)
        this.toUndo.delete(entry.name)
        return
      case 'amended':
        if (entry.meta.dropped)
          for (const [name, seq] of this.toUndo) if (seq === entry.meta.seq) this.toUndo.delete(name)
        return
      default:
        return
    }
  }
}
