// An event as `evolve` gets it: of the version that this code reads, and through the schema, if there is one.

import { HoldfastError } from '../../core/errors/error.ts'
import type { EventMeta } from '../../core/model/entry.ts'
import { validate } from '../../core/definition/schema.ts'
import { shown } from '../../core/text/suggest.ts'
import type { DeciderRules } from '../rules.ts'

/** The version in which events are written. */
export const eventVersion = 1

export function checkedEvent({ type, event: schema }: DeciderRules, meta: EventMeta | null, event: unknown): unknown {
  const version = meta?.version ?? eventVersion
  if (version !== eventVersion)
    throw new Error(`it has version ${version}, and this code reads version ${eventVersion}`)
  if (typeof event !== 'object' || event === null || typeof (event as { type?: unknown }).type !== 'string') {
    throw new Error(`an event must be an object with a type, not ${shown(event)}`)
  }
  if (schema === null) return event
  const checked = validate(schema, event, `An event of decider "${type}"`)
  if (!(checked instanceof Promise)) return checked
  checked.catch(() => undefined)
  throw new HoldfastError(
    'INVALID_OPTION',
    `The event schema of decider "${type}" is asynchronous: events are checked at once.`,
  )
}
