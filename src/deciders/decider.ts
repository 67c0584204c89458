// `decider()`: the definition of an event-sourced workflow. This file checks the options, and makes the rules that the fold and
// the decisions work with.

import type { DeciderModel, DeciderTypes, EffectModel, TypedDecider } from '../core/definition/decider-model.ts'
import type { Definition, TypedDefinition } from '../core/definition/definition.ts'
import { toMs } from '../core/definition/duration.ts'
import { checkTags } from '../core/definition/labels.ts'
import { highestLimits } from '../core/definition/limits.ts'
import { retryNames, retryPolicy, retryPresets, type Retry } from '../core/definition/retry.ts'
import { isSchema, validate } from '../core/definition/schema.ts'
import { HoldfastError, messageOf } from '../core/errors/error.ts'
import { checkKey } from '../core/model/key.ts'
import { effectType } from '../core/rules/effect-type.ts'
import { callPure } from '../core/runtime/pure-call.ts'
import { checkFunction } from '../core/text/check-option.ts'
import { checkOptions, shown } from '../core/text/suggest.ts'
import type { Typed } from './api/decision.ts'
import { idReader, internalReader, typedInput, type SentInput } from './api/identity.ts'
import type { CheckedOptions } from './api/options.ts'
import type { DecisionOrReject, EffectOf, RejectionOf } from './api/outcome-types.ts'
import type { UpcastLike, UpcastStateLike } from './api/past-options.ts'
import { effectRules } from './effect-rules.ts'
import { EffectFrame, type PerformedEffect } from './frame/effect-frame.ts'
import { InstanceFrame } from './frame/instance-frame.ts'
import { Instance } from './instance.ts'
import { pastOf, type PastOptions } from './past/past.ts'
import { isSnapshot } from './fold/snapshot.ts'
import { presentType, readEventOf } from './past/read-event.ts'
import { upcastState } from './past/upcast-state.ts'
import type { DeciderRules } from './rules.ts'
import { viewRules } from './view-rules.ts'

/** An event-sourced workflow. Its output is its last state. */
export interface Decider<Types extends DeciderTypes = DeciderTypes>
  extends Omit<TypedDefinition<Types['input'], Types['state']>, 'types' | 'style'>, TypedDecider<Types> {
  /** Its functions, for tests. */
  readonly rules: DeciderRules
  /** Only for the compiler; there is no such value. */
  readonly types?: Types & { readonly output: Types['state'] }
}

export const deciderOptionNames = [
  'initial',
  'evolve',
  'decide',
  'id',
  'isTerminal',
  'uniqueKey',
  'effects',
  'retry',
  'onDeadLetter',
  'onDeadTimer',
  'dedup',
  'input',
  'event',
  'version',
  'stateVersion',
  'upcast',
  'renamed',
  'retired',
  'upcastState',
  'onErased',
  'snapshotEvery',
  'tags',
  'view',
]

/** What people look for under another name. */
const optionsElsewhere = {
  ...retryNames,
  orderBy: 'It belongs to a type of effect: effects: { mail: { perform, orderBy } }.',
  feed: 'The feed always has the journals of deciders.',
}

// Four type parameters: each of state, inputs, events and outcomes is inferred from another function, and a wrong one is
// explained where it is written.
/**
 * Defines an event-sourced workflow: its state is the fold of its events, and each input is decided once.
 *
 * @example
 * const order = decider('order', {
 *   initial: () => ({ status: 'new' }) as Order,
 *   evolve: (order, event: OrderEvent) => (event.type === 'Paid' ? { ...order, status: 'paid' } : order),
 *   decide: (order, input: OrderInput) =>
 *     order.status === 'paid' ? reject('paid-already') : decision({ type: 'Paid' }).effect({ type: 'ship', to: input.to }),
 *   id: 'orderId',
 *   effects: { ship: (effect, { idempotencyKey }) => ship(effect.to, idempotencyKey) },
 * })
 */
