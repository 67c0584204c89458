// One execution of the body, from its input to what it returned or threw. A run that is to be undone needs its body only
// to tell how: then what the body comes to means nothing.

import { damagedRow } from '../core/codec.ts'
import { shownEntry } from '../core/engine-notes.ts'
import { callBody } from '../core/ports.ts'
import type { RetryPolicy } from '../core/retry.ts'
import type { Definition } from '../core/definition.ts'
import type { Run } from '../core/run.ts'
import type { CallPlaces } from './call-site.ts'
import type { Conclusion } from './conclusion.ts'
import type { Context } from './context.ts'
import { createContext } from './function-context.ts'
import { Scope } from './scope.ts'
import type { Settler } from './settler.ts'
import type { Stage } from './stage.ts'

export interface FunctionBody {
  readonly policy: RetryPolicy
  /** How many steps of a run may be under way at once. */
  readonly parallel: number
  readonly body: (ctx: Context, input: never) => unknown
  readonly definition: Definition
  /** Where its calls stand in the code. */
  readonly places: CallPlaces
}

interface Owner extends Stage {
  readonly run: Run
  readonly settler: Settler
  readonly conclusion: Conclusion
  /** The body went on although the run is parked, or about to be. */
  spoil(): void
}

export class Execution {
  /** The body has come to its end, or cannot go on. */
  hasEnded = false
  /** The body was called. */
  hasBegun = false
  private readonly owner: Owner
  private readonly body: FunctionBody['body']

  constructor(owner: Owner, body: FunctionBody['body']) {
    this.owner = owner
    this.body = body
  }

  /** Calls the body with the input of the run, if it goes on. */
  begin(): void {
    const { owner } = this
    if (!owner.isLive || this.isDamaged()) return
    owner.settler.fetch(owner.history.input.data, (text) => this.call(text))
  }

  /** Calls the body of a run that fails, because its journal says so, as far as that is needed. */
  beginFailing(failing: NonNullable<Owner['history']['failing']>): void {
    const { owner } = this
    if (this.isDamaged()) return
    owner.settler.fetch(failing.data, (text) => {
      let failure: unknown
      try {
        failure = owner.decode(text, failing)
      } catch (error) {
        return owner.unreadable(error, failing)
      }
      owner.conclusion.goOnFailing(failure, failing.meta?.cause ?? null)
      this.begin()
    })
  }

  /** A journal that the engine did not write so is not replayed: the run is paused as it is. */
  private isDamaged(): boolean {
    const { owner } = this
    const { damaged } = owner.history
    if (damaged === null) return false
    const { seq, name } = damaged.entry
    const place = owner.host.payloads.place(owner.runId, seq, 'damaged', name)
    owner.unreadable(damagedRow(place, shownEntry(damaged.entry), damaged.why), damaged.entry)
    return true
  }

  private call(text: string): void {
    const { owner } = this
    owner.stir()
    let input: unknown
    try {
      input = owner.decode(text, owner.history.input)
    } catch (error) {
      return owner.unreadable(error, owner.history.input)
    }
    const { body } = this
    this.hasBegun = true
    try {
      const ctx = createContext(owner, new Scope(), owner.run)
      const result = owner.host.ports.bodies === undefined ? body(ctx, input as never) : this.watched(ctx, input)
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
    const { body, owner } = this
    return callBody(owner.host.ports, owner.run.type, () => body(ctx, input as never))
  }

  private returned(value: unknown): void {
    this.hasEnded = true
    if (this.owner.isWriting) this.owner.conclusion.returned(value)
    else this.endedElsewhere()
  }

  private threw(error: unknown): void {
    this.hasEnded = true
    if (this.owner.isWriting) this.owner.conclusion.threw(error)
    else this.endedElsewhere()
  }

  private endedElsewhere(): void {
    this.owner.spoil()
    this.owner.stir()
  }
}
