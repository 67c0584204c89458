// What a projection is: which events it takes, and what becomes of them. Kinds, by where the read model lies:
//
//   projection()         in the database of the runs. A handler writes with the application's own transaction, and the position
//                        of the projection is written in the same one: each event counts exactly once
//   tableProjection()    there, too: a table with one row for each instance (table-projection.ts)
//   subscription()       anywhere else. The position is written after the handler: each event comes at least once, with an id
//   memoryProjection()   in the memory of each process that projects it, from the first event on

import type { DeciderDefinition, ErasedEvent, TypedDecider } from '../core/definition/decider-model.ts'
import type { Transaction } from '../core/definition/transactions.ts'
import { HoldfastError } from '../core/errors/error.ts'
import { checkKey } from '../core/model/key.ts'
import { checkFunction, wrongOption } from '../core/text/check-option.ts'
import { checkOptions, shown } from '../core/text/suggest.ts'

/** An event of a decider that is known by its name alone. */
export interface AnyEvent {
  readonly type: string
  readonly [field: string]: unknown
}

/** Whose events a projection takes: a decider, or the type of one. */
export type EventSource = TypedDecider | string

/** The events of these sources. */
export type EventsOf<From> = From extends readonly (infer One)[] ? EventsOfOne<One> : EventsOfOne<From>

type EventsOfOne<One> = One extends string
  ? AnyEvent
  : One extends { readonly types?: infer Types }
    ? EventOfTypes<NonNullable<Types>>
    : never

type EventOfTypes<Types> = Types extends { readonly event: infer Event }
  ? Extract<Event, { readonly type: string }>
  : never

/** What a handler gets besides its event. */
export interface EventTools {
  /** The same for every attempt, and no other event has it: the run and the number of the entry. */
  readonly id: string
  /** The type and the version of the decider. */
  readonly decider: string
  readonly version: number
  /** The id of the instance. */
  readonly instance: string
  readonly runId: string
  /** The number of its entry in the journal of the instance: its events come in this order. */
  readonly seq: number
  /** Its place in the order of all events. */
  readonly position: number
  /** When it was committed, in the time of the store. */
  readonly at: Date
}

export interface TransactionTools extends EventTools {
  /** The transaction in which the position is written, too. */
  readonly tx: Transaction
  /** The read model is built anew: the handler writes where `rebuild.begin` has made room. */
  readonly isRebuild: boolean
}

type HandlerOf<Event, Tools> = (event: Event, tools: Tools) => unknown

/** A handler for each type of event that matters: others are passed over. */
type HandlersOf<Event extends { readonly type: string }, Tools> = {
  readonly [Type in Event['type']]?: HandlerOf<OfType<Event, Type>, Tools>
}

/** Of events of which only a name is known, there is none that says so. */
export type OfType<Event extends { readonly type: string }, Type extends string> = [
  Extract<Event, { readonly type: Type }>,
] extends [never]
  ? Event
  : Extract<Event, { readonly type: Type }>

/** Exactly one of the two. */
type Handling<Event extends { readonly type: string }, Tools> =
  | { readonly handlers: HandlersOf<Event, Tools>; readonly handle?: never }
  | { readonly handle: HandlerOf<Event, Tools>; readonly handlers?: never }

interface CommonOptions<From> {
  /** The deciders whose events it takes, or their types. Also of old versions: an event of each is a possible event. */
  readonly from: From
  /**
   * A number to raise when the handlers make something else of the same events: then `holdfast.projections.rebuild` is needed.
   * @default 1
   */
  readonly version?: number
}

export interface WorkedOptions<From> extends CommonOptions<From> {
  /** Where it begins when it is projected for the first time. @default 'beginning', with the first event there ever was */
  readonly startAt?: 'beginning' | 'end'
  /** How many events are handled, and committed, together. @default 100 */
  readonly batch?: number
  /** How often a failing event is tried before the projection is parked with it. @default 8, which takes about 20 s */
  readonly maxAttempts?: number
}

/** The place where a rebuild writes, while the live read model goes on. */
export interface RebuildHooks {
  /** Makes an empty place, in a transaction; what an earlier rebuild has left there goes. */
  readonly begin: (tx: Transaction) => unknown
  /** Puts it in the place of the live one, in the transaction that makes it live. */
  readonly swap: (tx: Transaction) => unknown
}

interface ErasedOption<Tools> {
  /** What becomes of an event whose data subject was erased, of a type that it handles. @default it is passed over */
  readonly onErased?: (event: ErasedEvent, tools: Tools) => unknown
}

export type ProjectionOptions<From> = WorkedOptions<From> &
  ErasedOption<TransactionTools> & {
    /** How it is built anew. @default it cannot be */
    readonly rebuild?: RebuildHooks
  } & Handling<EventsOf<From>, TransactionTools>

export type SubscriptionOptions<From> = WorkedOptions<From> &
  ErasedOption<EventTools> &
  Handling<EventsOf<From>, EventTools>

type FoldHandler<Model, Event> = (model: Model, event: Event, tools: EventTools) => Model | void

