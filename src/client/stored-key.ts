// The business key as rows have it. That of a workflow which is unique by a field begins with the field (`orderId::42`); callers name it by
// the value alone (`42`), where the workflow is known. Where it is not, the value alone finds nothing: the hint says why.

import { isDecider } from '../core/definition/decider-model.ts'
import { compositeKey, isComposite } from '../core/model/key.ts'
import { shown } from '../core/text/suggest.ts'
import type { Engine } from '../engine/engine.ts'
import type { Registry } from '../engine/registry.ts'

export function storedKey(registry: Registry, type: string, key: string): string {
  const field = registry.all().find((definition) => definition.type === type)?.unique?.field ?? null
  return field === null || key.startsWith(`${field}::`) ? key : compositeKey(field, key)
}

/** What to do if no run has this key: null if the key names its field, or the type is registered here. */
export function keyHint(isRegistered: boolean, key: string, register: string): string | null {
  if (isRegistered || isComposite(key)) return null
  const named = shown(`orderId::${key.slice(0, longestExample)}`)
  return (
    'The key of a workflow that is unique by a field of its input begins with that field. ' +
    `Name the field, too, as in ${named}, or ${register}: then the value is enough.`
  )
}

/** The id of an instance of a decider is no business key. Null if the type is none that is registered here. */
function instanceHint(registry: Registry, type: string, key: string): string | null {
  const isInstance = registry.all().some((definition) => definition.type === type && isDecider(definition))
  if (!isInstance) return null
  return (
    'A key of a decider is what its uniqueKey returns. The id of an instance is the idempotency key of its run: ' +
    `find({ type, idempotencyKey: ${shown(key)} }), or holdfast.state(type, id).`
  )
}

const longestExample = 100

/** Of so many types a process says at most that it does not know them. */
const mostTypes = 1_000

/** Logs once for each type that no run has a key, if it may have been named by its value alone, or by its id. @internal */
export function warnOfUnknownKey({ registry, unknownKeys, ports }: Engine, type: string, key: string): void {
  const ofInstance = instanceHint(registry, type, key)
  const remedy = 'register the workflow here, in createHoldfast({ workflows: […] })'
  const hint = ofInstance ?? keyHint(registry.hasType(type), key, remedy)
  if (hint === null || unknownKeys.has(type) || unknownKeys.size >= mostTypes) return
  unknownKeys.add(type)
  const place = ofInstance === null ? `, and ${shown(type)} is not registered in this process` : ''
  const message = `No run of ${shown(type)} has the key ${shown(key)}${place}. ${hint} This is said once.`
  ports.logger.warn(message, { type, key })
}

/** The same, only if the key may be the id of an instance. @internal */
export function warnOfInstance(engine: Engine, type: string, key: string): void {
  if (instanceHint(engine.registry, type, key) !== null) warnOfUnknownKey(engine, type, key)
}
