// Until when what is decided without a lease may end a run that has a bound on its time.

import { describe, expect, it } from 'vitest'
import type { Transition } from '../../../../src/core/model/transition.ts'
import { judge, type CommitReads } from '../../../../src/core/rules/judge.ts'
import { newRun } from '../model/new-run.ts'

const late: CommitReads = {
  now: 10,
  run: () => undefined,
  canHave: () => true,
  entryAt: () => undefined,
  keyHolder: () => null,
}

function success(seq: number): Transition {
  return {
    id: 'success',
    runId: 'r',
    guard: { seq, lease: null },
    append: [{ kind: 'succeeded', name: null, meta: null, data: '1' }],
    status: 'succeeded',
    due: null,
    parkIf: null,
    undo: null,
    continues: null,
    takes: [],
  }
}

describe('a success without a lease after the time of its run', () => {
  const run = {
    id: 'r',
    status: 'waiting',
    readiness: 'idle',
    due: null,
    session: null,
    createdAt: 0,
    timeoutAt: 5,
  } as const

  it('is as early as the start of which it is a part', () => {
    expect(judge(late, newRun({ ...run, seq: 1 }), success(1))).toBeNull()
  })

  it('is too late where it was decided later', () => {
    expect(judge(late, newRun({ ...run, seq: 2 }), success(2))).toEqual({ outcome: 'refused', reason: 'timed-out' })
  })
})
