// How an instance is asked to decide what has come to it.

import type { Offer } from '../../core/definition/decider-model.ts'
import type { EffectOutcome } from '../../core/definition/definition.ts'
import type { Call } from './deciding-actor.ts'

export function offerOf({ input, command }: Call): Offer {
  return { kind: 'call', input, command }
}

export function outcomeOffer({
  name,
  meta,
  result,
}: EffectOutcome): Extract<Offer, { readonly kind: 'performed' | 'gave-up' }> {
  if ('value' in result) return { kind: 'performed', name, meta, result: result.value }
  return { kind: 'gave-up', name, meta, error: result.error }
}
