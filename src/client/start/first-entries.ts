// Reads how runs were started, for those who repeat a start and must mean the same. Those that are asked for in the same turn are
// read together: whoever repeats one start mostly repeats many. So many bytes are read at a time; who has got nothing by then is
// read for again.

import type { Entry } from '../../core/model/entry.ts'
import type { Ports } from '../../core/runtime/ports.ts'
import { bytesAtOnce } from '../../engine/batch/message-reader.ts'
import { noMessages } from '../../engine/batch/mailer.ts'
import type { Loaded, LoadRequest, Store } from '../../store.ts'

/** As many as are started at once. */
const runsAtOnce = 500

interface Asked {
  readonly runId: string
  readonly resolve: (entry: Entry | undefined) => void
  readonly reject: (error: unknown) => void
}

export class FirstEntries {
  private readonly store: Pick<Store, 'load'>
  private readonly ports: Pick<Ports, 'turns'>
  private asked: Asked[] = []

  constructor(store: Pick<Store, 'load'>, ports: Pick<Ports, 'turns'>) {
    this.store = store
    this.ports = ports
  }

  /** The first entry of a run; undefined if it has none any more. */
  readonly read = (runId: string): Promise<Entry | undefined> =>
    new Promise((resolve, reject) => {
      if (this.asked.push({ runId, resolve, reject }) === 1) this.ports.turns.next(() => void this.load())
    })

  private async load(): Promise<void> {
    let left = this.asked
    this.asked = []
    while (left.length > 0) {
      const some = left.slice(0, runsAtOnce)
      let loaded: readonly Loaded[]
      try {
        loaded = await this.store.load(
          some.map(({ runId }) => firstOf(runId)),
          bytesAtOnce,
        )
      } catch (error) {
        for (const { reject } of left) reject(error)
        return
      }
      const unread = some.filter(({ resolve }, at) => {
        const entry = loaded[at]?.entries[0]
        // The first of a load gets its entry, if there is one.
        if (entry === undefined && at > 0) return true
        resolve(entry)
        return false
      })
      left = [...unread, ...left.slice(some.length)]
    }
  }
}

/** Asks for the first entry of a run, and for no messages. */
export function firstOf(runId: string): LoadRequest {
  return { runId, after: 0, limit: 1, mail: noMessages }
}