export type MemoryProjectionOptions<From, Model> = CommonOptions<From> & {
  /** The read model before any event. */
  readonly init: () => Model
  /** What becomes of an event whose data subject was erased, of a type that it handles. @default it is passed over */
  readonly onErased?: FoldHandler<NoInfer<Model>, ErasedEvent>
} & (
    | {
        readonly handlers: {
          readonly [Type in EventsOf<From>['type']]?: FoldHandler<NoInfer<Model>, OfType<EventsOf<From>, Type>>
        }
        readonly handle?: never
      }
    | { readonly handle: FoldHandler<NoInfer<Model>, EventsOf<From>>; readonly handlers?: never }
  )

export type EventHandler = (...given: readonly unknown[]) => unknown

interface Defined {
  readonly name: string
  /** The types of the deciders. */
  readonly from: ReadonlySet<string>
  /** Those of them that were given as deciders: their code reads the events. */
  readonly deciders: readonly DeciderDefinition[]
  /** The function for an event of that type; undefined if the projection passes it over. */
  readonly handlerOf: (type: string) => EventHandler | undefined
  /** For an erased event; undefined if it is passed over. */
  readonly onErased: EventHandler | undefined
}

/** A projection that the store keeps a position of. */
export interface WorkedProjection extends Defined {
  readonly kind: 'transaction' | 'anywhere'
  /** What must be the same in every process that projects it. */
  readonly definition: string
  readonly startAt: 'beginning' | 'end'
  readonly batch: number
  readonly maxAttempts: number
  readonly rebuild: RebuildHooks | null
  /** It writes what its handlers make of a batch at once; null if they write by themselves. */
  readonly batched: BatchedWrites | null
}

/** Around the handlers of a batch, in their transaction. */
export interface BatchedWrites {
  begin(tx: Transaction, instances: readonly string[], isRebuild: boolean): Promise<void>
  end(tx: Transaction, isRebuild: boolean): Promise<void>
}

export interface MemoryProjection<Model = unknown> extends Defined {
  readonly kind: 'memory'
  readonly init: () => Model
}

export type Projection = WorkedProjection | MemoryProjection

/**
 * A read model in the database of the runs: handlers write with your own transaction, in which the position is written, too, so
 * that each event counts exactly once.
 *
 * @example
 * const totals = projection('totals', {
 *   from: order,
 *   handlers: {
 *     Paid: (event, { tx, instance }) =>
 *       tx.query('insert into totals (id, amount) values ($1, $2)', [instance, event.amount]),
 *   },
 * })
 * await holdfast.project(totals)
 */
export function projection<const From extends EventSource | readonly EventSource[]>(
  name: string,
  options: ProjectionOptions<From>,
): WorkedProjection {
  return worked(name, options, { call: 'projection', kind: 'transaction' })
}

/**
 * A consumer of events whose effects lie elsewhere: each event comes at least once, in order, with an id by which a repetition is
 * known.
 *
 * @example
 * const search = subscription('search', { from: order, handle: (event, { id }) => index.add(id, event) })
 */
export function subscription<const From extends EventSource | readonly EventSource[]>(
  name: string,
  options: SubscriptionOptions<From>,
): WorkedProjection {
  return worked(name, options, { call: 'subscription', kind: 'anywhere' })
}

/**
 * A read model in the memory of each process that projects it: the fold of all events, from the first one on. A handler changes
 * the model, or returns the next one.
 *
 * @example
 * const counts = memoryProjection('counts', { from: order, init: () => ({ paid: 0 }), handlers: { Paid: (counts) => void counts.paid++ } })
 * const running = await holdfast.project(counts)
 */
export function memoryProjection<const From extends EventSource | readonly EventSource[], Model>(
  name: string,
  options: MemoryProjectionOptions<From, Model>,
): MemoryProjection<Model> {
  const given = options as unknown as AnyOptions
  const where = `memoryProjection ${shown(name)}`
  checkOptions(given, [...commonNames, 'init'], where)
  if (typeof given.init !== 'function')
    throw wrongOption(`init of ${where}`, 'a function, such as () => ({})', given.init)
  return { ...defined(name, given, where), kind: 'memory', init: given.init as () => Model }
}

/** Options of any of them, before they are checked. */
export interface AnyOptions {
  readonly from: unknown
  readonly version?: unknown
  readonly startAt?: unknown
  readonly batch?: unknown
  readonly maxAttempts?: unknown
  readonly rebuild?: RebuildHooks
  readonly init?: unknown
  readonly handlers?: Readonly<Record<string, unknown>>
  readonly handle?: unknown
  readonly onErased?: unknown
}

const commonNames = ['from', 'version', 'handlers', 'handle', 'onErased']
const workedNames = [...commonNames, 'startAt', 'batch', 'maxAttempts']

export const projectionOptionNames = [...workedNames, 'rebuild']

interface Making {
  readonly call: 'projection' | 'subscription' | 'tableProjection'
  readonly kind: WorkedProjection['kind']
  /** What else is part of its definition. */
  readonly about?: Readonly<Record<string, unknown>>
}

