// The invariants of instances of deciders can fail, too: each is broken here and found by its name.

import { describe, expect, it } from 'vitest'
import type { Draft } from '../../../src/core/model/entry.ts'
import type { Message } from '../../../src/core/model/message.ts'
import type { Run } from '../../../src/core/model/run.ts'
import { checkExchange, checkRun, type RunState } from '../../../src/testing/invariants/index.ts'
import { newRun } from '../core/model/new-run.ts'

const now = 5_000
const started: Draft = { kind: 'started', name: null, meta: null, data: '1' }
const sleeping = { status: 'waiting', readiness: 'timed' } as const

/** Each entry is committed a second after the one before it. */
function state(changes: Partial<Run>, drafts: readonly Draft[]): RunState {
  const entries = [started, ...drafts].map((draft, index) => {
    const seq = index + 1
    return { ...draft, seq, at: 1_000 * seq, transition: `t${seq}` }
  })
  return { run: newRun({ id: 'a', type: 'order', seq: entries.length, ...changes }), entries, messages: [] }
}

const timer = (name: string, afterMs: number): Draft => ({
  kind: 'timer',
  name,
  meta: { at: null, afterMs },
  data: '1',
})

describe('a time at which an instance is due', () => {
  const found = (due: number | null, drafts: readonly Draft[], changes: Partial<Run> = {}): boolean =>
    checkRun(state({ ...sleeping, due, ...changes }, drafts), now).some(({ name }) => name === 'due_is_earliest_timer')

  it('IF-S6 is that of its earliest timer', () => {
    const both = [timer('late', 90_000), timer('soon', 10_000)]
    expect(found(13_000, both)).toBe(false)
    for (const due of [12_999, 13_001, 92_000, null]) expect(found(due, both), `due at ${due}`).toBe(true)
    expect(
      found(92_000, [
        timer('late', 90_000),
        { kind: 'timer', name: '#3', meta: { at: 92_001, afterMs: null }, data: '1' },
      ]),
    ).toBe(false)
    expect(found(null, [])).toBe(false)
  })

  it('is that of what is still armed', () => {
    const late = timer('late', 90_000)
    const attempt = { attempt: 1, ms: 0 }
    const from = { kind: 'timer', name: 'late', dueAt: 9 } as const
    const over: readonly Draft[] = [
      { kind: 'timer-cancelled', name: 'late', meta: null, data: null },
      { kind: 'timer-failed', name: 'late', meta: attempt, data: '1' },
      { kind: 'input', name: 'Late', meta: { from, outcome: 'accepted' }, data: '1' },
    ]
    for (const one of over) {
      const { kind } = one
      expect({ kind, found: [found(null, [late, one]), found(92_000, [late, one])] }).toEqual({
        kind,
        found: [false, true],
      })
    }
    expect(
      found(10_000, [late, { kind: 'attempt-failed', name: 'late', meta: { ...attempt, delayMs: 7_000 }, data: '1' }]),
    ).toBe(false)
    expect(found(98_000, [late, timer('late', 95_000)])).toBe(false)
    expect(found(92_000, [late, timer('late', 95_000)])).toBe(true)
  })

  it('may be any time that is over, and is nobody’s business while the instance does not just wait', () => {
    expect(found(4_000, [timer('soon', 10)])).toBe(false)
    const late = [timer('late', 90_000)]
    expect(found(4_000, late)).toBe(true)
    for (const changes of [{ status: 'paused' }, { deletedAt: 1 }] as const)
      expect(found(null, late, changes)).toBe(false)
    expect(found(null, [...late, { kind: 'retried', name: null, meta: { note: null }, data: null }])).toBe(false)
    const mail: Message = {
      id: 'm',
      runId: 'a',
      kind: 'signal',
      name: 'input',
      data: '1',
      policy: null,
      position: 1,
      at: 1,
    }
    const written = { ...state({ ...sleeping, due: 4_000 }, late), messages: [mail] }
    expect(checkRun(written, now).map(({ name }) => name)).not.toContain('due_is_earliest_timer')
  })
})

describe('the effects of an instance', () => {
  const effect = (type: string, seq: number): Draft => ({
    kind: 'effect',
    name: `${type}#${seq}`,
    meta: null,
    data: '1',
  })
  const performing = (name: string | null, changes: Partial<Run> = {}): RunState => {
    const metadata = name === null ? null : JSON.stringify({ id: '42', effect: name })
    return state({ id: 'e', type: 'order/mail', parentId: 'a', metadata, ...changes }, [])
  }
  const found = (...states: readonly RunState[]): string[] =>
    checkExchange({ waits: [], broadcasts: [], chores: [] }, states, now).map(({ name, runId }) => `${name} ${runId}`)
  const broken = (id: string): string[] => [`effect_runs_follow_journal ${id}`]

  it('have their runs', () => {
    const asking = state(sleeping, [effect('mail', 2)])
    expect(found(asking, performing('mail#2'))).toEqual([])
    expect(found(asking)).toEqual(broken('a'))
    expect(found(asking, performing('mail#2', { type: 'other/mail' }))).toEqual([...broken('a'), ...broken('e')])
    expect(found(asking, performing('mail#2', { parentId: null }))).toEqual(broken('a'))
    expect(found(asking, performing(null))).toEqual(broken('a'))
  })

  it('have them in their order, and no longer than they have no outcome', () => {
    const meta = { attempt: 1, ms: 1 }
    const two = [effect('mail', 2), effect('mail', 3)]
    expect(found(state(sleeping, two), performing('mail#2'))).toEqual([])
    expect(found(state(sleeping, two), performing('mail#3'))).toEqual(broken('a'))
    for (const kind of ['effect-succeeded', 'effect-failed'] as const) {
      const first: Draft =
        kind === 'effect-failed'
          ? { kind, name: 'mail#2', meta, data: '1' }
          : { kind, name: 'mail#2', meta, data: null }
      expect(found(state(sleeping, [effect('mail', 2), first]))).toEqual([])
      expect(found(state(sleeping, [...two, first]), performing('mail#2'))).toEqual(broken('a'))
    }
    expect(found(state({ status: 'succeeded', readiness: 'idle', endedAt: 9 }, two))).toEqual([])
  })

  it('were asked for by it, while it is there', () => {
    expect(found(state(sleeping, []), performing('mail#2'))).toEqual(broken('e'))
    expect(found(performing('mail#2'))).toEqual([])
    expect(found(state(sleeping, []), performing('mail#2', { type: 'mail' }))).toEqual([])
  })
})
