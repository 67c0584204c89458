// Leaves messages for runs, as a client of graphs does.

import { HoldfastError } from '../../src/core/errors/error.ts'
import { messagePlaceOf } from '../../src/core/payload/place.ts'
import type { Payloads } from '../../src/core/payload/payload.ts'
import type { Ports } from '../../src/core/runtime/ports.ts'
import type { Store } from '../../src/store.ts'

export interface Access {
  readonly store: Store
  readonly payloads: Payloads
  readonly ports: Pick<Ports, 'clock' | 'random'>
}

/** Leaves a message for a run. False if the run has ended. */
export async function leave(
  { store, payloads }: Access,
  { runId, id, name }: { readonly runId: string; readonly id: string; readonly name: string },
  value: unknown,
): Promise<boolean> {
  const place = messagePlaceOf(payloads.namespace, { kind: 'signal', runId, name, id })
  const data = await payloads.keep(payloads.encode(value, place), place)
  const [answer] = await store.deliver([{ id, runId, kind: 'signal', name, data, policy: null }])
  if (answer === undefined || answer.outcome === 'target-not-found') {
    throw new HoldfastError('RUN_NOT_FOUND', `There is no run ${runId}.`, { details: { runId } })
  }
  return answer.outcome !== 'target-terminated'
}
