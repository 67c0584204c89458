// One execution of the body, from its input to its result or error. For a run that is to be undone the body is called only to
// collect its undo functions: then its result means nothing.

import { damagedRow } from '../../core/payload/codec.ts'
import { shownEntry } from '../../core/rows/engine-notes.ts'
import { callBody } from '../../core/runtime/ports.ts'
import type { RetryPolicy } from '../../core/definition/retry.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { Run } from '../../core/model/run.ts'
import type { CallPlaces } from '../replay/call-site.ts'
import type { FrameExit } from './frame-exit.ts'
import type { Context } from '../api/context.ts'
import { createContext } from '../api/function-context.ts'
import { Scope } from '../api/call-identity.ts'
import type { Settler } from '../replay/settler.ts'
import type { FrameApi } from './frame-api.ts'

export interface FunctionBody {
  readonly policy: RetryPolicy
  /** How many steps of a run may be under way at once. */
  readonly parallel: number
  readonly body: (ctx: Context, input: never) => unknown
  readonly definition: Definition
  /** Where its calls stand in the code. */
  readonly places: CallPlaces
}

interface BodyExecutionDeps extends FrameApi {
  readonly run: Run
  readonly settler: Settler
  readonly frameExit: FrameExit
  /** The body went on although the run is parked, or about to be. */
  spoil(): void
}

export class BodyExecution {
  /** The body has come to its end, or cannot go on. */
  hasEnded = false
  /** The body was called. */
  hasBegun = false
  private readonly deps: BodyExecutionDeps
  private readonly body: FunctionBody['body']

  constructor(deps: BodyExecutionDeps, body: FunctionBody['body']) {
    this.deps = deps
    this.body = body
  }

  /** Calls the body with the input of the run, if it goes on. */
  begin(): void {
    const { deps } = this
    if (!deps.isLive || this.isDamaged()) return
    deps.settler.payloads.fetch(deps.history.input.data, (text) => this.call(text))
  }

  /** Calls the body of a run whose journal says that it fails, as far as that is needed. */
  beginFailing(failing: NonNullable<BodyExecutionDeps['history']['failing']>): void {
    const { deps } = this
    if (this.isDamaged()) return
    deps.settler.payloads.read(failing.data, failing, (failure) => {
      deps.frameExit.goOnFailing(failure, failing.meta?.cause ?? null)
      this.begin()
    })
  }

  /** A journal that the engine did not write so is not replayed: the run is paused as it is. */
  private isDamaged(): boolean {
    const { deps } = this
    const { damaged } = deps.history
    if (damaged === null) return false
    const { seq, name } = damaged.entry
    const place = deps.host.payloads.place(deps.runId, seq, 'damaged', name)
    deps.unreadable(damagedRow(place, shownEntry(damaged.entry), damaged.why), damaged.entry)
    return true
  }

  private call(text: string): void {
    const { deps } = this
    deps.scheduleTurn()
    let input: unknown
    try {
      input = deps.decode(text, deps.history.input)
    } catch (error) {
      return deps.unreadable(error, deps.history.input)
    }
    const { body } = this
    this.hasBegun = true
    try {
      const ctx = createContext(deps, new Scope(), deps.run)
      const result = deps.host.ports.bodies === undefined ? body(ctx, input as never) : this.watched(ctx, input)
      Promise.resolve(result).then(
        (value) => this.returned(value),
        (error: unknown) => this.threw(error),
      )
    } catch (error) {
      this.threw(error)
    }
  }

  /** Apart from `call`, which would make a closure and its scope with each run, and only tests need them. */
  private watched(ctx: Context, input: unknown): unknown {
    const { body, deps } = this
    return callBody(deps.host.ports, deps.run.type, () => body(ctx, input as never))
  }

  private returned(value: unknown): void {
    this.hasEnded = true
    if (this.deps.isWriting) this.deps.frameExit.returned(value)
    else this.endedElsewhere()
  }

  private threw(error: unknown): void {
    this.hasEnded = true
    if (this.deps.isWriting) this.deps.frameExit.threw(error)
    else this.endedElsewhere()
  }

  private endedElsewhere(): void {
    this.deps.spoil()
    this.deps.scheduleTurn()
  }
}
