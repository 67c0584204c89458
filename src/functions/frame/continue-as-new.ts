// How a run begins anew: its schema checks the new input, the waits that the body has made begin, children that the run must
// outlast end, and then one entry takes the place of all before it.

import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import type { Exit } from '../../core/runtime/exit.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Drain } from './drain.ts'
import type { FrameState } from './frame-state.ts'
import type { RecordedEntry } from '../replay/history.ts'
import type { Settler } from '../replay/settler.ts'
import { encodeNext } from '../replay/journal-text.ts'
import type { Waits } from '../waits/waits.ts'
import { waitTargetsIn } from '../waits/wake.ts'

/** The exit that it is a part of, and that makes it. */
interface LeavingFrame {
  readonly state: FrameState
  readonly settler: Settler
  readonly waits: Waits
  readonly drain: Drain
  outlast(next: () => void): void
  drifted(unrequested: RecordedEntry): void
  send(exit: Exit): void
}

export class ContinueAsNew {
  /** A schema looks at the input: until it has, the run can neither park nor pause. */
  isChecking = false
  private hasBegun = false
  /** The end of a body that returned although its run is to begin anew: taken if the run cannot begin anew. */
  private otherwise: (() => void) | null = null
  private readonly frameExit: LeavingFrame

  constructor(frameExit: LeavingFrame) {
    this.frameExit = frameExit
  }

  /** A run that begins anew does so, whether the body awaits that or not. False if it does not: the body has just returned. */
  precedes(returned: () => void): boolean {
    if (this.hasBegun) this.otherwise = returned
    return this.hasBegun
  }

  async begin(target: Definition | null, input: unknown): Promise<never> {
    const { state } = this.frameExit
    const next = target ?? state.body.definition
    this.isChecking = this.hasBegun = true
    try {
      const value = await next.validate(input)
      checkSameKey(next, value, state.run)
      // An input that cannot be stored rejects the call here, while the body can still catch it.
      if (state.isWriting) encodeNext(state, value, 'continued', null)
      this.isChecking = false
      if (state.isWriting) this.beginAnew(next, value)
    } catch (error) {
      this.isChecking = this.hasBegun = false
      state.scheduleTurn()
      if (state.isWriting) this.otherwise?.()
      throw error
    }
    state.scheduleTurn()
    return new Promise(() => undefined)
  }

  private beginAnew({ type, version, feed }: Definition, input: unknown): void {
    const { frameExit } = this
    const { state, settler, waits, drain } = frameExit
    const leave = (): void => {
      const data = encodeNext(state, input, 'continued', null)
      const unwatches = [...waitTargetsIn(waits.idle.conditions)]
      const attachment = unwatches.length === 0 ? null : { unwatches }
      state.writer.append({ kind: 'continued', name: null, meta: { type, version }, data }, attachment)
      frameExit.send({ status: null, due: null, continues: { type, version, feed } })
    }
    waits.beginMade()
    waits.whenBegun(() =>
      frameExit.outlast(() => {
        const unrequested = settler.leftBehind()
        if (unrequested === undefined) drain.begin({ leave, stop: null })
        else frameExit.drifted(unrequested)
      }),
    )
  }
}

/** A run keeps its key when it begins anew. Where the key is read from the input, another one is another run. */
function checkSameKey({ type, unique }: Definition, input: unknown, { id, key }: Run): void {
  if (unique === null) return
  const next = unique.keyOf(input)
  if (next === key) return
  throw new HoldfastError(
    'INVALID_INPUT',
    `Run ${id} cannot go on as "${type}" with this input: it has the key ${shown(key)}, and the input says ${shown(next)}. Start another run for that.`,
    { details: { type, key, next } },
  )
}
