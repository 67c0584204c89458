// Applies a control command to a run, for every store: `control.ts` decides; this reads the rows that the decision needs and
// writes its result. A store calls it with the row of the run locked, for one command after the other: the second sees the
// effect of the first.

import { change, type ChangeWork } from './change.ts'
import type { Keyed } from './commit.ts'
import { control, type ControlCommand, type ControlResult } from './control.ts'
import type { Run } from '../model/run.ts'

/** The rows that the rules read and write to control runs. */
export interface ControlWork extends ChangeWork {
  /** Whether an entry of that run carries this transition id, those of this transaction included. */
  hasTransition(runId: string, id: string): boolean
  /** The live run, other than this one, that has the business key of this one. */
  keyHolder(run: Keyed): string | null
}

/** The `run` of an answer may be an object that the store keeps: a store that does so hands out a copy. */
export function controlRun(work: ControlWork, run: Run | undefined, request: ControlCommand): ControlResult {
  if (run === undefined) return { outcome: 'not-found' }
  // Its first answer was lost.
  if (work.hasTransition(run.id, request.id)) return { outcome: 'done', run }
  const keyHolder = request.kind === 'retry' ? work.keyHolder(run) : null
  const { answer, write } = control(run, request, work.now, keyHolder)
  if (write !== null) change(work, run, write, request.id)
  return answer
}
