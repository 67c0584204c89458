// The invariants of the engine by name, and how a test checks them: states with `checkRun` and `checkAll`, steps between two
// states with `checkStep`, the feed with `checkFeed`, waits, broadcasts and chores with `checkExchange`.

import type { RunState, Violation } from '../../core/invariants/invariant.ts'
import {
  checkpointImmutable,
  commitMovesOn,
  historyAppendOnly,
  messagesStay,
  terminalIsFinal,
  transitionBounded,
  undoNotForgotten,
} from './journal-steps.ts'
import {
  callWritesItsFields,
  claimInTime,
  claimNeverEarly,
  crashesAreCounted,
  endedByEntry,
  epochOnlyGrowsOnClaim,
  fence,
  leaseNotStolen,
  statusMachine,
} from './lease-steps.ts'
import type { Cause, StepInvariant } from './step.ts'

export { checkAll, checkExchange, checkFeed, checkRun, stateInvariants } from '../../core/invariants/check.ts'
export type { RunState, Violation } from '../../core/invariants/invariant.ts'
export type { Cause, StepInvariant } from './step.ts'

export const stepInvariants: readonly StepInvariant[] = [
  historyAppendOnly,
  checkpointImmutable,
  terminalIsFinal,
  messagesStay,
  undoNotForgotten,
  commitMovesOn,
  transitionBounded,
  epochOnlyGrowsOnClaim,
  fence,
  leaseNotStolen,
  claimNeverEarly,
  claimInTime,
  crashesAreCounted,
  statusMachine,
  callWritesItsFields,
  endedByEntry,
]

export const bornByStart = {
  name: 'born_by_start',
  kind: 'T',
  about:
    'A start or a commit creates a run, with one entry, and leases it to no session but the one that starts it; a start whose first input is decided also writes what follows.',
} as const

/** The violations of a step. A run that did not exist before must have been created by a start. */
export function checkStep(before: RunState | null, after: RunState, cause: Cause): readonly Violation[] {
  const runId = after.run.id
  if (before === null)
    return bornWell(after, cause) ? [] : [{ name: bornByStart.name, runId, message: message(after, cause) }]
  const violations: Violation[] = []
  for (const { name, check } of stepInvariants) {
    const found = check(before, after, cause)
    if (found !== null) violations.push({ name, runId, message: found })
  }
  return violations
}

function bornWell({ run, entries, messages }: RunState, { method, session }: Cause): boolean {
  const isFree = run.status === 'pending' && run.session === null && run.token === 0
  if (messages.length !== run.inbox) return false
  const isLeased = run.status === 'running' && run.session !== null && run.token === 1
  const isAlone = entries.length === 1
  const isChild = run.parentId !== null
  if (method === 'commit')
    return isAlone ? isFree || (isLeased && isChild) : run.token === 0 && isCancelledAtOnce(entries)
  if (method !== 'start') return false
  // A child of it is leased to whom its transition names.
  return isAlone ? isFree || (isLeased && (run.session === session || isChild)) : isDecided(run)
}

/** It was never pending: its first input was decided with its start. */
function isDecided({ status, session, token }: RunState['run']): boolean {
  return token === 0 && session === null && (status === 'waiting' || status === 'succeeded' || status === 'failed')
}

/** The commit that started it also ended its parent. */
function isCancelledAtOnce(entries: RunState['entries']): boolean {
  return entries.length === 2 && entries[1]?.kind === 'cancelling'
}

function message({ run, entries }: RunState, { method }: Cause): string {
  return `${method} made it ${run.status} with token ${run.token} and ${entries.length} entries`
}
