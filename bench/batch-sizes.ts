// How many runs and transitions the engine puts into one call of the store, on average.

import type { Store } from 'holdfast'

class Mean {
  calls = 0
  private items = 0

  add(items: number): void {
    this.calls += 1
    this.items += items
  }

  get value(): number {
    return this.items / this.calls
  }
}

export interface BatchSizes {
  readonly start: Mean
  readonly commit: Mean
  /** What came back from claims that found something. */
  readonly claim: Mean
}

/** From now on counts what goes through this store. */
export function watchBatches(store: Store): BatchSizes {
  const sizes = { start: new Mean(), commit: new Mean(), claim: new Mean() }
  const start = store.start.bind(store)
  const commit = store.commit.bind(store)
  const claim = store.claim.bind(store)
  store.start = (runs) => {
    sizes.start.add(runs.length)
    return start(runs)
  }
  store.commit = (transitions) => {
    sizes.commit.add(transitions.length)
    return commit(transitions)
  }
  store.claim = async (request) => {
    const claimed = await claim(request)
    if (claimed.runs.length > 0) sizes.claim.add(claimed.runs.length)
    return claimed
  }
  return sizes
}
