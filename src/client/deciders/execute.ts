// Has an input decided: checked here, and committed by the instance's actor in this process, or by a worker that holds it.

import { isDecider, type DeciderDefinition, type Executed } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import { toMs } from '../../core/definition/duration.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { checkKey } from '../../core/model/key.ts'
import { assertNotPure } from '../../core/runtime/pure-call.ts'
import { inspected } from '../../core/text/inspect.ts'
import { wrongOption } from '../../core/text/check-option.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import { notDecider } from '../../engine/deciders/cached-instance.ts'
import type { Engine } from '../../engine/engine.ts'
import { awaitProjection } from '../../engine/projections/await-projection.ts'
import { abortable } from '../abort-option.ts'
import type { ExecuteOptions } from './executor.ts'

/** An input that is checked, and the instance that it is for. */
export interface CheckedInput {
  readonly definition: DeciderDefinition
  readonly id: string
  readonly input: unknown
  readonly command: string | null
  readonly timeoutMs: number
}

const optionNames = ['commandId', 'timeout', 'abortSignal']

/** How long an input waits for a holder of the run: until a worker that died is found dead, and longer. */
const usualTimeoutMs = 60_000

/** @internal */
export async function executeInput(
  engine: Engine,
  decider: Definition | string,
  input: unknown,
  given: ExecuteOptions = {},
  call = 'execute()',
): Promise<Executed> {
  assertNotPure(`holdfast.${call}`)
  const { waitFor, ...options } = checkedOptions(given, call)
  const name = waitFor === undefined ? null : projectionName(waitFor)
  const checked = await checkedInput(engine, { decider, input, options, call })
  return abortable(call, options.abortSignal, async () => {
    const until = engine.ports.clock.monotonic() + checked.timeoutMs
    const answer = await decided(engine, checked)
    if (name !== null) await awaitProjection(engine, name, Math.max(0, until - engine.ports.clock.monotonic()))
    return answer
  })
}

function checkedOptions(options: ExecuteOptions, call: string): ExecuteOptions {
  checkOptions(options, [...optionNames, 'waitFor'], call)
  return options
}

function projectionName(given: unknown): string {
  const name = typeof given === 'object' && given !== null ? (given as { readonly name?: unknown }).name : given
  if (typeof name === 'string' && name !== '') return name
  throw wrongOption('waitFor of execute()', 'a projection or the name of one', given)
}

/** What became of an input, with values that the caller may change. @internal */
export async function decided(engine: Engine, { definition, ...given }: CheckedInput): Promise<Executed> {
  const answer = await engine.instances.execute(definition, given)
  if (answer.outcome !== 'accepted') return answer
  return withOwnState(answer)
}

/**
 * The events and the state are those of the cached instance: the caller gets copies. Of the state, which may be large, only
 * when it is read.
 */
export function withOwnState({ events, state }: { readonly events: readonly unknown[]; readonly state: unknown }) {
  let own: { readonly state: unknown } | null = null
  const answer = {
    outcome: 'accepted' as const,
    events: events.map(copied),
    get state(): unknown {
      own ??= { state: copied(state) }
      return own.state
    },
  }
  // `console.log(answer)` shows the state, and not that it is read later.
  Object.defineProperty(answer, inspected, { value: () => ({ ...answer }) })
  return answer
}

/** What cannot be copied belongs to the author alone: an instance of a class that `evolve` has made. */
export function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  try {
    return structuredClone(value)
  } catch {
    return value
  }
}

interface GivenInput {
  readonly decider: Definition | string
  readonly input: unknown
  readonly options: ExecuteOptions
  /** The method, in errors. */
  readonly call: string
}

/** @internal */
export async function checkedInput(
  engine: Engine,
  { decider, input, options, call }: GivenInput,
): Promise<CheckedInput> {
  engine.assertOpen()
  checkOptions(options, optionNames, call, {
    waitFor: 'Only holdfast.execute() waits for a projection: it knows when the input is decided.',
  })
  const { timeout = usualTimeoutMs } = options
  const timeoutMs = toMs(timeout, `The timeout of ${call}`)
  const command = options.commandId === undefined ? null : checkCommandId(options.commandId)
  const definition = deciderOf(engine, decider)
  const value = await definition.validate(input)
  return { definition, id: definition.model.idOf(value), input: value, command, timeoutMs }
}

/** The decider that is registered here, in its newest version if it is only named. @internal */
export function deciderOf({ registry }: Pick<Engine, 'registry'>, decider: Definition | string): DeciderDefinition {
  if (typeof decider !== 'string' && !isNamed(decider)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `A decider is what decider() returns, or the name of one that is registered. Got ${shown(decider)}.`,
    )
  }
  const found =
    typeof decider === 'string'
      ? registry.get(decider, registry.versions(decider).at(-1) as number)
      : registry.own(decider)
  if (isDecider(found)) return found
  throw notDecider(found.type)
}

function isNamed(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'type' in given && 'version' in given
}

/** Ids of messages that the engine itself sends begin like this. */
const reserved = ['ended:', 'refused:', 'broadcast:']

function checkCommandId(id: unknown): string {
  const text = checkKey(id, 'A command id')
  if (!reserved.some((prefix) => text.startsWith(prefix))) return text
  throw new HoldfastError('INVALID_NAME', `A command id cannot begin like an id of the engine. Got ${shown(id)}.`)
}