export function decider<
  State,
  Input extends Typed,
  Event extends Typed,
  Outcome extends DecisionOrReject,
  Sent = unknown,
  Id = unknown,
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it is inferred from one option, and checked against others
  Upcast extends UpcastLike = UpcastLike,
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as above
  UpcastState extends UpcastStateLike = UpcastStateLike,
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as above
  Retired extends string = never,
>(
  type: string,
  options: CheckedOptions<
    State,
    Input,
    Event,
    Outcome,
    Sent,
    Id,
    { upcast: Upcast; upcastState: UpcastState; retired: Retired }
  >,
): Decider<{
  readonly state: State
  readonly input: SentInput<Input, Sent, Id>
  readonly anyInput: Input
  readonly event: Event
  readonly effect: EffectOf<Outcome>
  readonly rejection: RejectionOf<Outcome>
}> {
  return define(type, options as unknown as AnyOptions)
}

/** The options without their types. */
interface AnyOptions extends PastOptions, Pick<DeciderRules, 'initial' | 'evolve' | 'decide'> {
  readonly id: unknown
  readonly isTerminal?: DeciderRules['isTerminal']
  readonly uniqueKey?: (input: unknown) => unknown
  readonly effects?: unknown
  readonly retry?: Retry
  readonly onDeadLetter?: NonNullable<DeciderRules['onDeadLetter']>
  readonly onDeadTimer?: NonNullable<DeciderRules['onDeadTimer']>
  readonly dedup?: unknown
  readonly input?: unknown
  readonly event?: unknown
  readonly version?: number
  readonly stateVersion?: number
  readonly snapshotEvery?: number | null
  readonly tags?: readonly string[]
  readonly view?: unknown
  readonly onErased?: NonNullable<DeciderRules['onErased']>
}

function define(type: string, options: AnyOptions): Decider<never> {
  checkType(type)
  const where = `decider "${type}"`
  checkOptions(options, deciderOptionNames, where, optionsElsewhere)
  const { initial, evolve, decide, isTerminal, uniqueKey, onDeadLetter, onDeadTimer, onErased, input } = options
  const functions = { initial, evolve, decide }
  for (const [name, given] of Object.entries(functions)) {
    if (typeof given !== 'function') throw invalid(`${name} of ${where} must be a function. Got ${shown(given)}.`)
  }
  checkFunction(isTerminal, `isTerminal of ${where}`, "(state) => state.status === 'closed'")
  checkFunction(uniqueKey, `uniqueKey of ${where}`, '(input) => input.email')
  checkFunction(onDeadLetter, `onDeadLetter of ${where}`, "(effect, error) => ({ type: 'MailLost' })")
  checkFunction(onDeadTimer, `onDeadTimer of ${where}`, "(timer, error) => ({ type: 'TimerLost' })")
  checkFunction(onErased, `onErased of ${where}`, '(state) => state')
  const policy = retryPolicy(options.retry, retryPresets.patient, `${where}: retry`)
  const stateVersion = count(options.stateVersion, 1, 0, `The stateVersion of ${where}`)
  const rules: DeciderRules = {
    ...functions,
    type,
    version: count(options.version, 1, 1, `The version of ${where}`),
    stateVersion,
    isInternal: internalReader(options.id, type),
    isTerminal: isTerminal ?? (() => false),
    effects: effectRules(options.effects, policy, type),
    policy,
    onDeadLetter: onDeadLetter ?? null,
    onDeadTimer: onDeadTimer ?? null,
    dedup: dedupOf(options.dedup, where),
    event: schemaOf(options.event, `The event of ${where}`),
    onErased: onErased ?? null,
    past: pastOf(options, stateVersion, where),
    snapshotEvery:
      options.snapshotEvery === null ? null : count(options.snapshotEvery, 200, 1, `The snapshotEvery of ${where}`),
  }
  const schema = schemaOf(input, `The input of ${where}`)
  const model = modelOf(rules, options)
  return {
    type,
    version: rules.version,
    style: 'decider',
    leaseMs: null,
    feed: true,
    unique: null,
    tags: checkTags(options.tags ?? [], `The tags of ${where}`, highestLimits),
    metadata: null,
    validate: (value) => (schema === null ? typedInput(value, type) : validate(schema, value, `The input of ${where}`)),
    parts: [...rules.effects].map(([effect, how]) => effectDefinition(rules, effect, how)),
    open: (host, claim) => new InstanceFrame(model, host, claim),
    model,
    rules,
  }
}

