// Reads the first entries of runs, to compare the input of a repeated start with the first one. Reads of the same turn become one
// load: a caller that repeats one start mostly repeats many. A load is bounded by its bytes; a run that got no entry by then is
// asked for again.

import type { Entry } from '../../core/model/entry.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { bytesAtOnce } from '../../engine/batch/message-reader.ts'
import { entryRequest } from '../../engine/store/journal-pages.ts'
import type { Loaded, Store } from '../../store.ts'

/** As many as one call of the store starts. */
const runsAtOnce = 500

interface PendingLoad {
  readonly runId: string
  readonly resolve: (entry: Entry | undefined) => void
  readonly reject: (error: unknown) => void
}

export class FirstEntries {
  private readonly store: Pick<Store, 'load'>
  private readonly ports: Pick<Ports, 'turns'>
  private pending: PendingLoad[] = []

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.store = store
    this.ports = ports
  }

  /** The first entry of a run; undefined if it has none any more. */
  readonly read = (runId: string): Promise<Entry | undefined> =>
    new Promise((resolve, reject) => {
      if (this.pending.push({ runId, resolve, reject }) === 1) this.ports.turns.next(() => void this.load())
    })

  private async load(): Promise<void> {
    let left = this.pending
    this.pending = []
    while (left.length > 0) {
      const some = left.slice(0, runsAtOnce)
      let loaded: readonly Loaded[]
      try {
        loaded = await this.store.load(
          some.map(({ runId }) => entryRequest(runId, 1)),
          bytesAtOnce,
        )
      } catch (error) {
        for (const { reject } of left) reject(error)
        return
      }
      const unread = some.filter(({ resolve }, at) => {
        const entry = loaded[at]?.entries[0]
        // The first request of a load gets its entry, if there is one.
        if (entry === undefined && at > 0) return true
        resolve(entry)
        return false
      })
      left = [...unread, ...left.slice(some.length)]
    }
  }
}
