// Usual transitions: those that an update with the fence in its condition can do.

import type { Lease } from '../../../core/model/run.ts'
import { assertLegal, sends, type Outbound, type Transition } from '../../../core/model/transition.ts'

/** The transition of a holder. */
export type HeldTransition = Transition & { readonly guard: { readonly lease: Lease } }

/** A transition of a holder that an update with the fence in its condition can do. Invalid ones are left to the core. */
export function isUsual(transition: Transition): transition is HeldTransition {
  const { guard, undo, continues, status, outbound = null, applies = null } = transition
  const { keyId = null, base = null, settles = null } = transition
  // Once in the stay of a run after its holder got another key.
  if (keyId !== null || guard.lease === null || base !== null || settles !== null || sends(transition)) return false
  // A transition that applies a control request needs that request, and a usual one has none.
  if (undo !== null || continues !== null || applies !== null || status === 'cancelling' || hasOutbound(outbound)) {
    return false
  }
  try {
    assertLegal('running', transition)
    return true
  } catch {
    return false
  }
}

function hasOutbound(outbound: Outbound | null): boolean {
  return outbound !== null && outbound.starts.length + outbound.watches.length > 0
}

export function isOneStep({ append, status, takes, outbound }: Transition): boolean {
  return append.length === 1 && status === null && takes.length === 0 && (outbound ?? null) === null
}

/** Messages that leave their mailbox. One that was taken stays known, so that delivering it again changes nothing. */
export function takesOf(transitions: readonly Transition[]): readonly object[] {
  return transitions.flatMap(({ runId: r, guard, takes }) =>
    Array.from(new Set(takes), (id) => ({ r, id, seq: guard.seq + 1 })),
  )
}
