// How a run begins anew: its schema checks the new input, then the body is over, as if it had returned, and leaves by the same
// way (complete-body.ts): each call that it has made takes place, and children that the run must outlast end. Then one
// entry takes the place of all before it.
//
// A body that goes on beside the call may still throw, for example the error of a step that it awaits together with it. Then
// the run fails, or is tried again, and does not begin anew.

import type { Definition } from '../../core/definition/definition.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Run } from '../../core/model/run.ts'
import type { Exit } from '../../core/runtime/exit.ts'
import { shown } from '../../core/text/suggest.ts'
import { refusalOf } from '../../core/payload/refusal.ts'
import { quotedText } from '../../core/text/printable.ts'
import { completeBody, type LeavingFrame } from './complete-body.ts'
import { encodeNext } from '../replay/journal-text.ts'
import { waitTargetsIn } from '../waits/wake.ts'

/** The exit that it is a part of, and that makes it. */
interface ContinuingFrame extends LeavingFrame {
  send(exit: Exit): void
  fail(error: unknown): void
}

export class ContinueAsNew {
  /** How many inputs a schema looks at: until it has, the run can neither park nor pause. */
  private checks = 0
  private isAccepted = false
  /** The end of a body that returned although its run is to begin anew: taken if the run cannot begin anew. */
  private otherwise: (() => void) | null = null
  private readonly frameExit: ContinuingFrame

  constructor(frameExit: ContinuingFrame) {
    this.frameExit = frameExit
  }

  get isChecking(): boolean {
    return this.checks > 0
  }

  /** A run that begins anew does so, whether the body awaits that or not. False if it does not: the body has just returned. */
  precedes(returned: () => void): boolean {
    if (!this.isChecking && !this.isAccepted) return false
    this.otherwise = returned
    return true
  }

  async begin(target: Definition | null, input: unknown): Promise<never> {
    const { state } = this.frameExit
    const next = target ?? state.body.definition
    let value: unknown
    this.checks += 1
    try {
      value = await next.validate(input)
      checkSameKey(next, value, state.run)
      // An input that cannot be stored rejects the call here, while the body can still catch it.
      if (state.isWriting) encodeNext(state, value, 'continued', null)
    } catch (error) {
      this.checks -= 1
      state.scheduleTurn()
      if (state.isWriting && !this.isChecking && !this.isAccepted) this.otherwise?.()
      throw refusalOf(error, `The input of ${quotedText(next.type)}`)
    }
    this.accept(next, value)
    return new Promise(() => undefined)
  }

  private accept({ type, version, feed }: Definition, input: unknown): void {
    const { frameExit } = this
    const { state, waits } = frameExit
    this.checks -= 1
    state.scheduleTurn()
    if (!state.isWriting || this.isAccepted) return
    this.isAccepted = true
    state.endBody()
    completeBody(frameExit, 'began anew', () => {
      let data: string
      try {
        data = encodeNext(state, input, 'continued', null)
      } catch (error) {
        return frameExit.fail(error)
      }
      const unwatches = [...waitTargetsIn(waits.idle.conditions)]
      const attachment = unwatches.length === 0 ? null : { unwatches }
      state.writer.append({ kind: 'continued', name: null, meta: { type, version }, data }, attachment)
      frameExit.send({ status: null, due: null, continues: { type, version, feed } })
    })
  }
}

/** A run keeps its key when it begins anew. Where the key is read from the input, another one is another run. */
function checkSameKey({ type, unique }: Definition, input: unknown, { id, key }: Run): void {
  if (unique === null) return
  const next = unique.keyOf(input)
  if (next === key) return
  throw new HoldfastError(
    'INVALID_INPUT',
    `Run ${id} cannot go on as ${quotedText(type)} with this input: it has the key ${shown(key)}, and the input says ${shown(next)}. Start another run for that.`,
    { details: { type, key, next } },
  )
}
