// What a store may do and the ones in memory do not: pass over a run that somebody else has locked, and hand over with a claim
// the journal of a run that nobody has begun. The engine must come to the same end with a store of such manners.

import type { Committed, Fresh, Store } from '../../src/store.ts'
import type { Draw } from './draw.ts'

/** How often somebody has locked one of several. */
const busy = 0.1

export function withManners<Kind extends Store>(store: Kind, draw: Draw): Kind {
  const manners: Partial<Store> = {
    async commit(transitions) {
      if (transitions.length < 2 || !draw.chance(busy)) return store.commit(transitions)
      const locked = draw.pick(transitions)
      const rest = transitions.filter((one) => one !== locked)
      const answers = await store.commit(rest)
      const passedOver: Committed = { outcome: 'refused', reason: 'busy' }
      return transitions.map((one) => (one === locked ? passedOver : (answers[rest.indexOf(one)] as Committed)))
    },

    async claim(request) {
      const claimed = await store.claim(request)
      const untouched = claimed.runs.filter(({ seq, inbox }) => seq === 1 && inbox === 0)
      if (untouched.length === 0 || draw.chance(0.5)) return claimed
      const loaded = await store.load(untouched.map(({ id }) => ({ runId: id, after: 0, limit: 2 })))
      const fresh: Fresh[] = []
      for (const [index, { id }] of untouched.entries()) {
        const { entries: [first, ...more] = [], messages = [] } = loaded[index] ?? {}
        // Whoever took it over meanwhile has written to it.
        if (first !== undefined && more.length === 0 && messages.length === 0) fresh.push({ runId: id, entry: first })
      }
      return { ...claimed, fresh }
    },
  }
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in manners ? manners : target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
