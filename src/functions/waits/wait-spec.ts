// The name and the cases of a wait, by the arguments of the call that makes it. Each function throws if they are wrong, before
// any identity is taken.

import { checkSignalName, isTopic, type Topic } from '../../core/definition/declared-topic.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { toMs, type Duration } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkWaits } from '../api/call-checks.ts'
import { checkSchema, childSpec, timeOf } from '../api/call-options.ts'
import type { ChildOptions, ReceiveOptions } from '../api/context.ts'
import { TakenMessage, type Answer } from '../sends/message.ts'
import { Wait } from './wait.ts'
import { childCase, signalCase, timeCase, type WaitCase } from './wait-case.ts'

export interface WaitSpec {
  readonly name: string
  readonly cases: readonly WaitCase[]
}

export function sleepOf(duration: Duration): WaitSpec {
  const ms = toMs(duration, 'ctx.sleep')
  return { name: 'sleep', cases: [timeCase({ kind: 'delay', ms, begun: null })] }
}

/** Times are whole milliseconds in every store, and none fires early. */
export function sleepUntilOf(time: Date | number): WaitSpec {
  return { name: 'sleep', cases: [timeCase({ kind: 'time', at: Math.ceil(timeOf(time)) })] }
}

/** `answer` sends the answers to messages that the body asks for as such. */
export function receiveOf<Payload>(
  sender: string | Topic,
  options: ReceiveOptions<Payload> & { readonly message?: boolean },
  answer: Answer,
): WaitSpec {
  const name = isTopic(sender) ? sender.name : checkSignalName(sender, 'A signal')
  const schema = checkSchema(options, name)
  const asMessage = (id: string, value: unknown): TakenMessage => new TakenMessage(name, id, value, answer)
  const wrap = options.message === true ? asMessage : undefined
  return { name, cases: [signalCase(sender, schema, wrap)] }
}

export function childOf(workflow: Definition, input: unknown, options: ChildOptions | undefined): WaitSpec {
  const spec = childSpec('child', workflow, input, options)
  return { name: workflow.type, cases: [childCase(spec)] }
}

/** Each case is under the tag of its wait. None of the waits is taken if one of them is wrong. */
export function raceOf(given: unknown): WaitSpec {
  checkWaits(given, 'ctx.race')
  const waits = given as Readonly<Record<string, Wait<unknown>>>
  const failure = Wait.failureOf(waits)
  if (failure !== null) throw failure.error
  const cases = Wait.tagged(waits)
  if (cases.length === 0 || new Set(cases.map(({ tag }) => tag)).size < cases.length) {
    throw new HoldfastError('INVALID_OPTION', 'ctx.race needs at least one wait, and a name of its own for each.')
  }
  return { name: 'race', cases }
}

/** The results of all waits, in the shape of the argument. */
export function allOf(given: unknown): Promise<unknown> {
  checkWaits(given, 'ctx.all')
  if (Array.isArray(given)) return Promise.all(given as readonly Wait<unknown>[])
  const entries = Object.entries(given as Readonly<Record<string, Wait<unknown>>>)
  const values = Promise.all(entries.map(([, wait]) => wait))
  return values.then((all) => Object.fromEntries(entries.map(([key], at) => [key, all[at]])))
}
