// The invariants of all runs together.

import { uniqueText } from '../model/key.ts'
import type { FleetInvariant, RunState, Violation } from './invariant.ts'
import { quotedText } from '../text/printable.ts'

export const oneKeyOneLiveRun: FleetInvariant = {
  name: 'one_key_one_live_run',
  kind: 'S',
  about: 'No two live runs have the same business key in the same scope.',
  check(states) {
    return shared(states, ({ run }) => (run.endedAt === null && run.deletedAt === null ? uniqueText(run) : null))
  },
}

export const idempotencyKey: FleetInvariant = {
  name: 'idempotency_key',
  kind: 'S',
  about: 'No two runs of a type that are not deleted have the same idempotency key.',
  check(states) {
    return shared(states, ({ run, entries }) => {
      if (run.idempotencyKey === null || run.deletedAt !== null) return null
      // The key belongs to the type with which the run was started. After `continueAs` the row no longer says which type
      // that was.
      const wentOn = entries.some((entry) => entry.kind === 'continued' && entry.meta.type !== run.type)
      return run.base > 1 && wentOn ? null : `${run.type} ${run.idempotencyKey}`
    })
  },
}

/** The runs that share a text which must be unique. */
function shared(
  states: readonly RunState[],
  textOf: (state: RunState) => string | null,
): readonly Omit<Violation, 'name'>[] {
  const byText = new Map<string, string[]>()
  for (const state of states) {
    const text = textOf(state)
    if (text === null) continue
    const ids = byText.get(text)
    if (ids === undefined) byText.set(text, [state.run.id])
    else ids.push(state.run.id)
  }
  return [...byText]
    .filter(([, ids]) => ids.length > 1)
    .flatMap(([text, ids]) => ids.map((runId) => ({ runId, message: `${ids.length} runs have ${quotedText(text)}` })))
}
