// The laws of a decider, checked over inputs that a test makes up:
//
//   total   `evolve` takes every event that `decide` returns, and `isTerminal` every state
//   pure    `decide` returns the same twice, and uses neither the clock nor chance nor anything else of the machine;
//           neither function changes its arguments
//   fold    the state that a later fold of the journal has is the one that the decision had
//
// The inputs come in any iterable, so any source of them will do. With fast-check it is the body of a property:
//
//   fc.assert(fc.property(fc.array(anInput), (inputs) => checkLaws(order, inputs)))

import assert from 'node:assert/strict'
import type { DeciderInstance } from '../../core/definition/decider-model.ts'
import { HoldfastError, isHoldfastError, messageOf } from '../../core/errors/error.ts'
import type { Entry } from '../../core/model/entry.ts'
import { jsonCodec } from '../../core/payload/codec.ts'
import { Payloads } from '../../core/payload/payload.ts'
import type { DeciderTypes } from '../../core/definition/decider-model.ts'
import type { Decider } from '../../deciders/decider.ts'
import { systemDigest } from '../../system.ts'
import { holdAmbient, withAmbient, type AmbientUse } from '../kit/ambient.ts'
import { deepFrozen } from './deep-frozen.ts'

export interface LawOptions {
  /** The time of the first input; each later one comes a second later. @default 0 */
  readonly now?: Date | number
}

type Law = 'total' | 'pure' | 'fold'

/** How much time passes between two inputs. */
const stepMs = 1_000

const runId = '00000000-0000-7000-8000-000000000000'
const payloads = new Payloads(jsonCodec())

/**
 * Decides inputs one after the other, as one instance would, and checks the laws of a decider at each. Throws LAW_BROKEN with
 * the law and the input. An input for which `decide` throws breaks none: it fails alone, as in production.
 *
 * @example
 * checkLaws(order, [{ type: 'Create', orderId: '1' }, { type: 'Pay', orderId: '1' }])
 */
export function checkLaws<Types extends DeciderTypes>(
  decider: Decider<Types>,
  inputs: Iterable<Types['anyInput']>,
  { now = 0 }: LawOptions = {},
): void {
  const release = holdAmbient()
  try {
    const trial = new Trial(decider, Number(now))
    for (const input of inputs) trial.check(input)
  } finally {
    release()
  }
}

/** One instance, as far as its inputs were checked. */
class Trial {
  private readonly decider: Decider
  private readonly instance: DeciderInstance
  private readonly entries: Entry[] = []
  private now: number

  constructor(decider: Decider, now: number) {
    this.decider = decider
    this.instance = this.open()
    this.now = now
  }

  check(input: unknown): void {
    this.checkDecide(input)
    const uses: AmbientUse[] = []
    watched(uses, this.now, () => this.commit(input))
    const [use] = uses
    if (use !== undefined)
      throw this.broken('pure', input, `${use.what} was used at ${use.place ?? 'an unknown place'}`)
    this.now += stepMs
    const again = this.open()
    again.apply(this.entries)
    const difference = differenceOf({ result: this.instance.state }, { result: again.state })
    if (difference !== null) {
      throw this.broken('fold', input, `another fold of its journal has another state. ${difference}`)
    }
  }

  /** Calls `decide` twice, with arguments that cannot be changed. */
  private checkDecide(input: unknown): void {
    const { now, instance } = this
    const { rules } = this.decider
    const uses: AmbientUse[] = []
    const decideOnce = (): unknown => {
      const state = deepFrozen(instance.state)
      return watched(uses, now, () => rules.decide(state, deepFrozen(input) as never, Object.freeze({ now })))
    }
    const [first, second] = [outcomeOf(decideOnce), outcomeOf(decideOnce)]
    const [use] = uses
    if (use !== undefined) {
      throw this.broken('pure', input, `decide used ${use.what} at ${use.place ?? 'an unknown place'}`)
    }
    if (isOfFrozen(first)) {
      throw this.broken('pure', input, `decide changed its arguments: ${first.thrown.message}`, first.thrown)
    }
    const difference = differenceOf(first, second)
    if (difference === null) return
    throw this.broken('pure', input, `decide returned something else the second time. ${difference}`)
  }

  private commit(input: unknown): void {
    const { instance, entries, now } = this
    const { answers, append } = instance.decide([{ kind: 'call', input, command: null }], { now })
    const [answer] = answers
    if (answer?.outcome === 'failed') {
      const { cause } = answer.error
      if (isHoldfastError(cause, 'EVENT_UNREADABLE') && isOfFrozen({ thrown: cause.cause })) {
        throw this.broken('pure', input, `evolve changed its arguments: ${messageOf(cause.cause)}`, cause)
      }
      if (isHoldfastError(cause, 'EVENT_UNREADABLE')) throw this.broken('total', input, cause.message, cause)
    }
    if (append.length === 0) return
    for (const [index, draft] of append.entries()) {
      const transition = index === 0 ? `t${entries.length}` : null
      entries.push({ ...draft, seq: entries.length + 1, at: now, transition })
    }
    instance.committed(now)
  }

  private open(): DeciderInstance {
    const ports = { digest: systemDigest, random: { uint32: () => 0 } }
    return this.decider.model.open({ runId, id: 'test', payloads, ports })
  }

  private broken(law: Law, input: unknown, why: string, cause?: unknown): HoldfastError {
    const { type } = this.decider
    return new HoldfastError(
      'LAW_BROKEN',
      `Decider "${type}" breaks the law "${law}" at ${shownInput(input)}: ${why}`,
      {
        details: { law, type, input: shownInput(input) },
        ...(cause === undefined ? {} : { cause }),
      },
    )
  }
}

type Called = { readonly result: unknown } | { readonly thrown: unknown }

function outcomeOf(work: () => unknown): Called {
  try {
    return { result: work() }
  } catch (thrown) {
    return { thrown }
  }
}

/** Whether a function failed because it wrote to what it was given. */
function isOfFrozen(called: Called): called is { readonly thrown: TypeError } {
  if (!('thrown' in called) || !(called.thrown instanceof TypeError)) return false
  return /read only|not extensible|Cannot delete|readonly/.test(called.thrown.message)
}

/** The difference of two results; null if they are the same. Of errors only the messages count. */
function differenceOf(first: Called, second: Called): string | null {
  const plain = (called: Called): unknown => ('thrown' in called ? { thrown: messageOf(called.thrown) } : called)
  try {
    assert.deepStrictEqual(plain(second), plain(first))
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Calls pure code while uses of the machine are noticed. */
function watched<Result>(uses: AmbientUse[], now: number, work: () => Result): Result {
  // A clock that moves and a chance that changes: what depends on them is different the second time.
  const scope = {
    now: () => now + uses.length + 1,
    random: () => (uses.length % 10) / 10,
    onUse: (use: AmbientUse) => void uses.push(use),
  }
  return withAmbient(scope, work)
}

function shownInput(input: unknown): string {
  try {
    return (JSON.stringify(input) ?? String(input)).slice(0, 500)
  } catch {
    return 'an input'
  }
}
