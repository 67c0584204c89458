// The names under which a unit of work keeps waits: each wait by its whole key, and the lists by what their waits are for.

import type { WaitRow } from '../../../core/rules/messages/unit-of-work.ts'
import type { Delivery } from '../../../core/model/topic.ts'

export function keyOf({ kind, target, runId, effect }: WaitRow): string {
  return `${kind} ${effect} ${runId} ${target}`
}

export function listOf({ kind, delivery }: WaitRow): 'run' | Delivery {
  return kind === 'run' ? 'run' : (delivery ?? 'all')
}
