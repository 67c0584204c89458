// Calls `decide` and checks what it returned: a decision or a rejection, made by this module's own functions or by those of
// another copy of the package.

import { callPure } from '../../core/runtime/pure-call.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Request, Typed } from '../api/decision.ts'
import { frozen } from '../fold/freeze.ts'
import type { DeciderRules } from '../rules.ts'

/** What `decide` returned, without its types. */
export type Decided =
  | { readonly kind: 'decision'; readonly events: readonly Typed[]; readonly requests: readonly Request[] }
  | { readonly kind: 'rejected'; readonly rejection: unknown }

/** Throws what `decide` throws, or what is wrong with its result. */
export function callDecide({ type, decide }: DeciderRules, state: unknown, input: Typed, now: number): Decided {
  const result = callPure(`decide of decider "${type}"`, () => decide(frozen(state), input, Object.freeze({ now })))
  if (typeof result !== 'object' || result === null) throw noOutcome(result)
  if (result instanceof Promise) {
    result.catch(() => undefined)
    throw new Error('decide returned a promise. It is pure: what takes time is an effect')
  }
  const { events, requests, value } = result as { events?: unknown; requests?: unknown; value?: unknown }
  if (Array.isArray(events) && Array.isArray(requests) && events.length > 0) {
    return { kind: 'decision', events: events as readonly Typed[], requests: requests as readonly Request[] }
  }
  if ('value' in result && events === undefined) return { kind: 'rejected', rejection: value ?? null }
  throw noOutcome(result)
}

function noOutcome(result: unknown): Error {
  return new Error(
    `decide must return decision(…), with at least one event, or reject(…). It returned ${shown(result)}`,
  )
}
