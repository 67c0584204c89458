// The steps of a run that say how they are undone, as far as this frame knows them: the journal knows which there are, the
// body how each is undone. They are undone in the reverse order of their entries, each at most once.

import type { Place } from '../core/codec.ts'
import type { StepCall } from './call.ts'
import type { History } from './history.ts'

export interface Undoable {
  readonly call: StepCall
  readonly seq: number
  /** Its result, and where that stands. */
  readonly data: string
  /** The data is as the journal keeps it: it may lie elsewhere. */
  readonly isKept: boolean
  readonly place: Omit<Place, 'runId'>
  /** Attempts to undo it that failed. */
  failures: number
  /** When the next attempt may begin. */
  dueAt: number | null
}

export class Undoables {
  private readonly history: History
  private readonly list: Undoable[] = []
  private readonly recalled = new Set<string>()
  private isSorted = true

  constructor(history: History) {
    this.history = history
  }

  get isEmpty(): boolean {
    return this.list.length === 0 && this.history.toUndo.size === 0
  }

  /** The body has told how each of those is undone that the journal knows. */
  get isComplete(): boolean {
    return this.recalled.size === this.history.toUndo.size
  }

  /** Steps of the journal of which the body did not tell how they are undone. */
  get missing(): readonly string[] {
    return [...this.history.toUndo.keys()].filter((name) => !this.recalled.has(name))
  }

  /** That step is not recorded after all. */
  drop(call: StepCall): void {
    const at = this.list.findIndex((one) => one.call === call)
    if (at !== -1) this.list.splice(at, 1)
  }

  /** A step has just been recorded. */
  add(call: StepCall, seq: number, data: string): void {
    this.list.push({ call, seq, data, isKept: false, place: { seq, name: call.name }, failures: 0, dueAt: null })
  }

  /** The body asks again for a step that was recorded before. */
  recall(call: StepCall): void {
    const outcome = this.history.toUndo.get(call.name)
    if (outcome === undefined || call.undo === undefined || this.recalled.has(call.name)) return
    this.recalled.add(call.name)
    const { seq, name, data } = outcome.amended ?? outcome.entry
    const failed = this.history.failedUndo(call.name)
    this.isSorted = false
    this.list.push({
      call,
      seq: outcome.seq,
      data: data ?? '',
      isKept: true,
      place: { seq, name },
      failures: failed?.meta.attempt ?? 0,
      dueAt: failed === undefined ? null : failed.at + failed.meta.delayMs,
    })
  }

  /** Takes out the one that was recorded last. */
  takeLast(): Undoable | undefined {
    if (!this.isSorted) this.list.sort((a, b) => a.seq - b.seq)
    this.isSorted = true
    return this.list.pop()
  }
}
