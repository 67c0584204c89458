// Loads of runs that are requested in one turn, as one call of the store: callers that ask for one run mostly ask for many. A
// load is bounded by its bytes. A request that did not get enough by then is sent again, together with those that follow.

import type { Ports } from '../../core/runtime/ports.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'

/** How many bytes of entries, and of messages, are read at once for all runs that are read together. */
export const bytesAtOnce = 16 * 1024 * 1024

export interface TurnLoadOptions<Pending> {
  /** How many runs one call of the store reads. @default all of them */
  readonly runsAtOnce?: number
  readonly requestOf: (pending: Pending) => LoadRequest
  /**
   * Takes in what was loaded. Null if that is enough, and otherwise the request for the rest. The first request of a load
   * gets at least one entry or message, if there is one, so every load makes progress.
   */
  readonly learn: (pending: Pending, loaded: Loaded, isFirst: boolean) => Pending | null
  /** Rejects a request after an error of the store. */
  readonly fail: (pending: Pending, error: unknown) => void
}

const nothing: Loaded = { entries: [], messages: [] }

export class TurnLoads<Pending> {
  private readonly store: Pick<Store, 'load'>
  private readonly ports: Pick<Ports, 'turns'>
  private readonly options: TurnLoadOptions<Pending>
  private pending: Pending[] = []

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>, options: TurnLoadOptions<Pending>) {
    this.store = store
    this.ports = ports
    this.options = options
  }

  add(pending: Pending): void {
    if (this.pending.push(pending) === 1) this.ports.turns.next(() => void this.load())
  }

  private async load(): Promise<void> {
    const { runsAtOnce = Infinity, requestOf, learn, fail } = this.options
    let left: readonly Pending[] = this.pending
    this.pending = []
    while (left.length > 0) {
      const some = left.slice(0, runsAtOnce)
      let loaded: readonly Loaded[]
      try {
        loaded = await this.store.load(some.map(requestOf), bytesAtOnce)
      } catch (error) {
        for (const pending of left) fail(pending, error)
        return
      }
      const unread = some.map((pending, at) => learn(pending, loaded[at] ?? nothing, at === 0)).filter(isLeft)
      left = [...unread, ...left.slice(some.length)]
    }
  }
}

function isLeft<Pending>(pending: Pending | null): pending is Pending {
  return pending !== null
}
