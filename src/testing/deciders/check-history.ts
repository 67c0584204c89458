// Kept histories: the events of a real instance, as the code of that time wrote them. Every later version of the decider must
// fold them.

import assert from 'node:assert/strict'
import type { DeciderTypes } from '../../core/definition/decider-model.ts'
import { HoldfastError } from '../../core/errors/error.ts'
import { jsonCodec } from '../../core/payload/codec.ts'
import { Payloads } from '../../core/payload/payload.ts'
import type { Decider } from '../../deciders/decider.ts'
import { systemDigest } from '../../system.ts'
import { holdAmbient, withAmbient, type AmbientUse } from '../kit/ambient.ts'
import { journalOf, testRunId, type KeptEvent } from './past-journal.ts'

const payloads = new Payloads(jsonCodec())

/**
 * Folds a history that was kept, and returns the state after it. Throws EVENT_UNREADABLE at an event that this code cannot read,
 * and LAW_BROKEN if an upcaster or `evolve` uses the clock or chance, or gives something else the second time.
 *
 * @example
 * const state = checkHistory(order, [{ version: 1, event: { type: 'Paid', cents: 500 } }, { type: 'Shipped' }])
 * expect(state).toEqual({ status: 'shipped', paid: 5 })
 */
export function checkHistory<Types extends DeciderTypes>(
  decider: Pick<Decider<Types>, 'model' | 'rules' | 'type' | 'types'>,
  history: readonly (Types['event'] | KeptEvent)[],
): Types['state'] {
  const entries = journalOf({ events: history, timers: [] }, decider.rules, { payloads, at: 0 })
  const uses: AmbientUse[] = []
  const fold = (): Types['state'] => {
    const ports = { digest: systemDigest, random: { uint32: () => 0 } }
    const instance = decider.model.open({ runId: testRunId, id: 'test', payloads, ports })
    const scope = { now: () => uses.length, random: () => 0, onUse: (use: AmbientUse) => void uses.push(use) }
    withAmbient(scope, () => instance.apply(entries))
    return instance.state
  }
  const release = holdAmbient()
  try {
    const [state, again] = [fold(), fold()]
    const [use] = uses
    if (use !== undefined) throw broken(decider.type, `${use.what} was used at ${use.place ?? 'an unknown place'}`)
    try {
      assert.deepStrictEqual(again, state)
    } catch (cause) {
      throw broken(decider.type, 'a second fold of it has another state', cause)
    }
    return state
  } finally {
    release()
  }
}

function broken(type: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError('LAW_BROKEN', `Decider "${type}" breaks the law "pure" at a kept history: ${why}`, {
    details: { law: 'pure', type },
    ...(cause === undefined ? {} : { cause }),
  })
}
