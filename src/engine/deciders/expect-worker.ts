// What a decision asks for is performed by a worker. A process without one looks after a while whether another has it.

import type { Transition } from '../../core/model/transition.ts'
import { dueAt } from '../../core/model/due.ts'
import type { Run } from '../../core/model/run.ts'
import type { DecidingEngine } from './deciding-engine.ts'

/** The runs that a committed transition starts, and its next timer, need a worker. */
export function expectWorker(
  { localWorker, unclaimedWarning, clock }: Pick<DecidingEngine, 'localWorker' | 'unclaimedWarning' | 'clock'>,
  run: Pick<Run, 'id' | 'type'>,
  { outbound = null, due }: Pick<Transition, 'outbound' | 'due'>,
): void {
  if (localWorker !== null) return
  for (const { run: started } of outbound?.starts ?? []) unclaimedWarning.expect(started.type, started.id)
  if (due === null) return
  const now = clock.now()
  unclaimedWarning.expect(run.type, run.id, Math.max(0, (dueAt(due, now) ?? now) - now))
}
