// The keys with which this worker can read. Its claims name them, so that runs which need another key are left to workers that
// have it: in a rolling deployment the old build leaves the runs of the new key alone.
//
// A worker without any key names none as long as it has met no run that needs one: then a claim costs what it did before
// there were keys. When it starts it looks once for live runs that it could not read, and logs them.

import { isReadable } from '../../core/rules/claims/readable.ts'
import type { Run } from '../../core/model/run.ts'
import { shown } from '../../core/text/suggest.ts'
import type { Engine } from '../../engine/engine.ts'
import type { StoreAdmin } from '../../store.ts'

/** At most so many runs are counted. */
const countedAtMost = 1_000

export class KnownKeys {
  private readonly engine: Engine
  /** Null if the codec does not name its keys: then the worker gets every run. */
  private readonly keys: readonly string[] | null
  /** The keys that its claims name. */
  named: readonly string[] | undefined

  constructor(engine: Engine) {
    this.engine = engine
    this.keys = engine.payloads.keys
    this.named = this.keys === null || this.keys.length === 0 ? undefined : this.keys
  }

  /** Whether this worker may begin a run. From the first one on that it may not, its claims name its keys. */
  admits(run: Run): boolean {
    if (this.keys === null || isReadable(run, { keys: this.keys })) return true
    this.named = this.keys
    return false
  }

  /** Looks for live runs that need another key, and says how many there are. Never rejects: it only spares a surprise. */
  async look(): Promise<void> {
    const { store, ports } = this.engine
    const { otherKeys } = store as Partial<StoreAdmin>
    if (this.keys === null || otherKeys === undefined) return
    try {
      const found = await otherKeys.call(store, this.keys, countedAtMost)
      if (found.length === 0) return
      this.named = this.keys
      const runs = found.reduce((sum, one) => sum + one.runs, 0)
      const missingKeys =
        runs === 1 ? '1 live run was' : `${runs === countedAtMost ? `${runs} or more` : runs} live runs were`
      const keys = found.map(({ key }) => shown(key)).join(', ')
      ports.logger.warn(
        `This worker cannot read all runs: ${missingKeys} written with keys that it lacks (${keys}). It leaves them to workers that ` +
          'have those keys; without one they wait.',
        { keys: found },
      )
    } catch (error) {
      ports.logger.warn('Whether there are runs that this worker cannot read is not known.', { error })
    }
  }
}
