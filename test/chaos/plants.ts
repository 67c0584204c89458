// Bugs that are planted into the store of the workers, over whatever real store there is. A chaos run with one of them must
// fail; one that does not would not see the same bug in the engine either.

import { isHoldfastError, type Store } from '../../src/index.ts'
import type { Transition } from '../../src/core/model/transition.ts'
import type { Committed } from '../../src/store.ts'
import type { Plant } from './testbed.ts'

type Commit = Store['commit']

/** The store, with that bug. */
export function plantedStore(store: Store, plant: Plant): Store {
  if (plant === 'none' || plant === 'lost-touch') return store
  const commit = plant === 'no-fence' ? withoutFence(store) : retryingBlindly(store)
  return new Proxy(store, {
    get(target, key) {
      if (key === 'commit') return commit
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** A stale lease may write: who is refused because others hold the run writes in their name. */
function withoutFence(store: Store): Commit {
  const again = async (transition: Transition, answer: Committed): Promise<Committed> => {
    if (answer.outcome !== 'refused' || (answer.reason !== 'lease-lost' && answer.reason !== 'stale')) return answer
    const [row] = await store.get([transition.runId])
    if (row === undefined || row.session === null) return answer
    const guard = { seq: row.seq, lease: { session: row.session, token: row.token } }
    const [forced] = await store.commit([{ ...transition, guard }])
    return forced ?? answer
  }
  return async (transitions) => {
    const answers = await store.commit(transitions)
    return Promise.all(transitions.map((transition, index) => again(transition, answers[index] as Committed)))
  }
}

/** What was sent and not answered is sent again as something new, at the end of the journal as it is by then. */
function retryingBlindly(store: Store): Commit {
  const unanswered = new Set<string>()
  const renewed = async (transition: Transition): Promise<Transition> => {
    if (!unanswered.has(transition.id)) return transition
    const [row] = await store.get([transition.runId])
    const guard = { ...transition.guard, seq: row?.seq ?? transition.guard.seq }
    return { ...transition, id: `${transition.id} again`, guard }
  }
  return async (transitions) => {
    const sent = await Promise.all(transitions.map(renewed))
    try {
      return await store.commit(sent)
    } catch (error) {
      if (isHoldfastError(error, 'STORE_UNAVAILABLE')) for (const { id } of transitions) unanswered.add(id)
      throw error
    }
  }
}
