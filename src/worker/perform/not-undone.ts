// What a run leaves behind that ends without undoing anything: the steps of its journal that a frame would have undone. By the
// same rules as the history of a frame, which nobody has who gives a run up.

import type { Entry } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import { bytesAtOnce } from '../../engine/batch/message-reader.ts'
import { noMessages } from '../../engine/batch/mailer.ts'
import type { Store } from '../../store.ts'

const entriesAtOnce = 1_000

/** The names of its steps that may have happened and are not undone. Those whose undo has failed come first. */
export async function stepsNotUndone(store: Pick<Store, 'load'>, run: Run): Promise<readonly string[]> {
  if (run.undo === 'none') return []
  const steps = new Steps()
  for (let after = run.base - 1; after < run.seq;) {
    const request = { runId: run.id, after, limit: entriesAtOnce, mail: noMessages }
    const [page] = await store.load([request], bytesAtOnce)
    const last = page?.entries.at(-1)
    if (last === undefined) break
    for (const entry of page?.entries ?? []) steps.add(entry)
    after = last.seq
  }
  return steps.notUndone
}

class Steps {
  private readonly failed: string[] = []
  /** By name: the entry that says so. */
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
