// The control requests of the contract's cases, and helpers that read the results.

import assert from 'node:assert/strict'
import type { Draft } from '../../core/model/entry.ts'
import type { Run, ControlRequest } from '../../core/model/run.ts'
import type { Control, ControlRefusal } from '../../core/rules/control.ts'
import type { ControlResult } from '../../store.ts'
import type { ContractBench, Held } from './bench.ts'
import { step } from './drafts.ts'

export const cancel: Control = { kind: 'cancel', mode: 'cooperative', reason: 'enough' }
export const cancelNow: Control = { kind: 'cancel', mode: 'now', reason: 'at once' }
export const pause: Control = { kind: 'pause', reason: 'operator', note: 'wait' }
export const resume: Control = { kind: 'resume', note: 'go on', amend: [], seq: null }
export const retry: Control = { kind: 'retry', note: 'again', amend: [], seq: null }
export const remove: Control = { kind: 'remove', reason: 'by mistake' }

export const everyRequest: readonly Control[] = [cancel, cancelNow, pause, resume, retry, remove]

/** The control request on the row of a run that is to be cancelled. */
export function cancelControlRequest(at: number): ControlRequest {
  return { kind: 'cancel', reason: 'enough', at }
}

export function pauseControlRequest(at: number): ControlRequest {
  return { kind: 'pause', reason: 'operator', note: 'wait', at }
}

/** A step with an undo. */
export const undoable: Draft = {
  kind: 'step-succeeded',
  name: 'charge',
  meta: { attempt: 1, ms: 1, undo: true },
  data: '1',
}

export const pausedEntry: Draft = { kind: 'paused', name: null, meta: { reason: 'operator', note: 'wait' }, data: null }

/** The run of an answer that must be this one. */
export function controlled(answer: ControlResult, outcome: 'done' | 'requested'): Run {
  assert.equal(answer.outcome, outcome, `expected ${outcome}, got ${JSON.stringify(answer)}`)
  assert.ok('run' in answer)
  return answer.run
}

/** Sends a request, expects that it is refused for this reason, and checks that nothing has changed. */
export async function expectControlRefused(
  { control, run, journal }: ContractBench,
  runId: string,
  request: Control,
  reason: ControlRefusal,
): Promise<void> {
  const before = [await run(runId), await journal(runId)]
  assert.deepEqual(await control(runId, request), { outcome: 'refused', reason, run: before[0] })
  assert.deepEqual([await run(runId), await journal(runId)], before, 'nothing has changed')
}

/** A run that the case holds, with a step to undo. */
export async function holdUndoable(
  { hold, commit }: ContractBench,
  changes?: Parameters<typeof hold>[0],
): Promise<Held> {
  const held = await hold(changes)
  await commit(held, { append: [undoable], undo: 'possible' })
  return held
}

/** A failed run with one recorded step. */
export async function failedRun(
  { hold, commit }: ContractBench,
  changes?: Parameters<typeof hold>[0],
): Promise<string> {
  const held = await hold(changes)
  const failed: Draft = { kind: 'failed', name: null, meta: null, data: '"no"' }
  await commit(held, { append: [step(), failed], status: 'failed' })
  return held.runId
}

export async function kindsOf({ journal }: ContractBench, runId: string): Promise<readonly string[]> {
  return (await journal(runId)).map(({ kind }) => kind)
}
