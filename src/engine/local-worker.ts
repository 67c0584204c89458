// The worker of this process, as the engine and the client see it.

import type { Entry } from '../core/model/entry.ts'
import type { Lease, Run } from '../core/model/run.ts'

/** Where a starting run may find a worker in the same process: then its insert already carries the lease. */
export interface LocalWorker {
  /** Takes a free slot; null if there is none, or if others have waited longer. */
  reserve(): Lease | null
  /** Begins a run that was inserted with that lease. */
  begin(run: Run, lease: Lease, entries: readonly Entry[]): void
  /** Gives the slot back. */
  cancel(): void
  /** A client has controlled a run: if it is moving here, it learns of that at once. */
  controlled(run: Run): void
  /** There is a control request for a run: if it is claimed here and has not begun, it does not begin. May be called for any run. */
  controlRequested(runId: string): void
  /** A run has ended: if it is claimed here and has not begun, it does not begin. May be called for any run. */
  ended(runId: string): void
  /** A message came for a run: if it is moving here, it learns of that at once. May be called for any run. */
  messageArrived(runId: string): void
  /** Whether a run is moving here: then its end is known as soon as it is committed. */
  isMoving(runId: string): boolean
  /** It is about to begin runs that are claimed already. */
  isFilling(): boolean
  /** Whether the frame of a run that waits is kept here. */
  isParked(runId: string): boolean
}
