// A call whose cost must not grow with the tables, and how such calls come by the runs that they are about.

import type { ContractBench, Held } from '../../src/testing/contract/bench.ts'
import type { Backlog } from './backlog.ts'

export interface Call {
  readonly name: string
  /** How many runs it is about. */
  readonly size: number
  /** No index knows what it looks for: it goes from the newest on until it has enough, and takes as long as that takes. */
  readonly walks?: boolean
  /** `turn` makes what it starts its own. */
  run(bench: ContractBench, backlog: Backlog, turn: string): Promise<unknown>
}

export const charge = { type: 'charge', version: 1 }
export const ship = { type: 'ship', version: 1 }

/** Runs of a session of their own. */
export async function heldBy(
  { store, newRun }: ContractBench,
  session: string,
  size: number,
): Promise<readonly Held[]> {
  const lease = { session, token: 1 }
  const runs = Array.from({ length: size }, () => newRun({ ...charge, lease, leaseMs: 60_000 }))
  await store.start(runs)
  return runs.map(({ id }) => ({ runId: id, lease, seq: 1 }))
}

export function ofEach(
  backlog: Backlog,
  kind: 'asleep' | 'ready' | 'timed',
  size: number,
  from = 2,
): readonly string[] {
  return Array.from({ length: size }, (_, index) => backlog.id(kind, from + index))
}

/** A transition of each of so many runs. */
export function committed(
  name: string,
  size: number,
  changes: (turn: string) => Parameters<ContractBench['transition']>[1],
): Call {
  return {
    name,
    size,
    async run(bench, _, turn) {
      const { store, transition, unique } = bench
      const held = await heldBy(bench, unique(`worker of ${turn}`), size)
      return store.commit(held.map((one) => transition(one, { id: unique(`${turn} ${name}`), ...changes(turn) })))
    },
  }
}
