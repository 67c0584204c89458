// The state of a snapshot that older code has made, brought to the `stateVersion` of this code.

import { callPure } from '../../core/runtime/pure-call.ts'
import type { DeciderRules } from '../rules.ts'

/** Null if no chain of upcasters leads from that version to the present one. Throws what an upcaster throws. */
export function upcastState(
  { type, stateVersion, past: { states } }: DeciderRules,
  version: number | undefined,
  state: unknown,
): { readonly state: unknown } | null {
  if (states === null || version === undefined || version < states.oldest || version >= stateVersion) return null
  let upcasted = state
  for (let from = version; from < stateVersion; from += 1) {
    const old = upcasted
    const what = `upcastState from version ${from}`
    upcasted = callPure(`${what} of decider "${type}"`, () => states.steps[from - states.oldest]?.(old))
    if (upcasted === undefined || upcasted instanceof Promise) throw new Error(`${what} must return a state`)
  }
  return { state: upcasted }
}
