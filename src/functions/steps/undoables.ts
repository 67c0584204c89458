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
  /** Steps of which an attempt may have happened, though none has succeeded. */
  private unsure: Set<StepCall> | null = null
  private isSorted = true

  constructor(history: History) {
    this.history = history
  }

  get isEmpty(): boolean {
    return this.list.length === 0 && this.history.toUndo.size === 0 && this.history.begun.size === 0
  }

  /** The body has said how each step that the journal knows is undone. */
  get isComplete(): boolean {
    // The size first: this is asked with every turn of a replay, and a run may have thousands of steps.
    return this.history.toUndo.size === 0 && this.missing.length === 0
  }

  /** Steps of the journal of which the body did not say how they are undone. */
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
    if (data === null) this.markUnsure(call)
    const place = { seq, kind: 'step-succeeded', name: call.name } as const
    this.list.push({ call, seq, data, isKept: false, place, failures: 0, dueAt: null })
  }

  private markUnsure(call: StepCall): void {
    this.unsure ??= new Set()
    this.unsure.add(call)
  }

  /** An attempt of that step may have happened, and the journal says so: it is undone regardless of later outcomes. */
  isUnsure(call: StepCall): boolean {
    return this.unsure?.has(call) === true
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
    const isBegun = history.begun.has(call.name)
    if ((!isBegun && !history.toUndo.has(call.name)) || call.undo === undefined || recalled.has(call.name)) return
    recalled.add(call.name)
    if (isBegun) this.unresolved.push(call)
    const known = history.takeToUndo(call.name)
    if (known === undefined) return
    const { seq, result } = known
    if (result === null) this.markUnsure(call)
    const failed = history.failedUndo(call.name)
    this.isSorted = false
    // The entry itself is not kept: a parked frame may rest for a long time.
    const place = { seq: result?.seq ?? seq, kind: result?.kind ?? 'step-succeeded', name: result?.name ?? call.name }
    this.list.push({
      call,
      seq,
      data: result?.data ?? null,
      isKept: true,
      place,
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