/** The workflow whose runs perform the effects of one type. */
function effectDefinition({ type: decider, version }: DeciderRules, type: string, model: EffectModel): Definition {
  const effect: PerformedEffect = { decider: { type: decider }, type, model }
  return {
    type: effectType(decider, type),
    version,
    style: 'decider',
    leaseMs: null,
    feed: false,
    unique: null,
    tags: [],
    metadata: null,
    validate: () => {
      const message = `The runs of ${effectType(decider, type)} are started by instances of decider "${decider}" alone.`
      throw new HoldfastError('INVALID_INPUT', message)
    },
    open: (host, claim) => new EffectFrame(effect, host, claim),
  }
}

function modelOf(
  rules: DeciderRules,
  { id, uniqueKey, view }: Pick<AnyOptions, 'id' | 'uniqueKey' | 'view'>,
): DeciderModel {
  const { type, effects } = rules
  return {
    type,
    idOf: idReader(id, type),
    uniqueKeyOf: (input) => (uniqueKey === undefined ? null : keyOf(uniqueKey, typedInput(input, type), type)),
    effect: (name) => effects.get(name),
    effectTypes: [...effects.keys()],
    view: viewRules(view, rules),
    presentType: (written) => presentType(rules, written),
    readEvent: (event, instanceId) => readEventOf(rules, event, instanceId),
    stateVersion: rules.stateVersion,
    snapshotState: (value) => (isSnapshot(value) ? { state: value.state } : null),
    presentState: (state, version) => (version === rules.stateVersion ? { state } : upcastState(rules, version, state)),
    open: (given) => new Instance(rules, given),
  }
}

function keyOf(uniqueKey: (input: unknown) => unknown, input: Typed, type: string): string | null {
  try {
    const key = callPure(`uniqueKey of decider "${type}"`, () => uniqueKey(input)) ?? null
    return key === null ? null : checkKey(key, `The result of uniqueKey of decider "${type}"`)
  } catch (cause) {
    throw new HoldfastError(
      'INVALID_INPUT',
      `Decider "${type}" has no unique key for an input ${shown(input.type)}: ${messageOf(cause)}`,
      { cause, details: { input: input.type } },
    )
  }
}

const mostRemembered = 10_000

function dedupOf(given: unknown, where: string): DeciderRules['dedup'] {
  if (given === undefined) return null
  checkOptions(given, ['last', 'within'], `${where}: dedup`)
  const { last, within } = given as { readonly last?: number; readonly within?: never }
  if (last === undefined || within === undefined) throw invalid(`dedup of ${where} needs both last and within.`)
  const most = count(last, 1, 1, `dedup.last of ${where}`)
  if (most > mostRemembered) throw invalid(`dedup.last of ${where} must be at most 10,000. Got ${most}.`)
  return { last: most, withinMs: toMs(within, `dedup.within of ${where}`, { min: 1 }) }
}

function schemaOf(given: unknown, what: string): DeciderRules['event'] {
  if (given === undefined) return null
  if (isSchema(given)) return given
  throw invalid(`${what} must be a schema that follows Standard Schema. Got ${shown(given)}.`)
}

function count(given: unknown, otherwise: number, least: number, what: string): number {
  const value = given ?? otherwise
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value
  throw invalid(`${what} must be a whole number from ${least}. Got ${shown(given)}.`)
}

function invalid(message: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', message)
}

function checkType(type: unknown): void {
  if (typeof type === 'string' && type.length <= 200 && /^[A-Za-z0-9][\w.:-]*$/.test(type)) return
  throw new HoldfastError(
    'INVALID_NAME',
    `A decider needs a type like "order" or "shop.order": letters, digits and . : _ -, at most 200. Got ${shown(type)}.`,
  )
}
