// A forgotten `work()`, or a workflow that no worker has, would be silence: runs are stored, and nothing happens. A process
// that cannot perform a run that it started, or the workflow that a run of its own continued as, looks after a while whether
// a worker has taken it, and logs one line if not.
//
// Once for each type, and with one timer for each type at most: the first run that is due speaks for those that follow.

import type { Cancel, Ports } from '../core/runtime/ports.ts'
import type { Run } from '../core/model/run.ts'
import type { Store } from '../store.ts'
import { quotedText } from '../core/text/printable.ts'

/** Longer than any worker that is up and idle takes to look for work. */
const patienceMs = 5_000

/** Whether no worker has ever taken a run that was to be begun at once, or none has for a while since it was due again. */
export function isUnclaimed(run: Run, now: number): boolean {
  const { status, session, token, due, createdAt, deletedAt } = run
  if (session !== null || deletedAt !== null || (status !== 'pending' && status !== 'waiting')) return false
  const isNew = token === 0 && status === 'pending'
  if (isNew && (due === null || due <= createdAt)) return true
  // Half of the time: the clocks of the timer and of the store are not the same one.
  return due !== null && now - due >= patienceMs / 2
}

export class UnclaimedWarning {
  private readonly store: Pick<Store, 'get'>
  private readonly ports: Ports
  private readonly now: () => number
  /** By type: when one of its runs is looked at, or was, if a line was written about it. */
  private readonly looks = new Map<string, { readonly at: number; readonly cancel: Cancel }>()

  /** `now` is the store's time, as far as this process knows it. */
  constructor(store: Pick<Store, 'get'>, ports: Ports, now: () => number) {
    this.store = store
    this.ports = ports
    this.now = now
  }

  /** A run that is not performed here waits to be claimed, or does so after `dueInMs`. */
  expect(type: string, runId: string, dueInMs = 0): void {
    const { clock } = this.ports
    if (clock.background === undefined) return
    const afterMs = dueInMs + patienceMs
    const at = clock.monotonic() + afterMs
    const known = this.looks.get(type)
    // A run that is due much later does not keep one that is due now from being looked at.
    if (known !== undefined && known.at <= at) return
    known?.cancel()
    this.looks.set(type, { at, cancel: clock.background(afterMs, () => void this.look(type, runId)) })
  }

  close(): void {
    for (const { cancel } of this.looks.values()) cancel()
  }

  private async look(type: string, runId: string): Promise<void> {
    const run = await this.store.get([runId]).then(
      ([found]) => found,
      () => undefined,
    )
    // If a worker performs runs of this type, the next start may look again.
    const now = this.now()
    if (run === undefined || !isUnclaimed(run, now)) {
      this.looks.delete(type)
      // What this process knows of the store's time may lag behind, the more the longer it waits.
      if (run?.token === 0 && run.due !== null && run.due > now - patienceMs / 2)
        this.expect(type, runId, run.due - now)
      return
    }
    // A worker has an effect with its decider.
    const [workflow = type] = type.split('/')
    this.ports.logger.warn(
      `Runs of ${quotedText(type)} wait, and no worker has begun run ${runId} after ${patienceMs / 1_000} s. This process has no worker for ` +
        `them: call holdfast.work() here, or start a worker elsewhere that has ${quotedText(workflow)} among its workflows. If one is up, it is ` +
        `busy, or lacks version ${run.version}. This is said once.`,
      { type, version: run.version, run: runId },
    )
  }
}
