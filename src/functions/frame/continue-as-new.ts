// How a run begins anew: its schema checks the new input, the waits that the body has made begin, children that the run must
// outlast end, and then one entry takes the place of all before it.

import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import type { Exit } from '../../core/runtime/exit.ts'
import { shown } from '../../core/text/suggest.ts'
import type { ExitPlan } from './drain.ts'
import type { RecordedEntry } from '../replay/history.ts'
import type { Settler } from '../replay/settler.ts'
import type { FrameApi } from './frame-api.ts'
import { waitTargetsIn } from '../waits/wake.ts'

interface ContinueAsNewDeps extends FrameApi {
  readonly settler: Settler
  leaveBy(way: ExitPlan): void
  bodyEnded(): void
  whenBegun(next: () => void): void
}

interface LeavingFrame {
  readonly deps: ContinueAsNewDeps
  readonly definition: Definition
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
    const { deps, definition } = this.frameExit
    const next = target ?? definition
    this.isChecking = this.hasBegun = true
    try {
      const value = await next.validate(input)
      checkSameKey(next, value, deps.run)
      // An input that cannot be stored rejects the call here, while the body can still catch it.
      if (deps.isWriting) deps.encode(value, 'continued', null)
      this.isChecking = false
      if (deps.isWriting) this.beginAnew(next, value)
    } catch (error) {
      this.isChecking = this.hasBegun = false
      deps.scheduleTurn()
      if (deps.isWriting) this.otherwise?.()
      throw error
    }
    deps.scheduleTurn()
    return new Promise(() => undefined)
  }

  private beginAnew({ type, version, feed }: Definition, input: unknown): void {
    const { frameExit } = this
    const { deps } = frameExit
    const leave = (): void => {
      const data = deps.encode(input, 'continued', null)
      const unwatches = [...waitTargetsIn(deps.idleCalls.conditions)]
      const attachment = unwatches.length === 0 ? null : { unwatches }
      deps.writer.append({ kind: 'continued', name: null, meta: { type, version }, data }, attachment)
      frameExit.send({ status: null, due: null, continues: { type, version, feed } })
    }
    deps.bodyEnded()
    deps.whenBegun(() =>
      frameExit.outlast(() => {
        const unrequested = deps.settler.leftBehind()
        if (unrequested === undefined) deps.leaveBy({ leave, stop: null })
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
