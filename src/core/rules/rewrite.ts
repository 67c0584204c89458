// A change of a run by a process that does not hold it: the entries that are appended and the row afterwards. The decisions
// behind it (`control.ts`, `claims/takeover.ts`) are pure and shared by all stores, which write the result.

import type { Draft } from '../model/entry.ts'
import { isTerminal, type Run } from '../model/run.ts'
import { isolatedDelayMs, isSuspect } from './claims/suspect.ts'

export interface Rewrite {
  readonly run: Run
  readonly append: readonly Draft[]
}

type Change = Partial<Omit<Run, 'id' | 'shard' | 'seq' | 'createdAt' | 'updatedAt' | 'endedAt'>>

/** Appends entries and changes the row with them. */
export function rewrite(run: Run, append: readonly Draft[], change: Change, now: number): Rewrite {
  const changed = { ...run, ...change }
  return {
    append,
    run: {
      ...changed,
      seq: run.seq + append.length,
      updatedAt: append.length === 0 ? run.updatedAt : now,
      endedAt: isTerminal(changed.status) ? (run.endedAt ?? now) : null,
    },
  }
}

/** The run has no holder, and only an operator can move it. */
export const idle = { readiness: 'idle', due: null, session: null, deadline: null } as const

/** The end of a run: there is nothing more to wait for. */
export const over = { ...idle, controlRequest: null, expiresAt: null } as const

/**
 * The run has no holder, and any worker that can perform it may claim it now; a suspect is claimed in isolation, and later
 * each time that it died so; a deleted run is never claimed.
 */
export function ready(run: Run, now: number): Pick<Run, 'readiness' | 'due' | 'session' | 'deadline'> {
  if (run.deletedAt !== null) return idle
  if (!isSuspect(run)) return { readiness: 'ready', due: now, session: null, deadline: null }
  return { readiness: 'isolated', due: now + isolatedDelayMs(run.crashes), session: null, deadline: null }
}
