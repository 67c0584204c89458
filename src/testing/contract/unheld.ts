// Helpers for the cases of the contract in which a process writes for a run that nobody holds.

import type { Draft } from '../../core/model/entry.ts'
import type { Run } from '../../core/model/run.ts'
import type { Transition } from '../../core/model/transition.ts'
import type { NewRun, RunStart } from '../../store.ts'
import { succeeded, type ContractBench, type Success } from './bench.ts'

/** An event of a decider. */
export function event(name = 'Created'): Draft {
  return { kind: 'event', name, meta: { version: 1 }, data: `{"type":"${name}"}` }
}

/** A transition without a lease, behind that entry of a run: it stays waiting, unless the case says otherwise. */
export function unheld(
  { unique }: Pick<ContractBench, 'unique'>,
  { id: runId, seq }: Pick<Run, 'id' | 'seq'>,
  changes: Partial<Transition> = {},
): Transition {
  return {
    id: unique('unheld'),
    runId,
    guard: { seq, lease: null },
    append: [event()],
    status: 'waiting',
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
    ...changes,
  }
}

/** Commits one without a lease behind what is in the journal, and expects success. */
export async function decide(bench: ContractBench, runId: string, changes?: Partial<Transition>): Promise<Success> {
  return succeeded(await bench.send(unheld(bench, await bench.run(runId), changes)))
}

/** A run that waits without a holder, until a message comes. */
export async function waitingRun(bench: ContractBench, changes?: Partial<NewRun>): Promise<Run> {
  const held = await bench.hold(changes)
  await bench.park(held)
  return bench.run(held.runId)
}

/** A new run whose first input is decided: what follows is this. */
export function decidedRun(
  bench: ContractBench,
  follows: Partial<Transition> = {},
  changes: Partial<NewRun> = {},
): RunStart {
  const run = bench.newRun(changes)
  return { ...run, decided: unheld(bench, { id: run.id, seq: 1 }, follows) }
}
