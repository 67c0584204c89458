// Starts whose first input is decided, where nothing but entries and a time follows: what an insert writes by itself. Anything
// else (children, messages, an end, a snapshot) follows in the same transaction, by the rules of a transition.

import type { Draft } from '../model/entry.ts'
import type { Run } from '../model/run.ts'
import { sends } from '../model/transition.ts'
import { advanced, left } from '../rules/advance.ts'
import { newRow } from '../rules/new-row.ts'
import type { RunStart } from '../rules/run-start.ts'

export function isPlainlyDecided({ decided = null, keyId: key = null, messages = [] }: RunStart): boolean {
  if (decided === null || messages.length > 0 || sends(decided)) return false
  const { status, outbound = null, base = null, keyId = null } = decided
  return status === 'waiting' && outbound === null && base === null && (keyId === null || keyId === key)
}

/** The entries behind its first one that are inserted with it. */
export function followingOf(run: RunStart): readonly Draft[] {
  return isPlainlyDecided(run) ? (run.decided?.append ?? []) : []
}

/** The row as it is inserted. */
export function insertedRow(given: RunStart, now: number, isLeased: boolean): Run {
  const row = newRow(given, now, isLeased)
  const { decided = null } = given
  return decided === null || !isPlainlyDecided(given) ? row : left(advanced(row, decided, now), decided, now)
}
