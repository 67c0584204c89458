// The judge must be able to condemn: each thing that must not be, planted, is found.

import { describe, expect, it } from 'vitest'
import type { JournalEntry } from '../../src/index.ts'
import { inspect } from './inspection.ts'
import type { Execution } from './step-log.ts'

const at = new Date(0)
const started: JournalEntry = { seq: 1, at, kind: 'started', name: null, meta: null, data: 1 }
const result = (seq: number, data: string): JournalEntry => {
  return { seq, at, kind: 'step-succeeded', name: 'a', meta: { attempt: 1, ms: 1 }, data }
}
const ended = (seq: number): JournalEntry => ({ seq, at, kind: 'succeeded', name: null, meta: null, data: 1 })
const body = (pid: number, began: number, end: number | null): Execution => {
  return { run: 'r', step: 'a', attempt: 1, pid, mark: `m${pid}`, began, ended: end }
}

const sound = [started, result(2, 'm1'), ended(3)]

function judged(
  journal: readonly JournalEntry[],
  executions: readonly Execution[],
  goneAt: readonly [number, number][],
) {
  const runs = [{ id: 'r', status: 'succeeded', journal }]
  return inspect({ runs, steps: ['a'], executions, goneAt: new Map(goneAt) })
}

describe('the judge of what dead processes left', () => {
  it('finds nothing where nothing is wrong', () => {
    const findings = judged(sound, [body(2, 0, null), body(1, 60, 70)], [[2, 50]])
    expect(findings).toEqual({ violations: [], steps: 1, repeated: 1, takeovers: 0, recoveryMs: [10] })
  })

  it.each<[string, readonly JournalEntry[], readonly Execution[], RegExp]>([
    ['a step that was performed twice at once', sound, [body(2, 0, null), body(1, 40, 70)], /while 2 was still/],
    ['a result that is missing', [started, ended(2)], [body(1, 0, 9)], /0 results of step a/],
    ['two results', [started, result(2, 'm1'), result(3, 'm1'), ended(4)], [body(1, 0, 9)], /2 results of step a/],
    ['a result that no body made', sound, [body(3, 0, 9)], /no body of it made/],
    ['a result of a body that never ended', sound, [body(1, 0, null)], /never ended/],
    ['a gap', [started, result(2, 'm1'), ended(4)], [body(1, 0, 9)], /gap/],
    ['a run that ended twice', [...sound, ended(4)], [body(1, 0, 9)], /ended 2 times/],
  ])('finds %s', (_, journal, executions, complaint) => {
    expect(judged(journal, executions, [[2, 50]]).violations).toEqual([expect.stringMatching(complaint)])
  })

  it('finds a run that did not succeed', () => {
    const runs = [{ id: 'r', status: 'failed', journal: sound }]
    const { violations } = inspect({ runs, steps: ['a'], executions: [body(1, 0, 9)], goneAt: new Map() })
    expect(violations).toEqual(['r is failed'])
  })
})
