// The invariants of what lies between runs can fail, too: each is broken here and found by its name.

import { describe, expect, it } from 'vitest'
import type { WaitRow } from '../../../src/core/exchange.ts'
import type { Run } from '../../../src/core/run.ts'
import type { Broadcast } from '../../../src/core/topic.ts'
import { checkExchange, type RunState } from '../../../src/testing/invariants/index.ts'
import { newRun } from '../core/new-run.ts'

const now = 5_000
const over = { status: 'failed', readiness: 'idle', due: null, endedAt: 2_000 } as const

function keyed(id: string, changes: Partial<Run>): RunState {
  return { run: newRun({ id, ...changes }), entries: [], messages: [] }
}

describe('a state', () => {
  it('in which somebody waits for a run that has ended is found', () => {
    const wait: WaitRow = { kind: 'run', target: 'b', runId: 'a', effect: 'tell', delivery: null, openedAt: 1 }
    const found = (waits: readonly WaitRow[], changes: Partial<Run>): string[] =>
      checkExchange({ waits, broadcasts: [] }, [keyed('a', {}), keyed('b', changes)], now).map(
        ({ name, runId }) => `${name} ${runId}`,
      )
    expect(found([wait], {})).toEqual([])
    expect(found([wait], over)).toEqual(['end_told a'])
    expect(found([{ ...wait, effect: 'cancel' }], over)).toEqual(['end_told a'])
    expect(found([{ ...wait, kind: 'topic' }], over)).toEqual([])
  })

  it('in which a queue keeps something although somebody waits on it is found', () => {
    const wait: WaitRow = { kind: 'topic', target: 'q', runId: 'a', effect: 'tell', delivery: 'queue', openedAt: 1 }
    const open: Broadcast = {
      topic: 'q',
      position: 1,
      id: 'b',
      delivery: 'queue',
      data: '1',
      policy: null,
      at: 1,
      expiresAt: null,
      takenBy: null,
      told: 0,
    }
    const found = (kept: Partial<Broadcast>, waiter: Partial<Run> = {}, waits: Partial<WaitRow> = {}): string[] =>
      checkExchange(
        { waits: [{ ...wait, ...waits }], broadcasts: [{ ...open, ...kept }] },
        [keyed('a', waiter)],
        now,
      ).map(({ name, runId }) => `${name} ${runId}`)
    expect(found({})).toEqual(['queue_not_stuck a'])
    expect(found({ expiresAt: now + 1 })).toEqual(['queue_not_stuck a'])
    for (const kept of [{ expiresAt: now }, { takenBy: 'b' }, { topic: 'other' }, { delivery: 'topic' }] as const) {
      expect(found(kept)).toEqual([])
    }
    expect(found({}, over)).toEqual([])
    expect(found({}, { deletedAt: 1 })).toEqual([])
    expect(found({}, {}, { delivery: 'topic' })).toEqual([])
    expect(found({}, {}, { kind: 'run' })).toEqual([])
  })
})
