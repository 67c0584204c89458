// The steps of a run that may have happened and say how they are undone, as far as this frame knows them: the journal knows
// which there are, the body how each is undone. They are undone in the reverse order of their entries, each at most once.
//
// A step that succeeded is undone with its result. One of which an attempt was abandoned or timed out may have happened all the
// same, also if a later attempt failed: it is undone without one. One that was under way when its process died is attempted
// once more before, so that its result is known.

import type { Entry } from '../../core/model/entry.ts'
import type { StepCall } from '../frame/body-call.ts'
import type { History } from '../replay/history.ts'

export interface Undoable {
  readonly call: StepCall
  readonly seq: number
  /** Its result, and its place in the journal; null if the result is unknown. */
  readonly data: string | null
  /** The data is as the journal keeps it: it may lie elsewhere. */
  readonly isKept: boolean
  readonly place: Pick<Entry, 'seq' | 'kind' | 'name'>
  /** Attempts to undo it that failed. */
  failures: number
  /** When the next attempt may begin. */
  dueAt: number | null
}

export class Undoables {
  private readonly history: History
  private readonly list: Undoable[] = []
  private readonly recalled = new Set<string>()
  /** Steps that were under way when their process died, and were not attempted since. */
  private unresolved: StepCall[] = []
  /** Steps of which an attempt of this frame may have happened, though none has succeeded. */
  private unsure: Set<StepCall> | null = null
  private isSorted = true

  constructor(history: History) {
    this.history = history
  }

  get isEmpty(): boolean {
    return this.list.length === 0 && this.history.toUndo.size === 0 && this.history.begun.size === 0
  }

  /** The body has told how each of those is undone that the journal knows. */
  get isComplete(): boolean {
    // The count first: this is asked with every turn of a replay, and a run may have thousands of steps.
    return this.recalled.size >= this.history.toUndo.size && this.missing.length === 0
  }

  /** Steps of the journal of which the body did not tell how they are undone. */
  get missing(): readonly string[] {
    const { toUndo, begun } = this.history
    return [...new Set([...toUndo.keys(), ...begun.keys()])].filter((name) => !this.recalled.has(name))
  }

  /** That step is not recorded after all. */
  drop(call: StepCall): void {
    const at = this.list.findIndex((one) => one.call === call)
    if (at !== -1) this.list.splice(at, 1)
  }

  /** A step has just been recorded; `data` is null if its result is unknown. */
  add(call: StepCall, seq: number, data: string | null): void {
    if (this.recalled.has(call.name) || this.unsure?.has(call) === true) this.drop(call)
    if (data === null) {
      this.unsure ??= new Set()
      this.unsure.add(call)
    }
    const place = { seq, kind: 'step-succeeded', name: call.name } as const
    this.list.push({ call, seq, data, isKept: false, place, failures: 0, dueAt: null })
  }

  /** An attempt of that step may have happened, and the journal says so: it is undone regardless of later outcomes. */
  isUnsure(call: StepCall): boolean {
    return this.unsure?.has(call) === true || this.history.toUndo.has(call.name)
  }

  /** There are steps whose outcome is unknown. */
  get hasUnresolved(): boolean {
    return this.unresolved.some(({ name }) => this.history.begun.has(name))
  }

  /** Takes out the steps that must be attempted once more, because their outcome is unknown. */
  takeUnresolved(): readonly StepCall[] {
    const calls = this.unresolved.filter(({ name }) => this.history.begun.has(name))
    this.unresolved = []
    return calls
  }

  /** The body asks again for a step that was recorded before, or begun. */
  recall(call: StepCall): void {
    const { history, recalled } = this
    const known = history.toUndo.get(call.name)
    const isBegun = history.begun.has(call.name)
    if ((known === undefined && !isBegun) || call.undo === undefined || recalled.has(call.name)) return
    recalled.add(call.name)
    if (isBegun) this.unresolved.push(call)
    if (known === undefined) return
    const failed = this.history.failedUndo(call.name)
    this.isSorted = false
    this.list.push({
      call,
      seq: known.seq,
      data: known.result?.data ?? null,
      isKept: true,
      place: known.result ?? { seq: known.seq, kind: 'step-succeeded', name: call.name },
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
