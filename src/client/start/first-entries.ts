// Reads the first entries of runs, to compare the input of a repeated start with the first one.

import type { Entry } from '../../core/model/entry.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { TurnLoads } from '../../engine/batch/turn-loads.ts'
import { entryRequest } from '../../engine/store/journal-pages.ts'
import type { Store } from '../../store.ts'

/** As many as one call of the store starts. */
const runsAtOnce = 500

interface PendingLoad {
  readonly runId: string
  readonly resolve: (entry: Entry | undefined) => void
  readonly reject: (error: unknown) => void
}

export class FirstEntries {
  private readonly loads: TurnLoads<PendingLoad>

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.loads = new TurnLoads<PendingLoad>(store, ports, {
      runsAtOnce,
      requestOf: ({ runId }) => entryRequest(runId, 1),
      learn(pending, { entries: [entry] }, isFirst) {
        if (entry === undefined && !isFirst) return pending
        pending.resolve(entry)
        return null
      },
      fail: ({ reject }, error) => reject(error),
    })
  }

  /** The first entry of a run; undefined if it has none any more. */
  readonly read = (runId: string): Promise<Entry | undefined> =>
    new Promise((resolve, reject) => this.loads.add({ runId, resolve, reject }))
}
