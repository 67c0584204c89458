// Reads instances: the state from the fold that this process keeps of those in use, and events from their journals.

import { isDecider, type DeciderDefinition, type DeciderModel } from '../../core/definition/decider-model.ts'
import type { Definition } from '../../core/definition/definition.ts'
import type { Entry } from '../../core/model/entry.ts'
import { inputName, messagesAtOnce } from '../../core/model/message.ts'
import type { Run } from '../../core/model/run.ts'
import { mostEntries } from '../../core/model/transition.ts'
import { checkOptions, shown } from '../../core/text/suggest.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { findInstanceRun } from '../../engine/deciders/cached-instance.ts'
import { messagesRequest } from '../../engine/batch/mailbox-reader.ts'
import type { Engine } from '../../engine/engine.ts'
import { loadJournal } from '../../engine/store/journal-pages.ts'
import { abortable, reading, type AbortOption } from '../abort-option.ts'
import { checkWhole } from '../read/cursor.ts'
import { RunHandle } from '../run-handle.ts'
import { copied, deciderOf } from './execute.ts'
import type { EventsOptions, StateOptions } from './instance-reader.ts'
import type { Backlog, EventCause, HistoricEvent } from './instance-views.ts'
import { happenedBy, stateAt } from './state-at.ts'

/** Of the mailbox only the number is wanted. */
const mostBytes = 1024 * 1024

/** @internal */
export async function readState(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options: StateOptions = {},
): Promise<unknown> {
  engine.assertOpen()
  checkOptions(options, ['at', 'abortSignal'], 'state()')
  const { at, abortSignal } = options
  const had = at === undefined ? null : happenedBy(at)
  const definition = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  return abortable('state()', abortSignal, async () => {
    if (had === null) {
      return engine.instances.look(definition, named, (cached) =>
        cached?.instance.hasBegun === true ? copied(cached.instance.state) : undefined,
      )
    }
    const run = await findInstanceRun(engine, definition.type, named)
    return run === null ? undefined : stateAt(engine, run, had)
  })
}

/** @internal */
export async function readEvents(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options: EventsOptions = {},
): Promise<readonly unknown[]> {
  return (await eventsOf(engine, decider, { id, options, call: 'events()' })).map(({ event }) => event)
}

/** @internal */
export async function readHistory(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options: EventsOptions = {},
): Promise<readonly HistoricEvent[]> {
  return eventsOf(engine, decider, { id, options, call: 'history()' })
}

interface Request {
  readonly id: string
  readonly options: EventsOptions
  readonly call: string
}

async function eventsOf(
  engine: Engine,
  decider: Definition | string,
  { id, options, call }: Request,
): Promise<readonly HistoricEvent[]> {
  engine.assertOpen()
  checkOptions(options, ['after', 'limit', 'abortSignal'], call)
  const { after = 0, limit = Number.MAX_SAFE_INTEGER, abortSignal } = options
  const bounds = { least: 0, most: Number.MAX_SAFE_INTEGER }
  checkWhole(after, `${call.slice(0, -1)}{ after })`, bounds)
  checkWhole(limit, `${call.slice(0, -1)}{ limit })`, { ...bounds, least: 1 })
  const definition = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  return abortable(call, abortSignal, async () => {
    const run = await findInstanceRun(engine, definition.type, named)
    return run === null ? [] : readAll(engine, { run, model: modelOf(engine, run, definition) }, { after, limit })
  })
}

/** The code of the version of an instance; of the one that was asked for, if that is not here. */
function modelOf({ registry }: Engine, { type, version }: Run, asked: DeciderDefinition): DeciderModel {
  const own = registry.find(type, version)
  return (own !== undefined && isDecider(own) ? own : asked).model
}

async function readAll(
  { payloads, store }: Engine,
  { run, model }: { readonly run: Run; readonly model: DeciderModel },
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly HistoricEvent[]> {
  const events: HistoricEvent[] = []
  let cause: EventCause = { input: null, from: { kind: 'start' }, commandId: null }
  // The input of the first event may stand before the place where the caller begins: in the same transition.
  for await (const { entries } of loadJournal(store, run.id, { after: Math.max(0, after - mostEntries) })) {
    for (const entry of entries) {
      if (entry.kind === 'input') cause = causeOf(entry)
      if (entry.kind !== 'event' || entry.seq <= after) continue
      const fetched = { ...entry, data: await payloads.fetch(entry.data) }
      const event = eventOf({ payloads }, { run, model }, fetched)
      if (event !== null) events.push({ ...event, cause })
      if (events.length === limit) return events
    }
  }
  return events
}

/** An event as this code reads it; null if its type is retired. Throws EVENT_UNREADABLE. */
export function eventOf(
  { payloads }: Pick<Engine, 'payloads'>,
  { run, model }: { readonly run: Run; readonly model: DeciderModel },
  entry: Extract<Entry, { kind: 'event' }>,
): Omit<HistoricEvent, 'cause'> | null {
  const { seq, at, kind, name, data } = entry
  let unreadable: Error | null = null
  const read = (): unknown => {
    const value = payloads.decode(data, payloads.place(run.id, seq, kind, name))
    // A command that only looks has a codec that gives the error in place of what cannot be read: it harms no other event.
    if (value instanceof Error) unreadable = value
    return value
  }
  try {
    const event = model.readEvent({ ...entry, read }, run.idempotencyKey ?? run.id)
    return event === null ? null : { seq, at: new Date(at), event: event.event }
  } catch (error) {
    if (unreadable === null) throw error
    return { seq, at: new Date(at), event: unreadable }
  }
}

export function causeOf({ name, meta }: Extract<Entry, { kind: 'input' }>): EventCause {
  const { from, command } = meta
  return { input: name, from, commandId: command ?? (from.kind === 'message' ? from.id : null) }
}

/** @internal */
export async function instanceHandle(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options?: AbortOption,
): Promise<RunHandle<unknown>> {
  engine.assertOpen()
  const { type } = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  const run = await reading('instance()', options, () => findInstanceRun(engine, type, named))
  if (run !== null) return new RunHandle(engine, run.id, false, run.key)
  const message = `There is no instance ${shown(named)} of decider ${shown(type)}. Its id is what its inputs name it by.`
  throw new HoldfastError('RUN_NOT_FOUND', message, { details: { type, id: named } })
}

/** @internal */
export async function readBacklog(
  engine: Engine,
  decider: Definition | string,
  id: string,
  options?: AbortOption,
): Promise<Backlog> {
  engine.assertOpen()
  const { type } = deciderOf(engine, decider)
  const named = checkInstanceId(id)
  return reading('backlog()', options, async () => {
    const run = await findInstanceRun(engine, type, named)
    return run === null ? noBacklog : backlogOf(engine, run)
  })
}

const noBacklog: Backlog = { inputs: 0, isCapped: false, since: null }

export async function backlogOf({ store }: Engine, run: Run): Promise<Backlog> {
  if (run.endedAt !== null) return noBacklog
  const [page] = await store.load([messagesRequest(run.id, null)], mostBytes)
  const messages = page?.messages ?? []
  const inputs = messages.filter(({ kind, name }) => kind === 'signal' && name === inputName)
  const [first] = inputs
  return {
    inputs: inputs.length,
    isCapped: page?.cut === true || messages.length >= messagesAtOnce,
    since: first === undefined ? null : new Date(first.at),
  }
}

export function checkInstanceId(id: unknown): string {
  if (typeof id === 'string') return id
  throw new HoldfastError('INVALID_OPTION', `An instance of a decider is named by its id, a text. Got ${shown(id)}.`)
}
