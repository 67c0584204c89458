// The business key as rows have it. That of a workflow which is unique by a field begins with the field (`orderId::42`); callers name it by
// the value alone (`42`), where the workflow is known. Where it is not, the value alone finds nothing: the hint says why.

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

const longestExample = 100

/** Of so many types a process says at most that it does not know them. */
const mostTypes = 1_000

/** Logs once for each type that no run has a key, if it may have been named by its value alone. @internal */
export function warnOfUnknownKey({ registry, unknownKeys, ports }: Engine, type: string, key: string): void {
  const hint = keyHint(registry.hasType(type), key, 'register the workflow here, in createHoldfast({ workflows: […] })')
  if (hint === null || unknownKeys.has(type) || unknownKeys.size >= mostTypes) return
  unknownKeys.add(type)
  ports.logger.warn(
    `No run of ${shown(type)} has the key ${shown(key)}, and ${shown(type)} is not registered in this process. ${hint} This is said once.`,
    { type, key },
  )
}