export function worked(name: string, options: AnyOptions, { call, kind, about = {} }: Making): WorkedProjection {
  const where = `${call} ${shown(name)}`
  const elsewhere = { init: 'It belongs to memoryProjection().', rebuild: 'Only projection() can be built anew.' }
  const names = call === 'subscription' ? workedNames : projectionOptionNames
  checkOptions(options, names, where, elsewhere)
  const { startAt = 'beginning', rebuild = null } = options
  if (startAt !== 'beginning' && startAt !== 'end')
    throw wrongOption(`startAt of ${where}`, "'beginning' or 'end'", startAt)
  if (rebuild !== null) {
    checkOptions(rebuild, ['begin', 'swap'], `rebuild of ${where}`)
    for (const hook of ['begin', 'swap'] as const) {
      if (typeof rebuild[hook] !== 'function')
        throw wrongOption(`rebuild.${hook} of ${where}`, "a function, such as (tx) => tx.query('…')", rebuild[hook])
    }
  }
  const common = defined(name, options, where)
  return {
    ...common,
    kind,
    definition: definitionText(kind, options, { from: common.from, about }),
    startAt,
    rebuild,
    batched: null,
    batch: count(options.batch, 100, `batch of ${where}`),
    maxAttempts: count(options.maxAttempts, 8, `maxAttempts of ${where}`),
  }
}

function defined(name: string, options: AnyOptions, where: string): Defined {
  const { version, handlers, handle, onErased } = options
  checkKey(name, 'The name of a projection')
  count(version, 1, `version of ${where}`)
  checkFunction(handle, `handle of ${where}`, '(event) => …')
  checkFunction(onErased, `onErased of ${where}`, '(event) => …')
  if ((handlers === undefined) === (handle === undefined)) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `${where} needs either handlers, by the type of the event, or handle, for all.`,
    )
  }
  const common = { name, ...sourcesOf(options.from, where), onErased: onErased as EventHandler | undefined }
  if (handle !== undefined) return { ...common, handlerOf: () => handle as EventHandler }
  if (typeof handlers !== 'object' || handlers === null)
    throw wrongOption(`handlers of ${where}`, 'an object with a function for each type of event', handlers)
  if (Object.keys(handlers).length === 0)
    throw wrongOption(`handlers of ${where}`, 'an object with a function for each type of event', handlers)
  const known = new Map(Object.entries(handlers).filter(([, handler]) => handler !== undefined))
  for (const [type, handler] of known) checkFunction(handler, `handlers.${type} of ${where}`, '(event) => …')
  return { ...common, handlerOf: (type) => known.get(type) as EventHandler | undefined }
}

function sourcesOf(from: unknown, where: string): Pick<Defined, 'from' | 'deciders'> {
  const sources: readonly unknown[] = Array.isArray(from) ? (from as readonly unknown[]) : [from]
  const deciders: DeciderDefinition[] = []
  const types = sources.map((source) => {
    if (typeof source === 'string' && source !== '') return source
    const { type, style } = (source ?? {}) as { readonly type?: unknown; readonly style?: unknown }
    if (typeof type === 'string' && style === 'decider') {
      deciders.push(source as DeciderDefinition)
      return type
    }
    throw wrongOption(`from of ${where}`, 'a decider, the type of one, or a list of these', source)
  })
  if (types.length === 0) throw wrongOption(`from of ${where}`, 'a decider, the type of one, or a list of these', from)
  return { from: new Set(types), deciders }
}

function count(given: unknown, otherwise: number, option: string): number {
  const value = given ?? otherwise
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= 10_000) return value
  throw wrongOption(option, 'a whole number from 1 to 10,000', given)
}

/** The texts of functions are not part of it: they change with a minifier, and `version` says more. */
function definitionText(
  kind: WorkedProjection['kind'],
  options: AnyOptions,
  { from, about }: { readonly from: ReadonlySet<string>; readonly about: object },
): string {
  const { version = 1, handlers } = options
  const events = handlers === undefined ? 'all' : Object.keys(handlers).toSorted()
  return JSON.stringify({ version, kind, from: [...from].toSorted(), events, ...about })
}

/** The error of a projection that the store knows with another definition: says what differs. */
export function definitionsDiffer(name: string, ours: string, theirs: string): HoldfastError {
  const [own, kept] = [ours, theirs].map((text) => JSON.parse(text) as Readonly<Record<string, unknown>>)
  const differences = Object.keys(own ?? {}).flatMap((field) => {
    const [here, there] = [own?.[field], kept?.[field]].map((value) => JSON.stringify(value))
    return here === there ? [] : [`${field} is ${here ?? 'nothing'} here and ${there ?? 'nothing'} in the store`]
  })
  return new HoldfastError(
    'PROJECTION_CONFLICT',
    `Projection ${shown(name)} has another definition in the store: ${differences.join(', ')}. Build it anew with ` +
      'holdfast.projections.rebuild(projection), or give this one another name.',
    { details: { name, differences } },
  )
}
