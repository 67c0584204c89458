// What is known of a run from its row and its journal alone.

import { outcomesOf } from '../../src/core/invariants/invariant.ts'
import type { Entry } from '../../src/core/model/entry.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Parking } from '../../src/core/model/transition.ts'
import type { RunState } from '../../src/testing/invariants/index.ts'

/** Another session can move it on. */
export function waitsForOthers(entries: readonly Entry[]): boolean {
  const over = new Set(outcomesOf(entries, 'woken').map(({ name }) => name))
  return entries.some(
    (entry) =>
      entry.kind === 'waiting' &&
      !over.has(entry.name) &&
      entry.meta.conditions.some(({ kind }) => kind === 'signal' || kind === 'run'),
  )
}

/** A message that the session that parks the run wants has come, and it has not seen it. */
export function isUnseen({ run, messages }: RunState, { inbox, wakeNames = null }: Parking): boolean {
  if (wakeNames === null) return inbox !== run.inbox
  return messages.some(({ position, name }) => position > inbox && wakeNames.includes(name))
}

/** The number in what a step returned; 0 if there is none. */
export function numberIn(data: string | null): number {
  return Number(/"n":(\d+)/.exec(data ?? '')?.[1] ?? 0)
}

export function isSame(a: Run, b: Run): boolean {
  return (
    a.status === b.status &&
    a.session === b.session &&
    a.token === b.token &&
    a.seq === b.seq &&
    a.due === b.due &&
    a.readiness === b.readiness &&
    a.inbox === b.inbox &&
    a.watched === b.watched &&
    a.crashes === b.crashes &&
    a.undo === b.undo &&
    a.base === b.base &&
    a.updatedAt === b.updatedAt &&
    a.endedAt === b.endedAt &&
    a.deletedAt === b.deletedAt &&
    a.deadline === b.deadline &&
    a.timeoutAt === b.timeoutAt &&
    a.controlRequest?.kind === b.controlRequest?.kind &&
    a.controlRequest?.at === b.controlRequest?.at &&
    a.expiresAt === b.expiresAt
  )
}

/** Whether an entry that was seen was replaced or taken away. */
export function isRewritten({ entries }: HasEntries, row: HasEntries): boolean {
  if (row.entries.length < entries.length) return true
  for (let index = 0; index < entries.length; index += 1) if (entries[index] !== row.entries[index]) return true
  return false
}

interface HasEntries {
  readonly entries: readonly Entry[]
}
