// The request to start a run whose first input may be decided already. A run that another one starts is never decided: its own
// holder, or the next process that has its type, does that.

import type { NewRun } from '../model/new-run.ts'
import { withoutLeases, type Transition } from '../model/transition.ts'

export interface RunStart extends NewRun {
  /**
   * Its first input is decided, and this is what follows: a transition without a lease, behind entry 1, which takes effect in the
   * same transaction if the run is created. The run is never `pending` then, and nobody leases it.
   * @default null, a worker begins it
   */
  readonly decided?: Transition | null
}

/** The same, but neither it nor a child of it is leased: inside a transaction of a user nothing is. */
export function startWithoutLeases(run: RunStart): RunStart {
  const { decided = null } = run
  return { ...run, lease: null, decided: decided === null ? null : withoutLeases(decided) }
}
