// Callers whose inputs are on their way to the store for too long: the row of the instance may be locked by a transaction that
// nobody ends. They get an answer all the same. What is on its way may still be committed; what is not is not sent any more.
//
// One timer for the callers of an instance, for the first of them. While an input lies in the mailbox its caller is not one of
// them: it learns there who holds the instance.

import { formatMs } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import type { Cancel } from '../../core/runtime/ports.ts'
import { quotedText } from '../../core/text/printable.ts'
import type { Call, CallWatch, DecidingActor } from './deciding-actor.ts'

/** The store may be slow for so long besides: `timeout` bounds the wait for others. */
const storeMs = 5_000

/** Those whose callers have no answer yet. */
export function stillWaiting(calls: readonly Call[]): readonly Call[] {
  return calls.some(({ isGivenUp }) => isGivenUp) ? calls.filter(({ isGivenUp }) => !isGivenUp) : calls
}

export class LateCalls implements CallWatch {
  private readonly actor: Pick<DecidingActor, 'engine' | 'definition' | 'id'>
  private readonly open = new Set<Call>()
  private cancel: Cancel | null = null

  constructor(actor: LateCalls['actor']) {
    this.actor = actor
  }

  /** The same, watched until its caller has an answer. */
  watched({ resolve, reject, ...given }: Call): Call {
    const settled =
      <Value>(settle: (value: Value) => void) =>
      (value: Value): void => {
        this.done(call)
        settle(value)
      }
    const call: Call = { ...given, resolve: settled(resolve), reject: settled(reject) }
    this.watch(call)
    return call
  }

  watch(call: Call): void {
    this.open.add(call)
    if (this.cancel === null) this.arm()
  }

  done(call: Call): void {
    this.open.delete(call)
    if (this.open.size > 0) return
    this.cancel?.()
    this.cancel = null
  }

  private arm(): void {
    const { clock } = this.actor.engine.ports
    const first = Math.min(...[...this.open].map(({ until }) => until))
    this.cancel = clock.after(Math.max(0, first + storeMs - clock.monotonic()), () => this.giveUpLate())
  }

  private giveUpLate(): void {
    this.cancel = null
    const now = this.actor.engine.ports.clock.monotonic()
    for (const call of this.open) {
      if (call.until + storeMs > now) continue
      call.isGivenUp = true
      call.reject(this.tookTooLong(call))
    }
    if (this.open.size > 0) this.arm()
  }

  private tookTooLong({ command: commandId, timeoutMs }: Call): HoldfastError {
    const { definition, id } = this.actor
    const { type } = definition
    const repeat =
      commandId === null
        ? 'Look at its state before you send the input again, or give inputs a commandId: then a repetition is harmless.'
        : `Executing it again with the commandId ${quotedText(commandId)} gives its outcome.`
    return new HoldfastError(
      'EXECUTE_TIMEOUT',
      `The store has not answered for instance ${quotedText(id)} of decider ${quotedText(type)} within ${formatMs(timeoutMs)} and ` +
        `${formatMs(storeMs)} more: another transaction may have locked it. The input may still be decided. ${repeat}`,
      { details: { type, id, commandId } },
    )
  }
}
