// The business key as rows have it. That of a workflow which is unique by a field begins with the field (`orderId::42`); callers name it by
// the value alone (`42`), where the workflow is known.

import { compositeKey } from '../core/model/key.ts'
import type { Registry } from '../engine/registry.ts'

export function storedKey(registry: Registry, type: string, key: string): string {
  const field = registry.all().find((definition) => definition.type === type)?.unique?.field ?? null
  return field === null || key.startsWith(`${field}::`) ? key : compositeKey(field, key)
}
