// An event as `evolve` gets it: under its present type, brought to the version that this code writes, and through the schema,
// if there is one.

import { HoldfastError, messageOf } from '../../core/errors/error.ts'
import { isErased } from '../../core/payload/codec.ts'
import type { ErasedEvent, RecordedEvent } from '../../core/definition/decider-model.ts'
import { validate } from '../../core/definition/schema.ts'
import { callPure } from '../../core/runtime/pure-call.ts'
import { quotedText } from '../../core/text/printable.ts'
import { shown } from '../../core/text/suggest.ts'
import type { DeciderRules } from '../rules.ts'

import type { Chain } from './past.ts'

/** What an event type that was written is called now; null if it is retired. */
export function presentType({ past }: Pick<DeciderRules, 'past'>, written: string): string | null {
  return past.retired.has(written) ? null : (past.renamed.get(written) ?? written)
}

/** Null if its type is retired: then it is not even decoded. Throws an error of any kind, which says why it cannot be read. */
export function readEvent(
  rules: DeciderRules,
  { name, meta, read }: RecordedEvent,
): { readonly event: unknown } | null {
  const { renamed, chains } = rules.past
  const written = name ?? ''
  if (presentType(rules, written) === null) return null
  const type = renamed.get(written)
  const event = read()
  if (typeof event !== 'object' || event === null || typeof (event as { type?: unknown }).type !== 'string') {
    throw new Error(`an event must be an object with a type, not ${shown(event)}`)
  }
  const named = type === undefined ? event : { ...event, type }
  return { event: checkedEvent(rules, upcast(rules, chains.get(type ?? written), named, meta?.version ?? 1)) }
}

export function erasedEvent({ past }: Pick<DeciderRules, 'past'>, name: string | null): ErasedEvent {
  const written = name ?? ''
  return { type: past.renamed.get(written) ?? written, erased: true }
}

/** The same for readers of a journal. Throws EVENT_UNREADABLE. */
export function readEventOf(
  rules: DeciderRules,
  event: RecordedEvent,
  instanceId: string,
): { readonly event: unknown } | null {
  try {
    return readEvent(rules, event)
  } catch (cause) {
    if (isErased(cause)) return { event: erasedEvent(rules, event.name) }
    throw unreadable(rules, instanceId, { ...event, kind: 'event' }, cause)
  }
}

/** EVENT_UNREADABLE, for the entry of an event or another one that the fold needs. */
export function unreadable(
  { type }: Pick<DeciderRules, 'type'>,
  id: string,
  { seq, kind, name }: { readonly seq: number; readonly kind: string; readonly name: string | null },
  cause: unknown,
): HoldfastError {
  const what = kind === 'event' ? `Event ${quotedText(name ?? '')}` : `A ${kind} entry`
  return new HoldfastError(
    'EVENT_UNREADABLE',
    `${what}, entry ${seq} of instance ${quotedText(id)} of decider "${type}", cannot be folded: ${messageOf(cause)}`,
    { cause, details: { type, id, seq, event: name } },
  )
}

function upcast({ type: decider }: DeciderRules, chain: Chain | undefined, event: object, version: number): object {
  const present = chain?.version ?? 1
  if (version === present) return event
  if (version > present) throw new Error(`it has version ${version}, and this code reads version ${present}`)
  const oldest = chain?.oldest ?? present
  if (version < oldest) {
    throw new Error(`it has version ${version}, and upcast of this code reads from version ${oldest} on`)
  }
  const { type } = event as { readonly type: string }
  let upcasted: unknown = event
  for (let from = version; from < present; from += 1) {
    const what = `the upcaster of ${quotedText(type)} from version ${from}`
    const old = upcasted
    try {
      upcasted = callPure(`${what} of decider "${decider}"`, () => chain?.steps[from - oldest]?.(old))
    } catch (cause) {
      throw new Error(`${what} threw: ${messageOf(cause)}`, { cause })
    }
    if (typeof upcasted !== 'object' || upcasted === null || (upcasted as { type?: unknown }).type !== type) {
      throw new Error(`${what} must return an event of that type, and returned ${shownEvent(upcasted)}`)
    }
  }
  return upcasted as object
}

function shownEvent(given: unknown): string {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return shown(given)
  if (given instanceof Promise) return 'a promise'
  return `an object whose type is ${shown((given as { type?: unknown }).type)}`
}

function checkedEvent({ type, event: schema }: DeciderRules, event: unknown): unknown {
  if (schema === null) return event
  const checked = validate(schema, event, `An event of decider "${type}"`)
  if (!(checked instanceof Promise)) return checked
  checked.catch(() => undefined)
  throw new HoldfastError(
    'INVALID_OPTION',
    `The event schema of decider "${type}" is asynchronous: events are checked at once.`,
  )
}
