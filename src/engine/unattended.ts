// A forgotten `work()`, or a workflow that no worker has, would be silence: runs are stored, and nothing happens. A process
// without a worker looks after a while whether somebody has begun what it started, and says so in one line if not.
//
// Once for each type, and with one timer for each type at most: the first run that is started speaks for those that follow.

import type { Ports } from '../core/ports.ts'
import type { Run } from '../core/run.ts'
import type { Store } from '../store.ts'

/** Longer than any worker that is up and idle takes to look for work. */
const patienceMs = 5_000

/** Tells whether nobody has ever taken a run that was to be begun at once. */
export function isUnattended({ status, token, due, createdAt, deletedAt }: Run): boolean {
  return status === 'pending' && token === 0 && deletedAt === null && (due === null || due <= createdAt)
}

export class Unattended {
  private readonly store: Pick<Store, 'get'>
  private readonly ports: Ports
  /** The types that are being looked after, and those that a line was written about. */
  private readonly cancels = new Map<string, () => void>()

  constructor(store: Pick<Store, 'get'>, ports: Ports) {
    this.store = store
    this.ports = ports
  }

  /** A run was started that nobody here performs. */
  started(type: string, runId: string): void {
    const { clock } = this.ports
    if (this.cancels.has(type) || clock.background === undefined) return
    this.cancels.set(
      type,
      clock.background(patienceMs, () => void this.look(type, runId)),
    )
  }

  close(): void {
    for (const cancel of this.cancels.values()) cancel()
  }

  private async look(type: string, runId: string): Promise<void> {
    const run = await this.store.get([runId]).then(
      ([found]) => found,
      () => undefined,
    )
    // If somebody performs runs of this type, the next start may look again.
    if (run === undefined || !isUnattended(run)) return void this.cancels.delete(type)
    this.ports.logger.warn(
      `Runs of "${type}" wait, and nobody has begun run ${runId} after ${patienceMs / 1_000} s. This process has no worker: call ` +
        `holdfast.work() here, or start a worker elsewhere that has "${type}" among its workflows. If one is up, it is busy, or ` +
        'has another version. This is said once.',
      { type, version: run.version, run: runId },
    )
  }
}
