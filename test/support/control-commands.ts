// What people may ask of a run, mostly of one that is in a state to grant it.

import type { Run, RunStatus } from '../../src/core/model/run.ts'
import type { Revival, Control, ControlCommand } from '../../src/core/rules/control.ts'
import { diedIsolated } from '../../src/core/rules/claims/suspect.ts'
import type { Chances } from './chances.ts'

const whom: Readonly<Record<Control['kind'], readonly RunStatus[]>> = {
  cancel: ['pending', 'running', 'waiting', 'paused'],
  pause: ['pending', 'running', 'waiting'],
  resume: ['paused', 'running'],
  retry: ['failed'],
  remove: ['succeeded', 'failed', 'cancelled', 'running', 'waiting'],
  acquit: ['pending', 'paused', 'cancelling'],
}

export function controlCommand(chances: Chances, rows: readonly Run[], nobody: string): ControlCommand {
  const kind = chances.weighted([
    [3, 'cancel'],
    [4, 'pause'],
    [5, 'resume'],
    [5, 'retry'],
    [1, 'remove'],
    [3, 'acquit'],
  ] as const)
  const isFitting = (run: Run): boolean => whom[kind].includes(run.status) && (kind !== 'acquit' || diedIsolated(run))
  const fitting = rows.filter(isFitting)
  const among = fitting.length > 0 && !chances.oneIn(4) ? fitting : rows
  const run = among.length === 0 || chances.oneIn(25) ? null : chances.pick(among)
  return { id: chances.unique('r'), runId: run?.id ?? nobody, ...controlOf(chances, kind, run) }
}

function controlOf(chances: Chances, kind: Control['kind'], run: Run | null): Control {
  switch (kind) {
    case 'cancel':
      return { kind, mode: chances.oneIn(4) ? 'now' : 'cooperative', reason: chances.maybe(2, ['enough']) }
    case 'pause':
      return { kind, reason: chances.pick(['operator', 'maintenance']), note: chances.maybe(2, ['look at it']) }
    case 'resume':
    case 'retry':
      return { kind, ...revival(chances, run) }
    case 'remove':
      return { kind, reason: chances.maybe(2, ['no longer needed']) }
    case 'acquit':
      return { kind, seq: (run?.seq ?? 1) - (chances.oneIn(4) ? 1 : 0) }
  }
}

function revival(chances: Chances, run: Run | null): Revival {
  const note = chances.maybe(2, ['try again'])
  if (run === null || chances.oneIn(2)) return { note, amend: [], seq: null }
  const seq = chances.oneIn(4) ? run.seq - 1 : run.seq
  return {
    note,
    seq,
    amend: [
      { kind: 'amended', name: null, meta: { seq: 1, dropped: true }, data: null },
      { kind: 'amended', name: 'pay', meta: { seq: 1, dropped: false }, data: '"other"' },
    ],
  }
}
