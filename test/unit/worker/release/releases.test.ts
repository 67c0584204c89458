// Runs that a process does not go on with are given back, and none of them waits for another. Time belongs to the test; the
// store is scripted.

import { describe, expect, it } from 'vitest'
import type { Lease, Run } from '../../../../src/core/model/run.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import type { ReleasedLease } from '../../../../src/store.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { Releases } from '../../../../src/worker/release/releases.ts'

/** A store in which another transaction has locked some runs, or that is away. */
function setUp() {
  const clock = createVirtualClock()
  const logger = createRecordingLogger()
  const state = { locked: new Set<string>(), isAway: false, isSilent: false }
  const calls: string[][] = []
  const gone: string[] = []
  const store = {
    release(leases: readonly ReleasedLease[]): Promise<readonly ReleasedLease[]> {
      calls.push(leases.map(({ runId }) => runId))
      if (state.isSilent) return new Promise(() => undefined)
      if (state.isAway) return Promise.reject(new Error('Gone'))
      for (const { runId } of leases) if (!state.locked.has(runId)) gone.push(runId)
      return Promise.resolve(leases.filter(({ runId }) => state.locked.has(runId)))
    },
  }
  const turns = { next: (turn: () => void) => void clock.after(0, turn) }
  const engine = { store, session: 'me', ports: { clock, logger, turns, random: { uint32: () => 2 ** 31 } } }
  const releases = new Releases(engine as unknown as Engine)
  const lease: Lease = { session: 'me', token: 1 }
  return {
    releases,
    engine,
    clock,
    logger,
    state,
    calls,
    gone,
    leave: (...runIds: readonly string[]) =>
      runIds.forEach((id) => releases.release({ id, type: 'order' } as Run, lease)),
  }
}

const names = (left: readonly ReleasedLease[]): readonly string[] => left.map(({ runId }) => runId)

describe('runs that are given back', () => {
  it('go together if they leave in the same turn', async () => {
    const { leave, clock, calls, releases } = setUp()
    leave('a', 'b')
    await clock.advance(0)
    leave('c')
    await clock.advance(0)
    await releases.settled()
    expect([calls, clock.pending]).toEqual([[['a', 'b'], ['c']], 0])
  })

  it.each([
    ['locked', { locked: new Set(['first']) }],
    ['refused by the store', { isAway: true }],
    ['not answered', { isSilent: true }],
  ])('go at once, also behind one that is %s', async (_, how) => {
    const { leave, clock, state, gone } = setUp()
    Object.assign(state, how)
    leave('first')
    await clock.advance(0)
    Object.assign(state, { isAway: false, isSilent: false })
    leave('second')
    await clock.advance(0)
    leave('third')
    await clock.advance(0)
    expect(gone).toEqual(['second', 'third'])
  })

  it('are tried again after pauses as long as another transaction has locked them, and nobody waits for them meanwhile', async () => {
    const { leave, clock, state, calls, gone, logger, releases } = setUp()
    state.locked.add('a')
    leave('a')
    await clock.advance(0)
    await releases.settled()
    await clock.advance(60_000)
    expect(calls.length).toBeGreaterThan(20)
    expect(calls.length).toBeLessThan(80)
    state.locked.clear()
    await clock.advance(2_000)
    expect([gone, releases.takeLeft(), clock.pending, logger.lines]).toEqual([['a'], [], 0, []])
  })

  it('are tried twenty times while the store fails, and then said to be left', async () => {
    const { leave, clock, state, calls, logger } = setUp()
    state.isAway = true
    leave('a', 'b')
    await clock.advance(60_000)
    expect(calls).toHaveLength(20)
    expect(logger.messages('error')).toEqual([
      'Run a of "order" could not be given back.',
      'Run b of "order" could not be given back.',
    ])
    expect(clock.pending).toBe(0)
  })

  it('are left to the code that stops the worker, whatever became of them, and are not tried again behind its back', async () => {
    const { leave, clock, state, calls, releases } = setUp()
    state.locked.add('locked')
    leave('locked')
    await clock.advance(0)
    state.isSilent = true
    leave('unanswered')
    await clock.advance(0)
    leave('just left')
    expect(names(releases.takeLeft())).toEqual(['locked', 'unanswered', 'just left'])
    // But for the turn in which the last one would have gone.
    expect(clock.pending).toBe(1)
    const { length } = calls
    await clock.advance(60_000)
    expect([calls.length, clock.pending]).toEqual([length, 0])
  })

  it('go on being given back after leases were lost', async () => {
    const { leave, clock, state, gone, releases } = setUp()
    state.locked.add('a')
    leave('a')
    await clock.advance(0)
    releases.takeLeft()
    state.locked.add('b')
    leave('b')
    await clock.advance(0)
    state.locked.clear()
    await clock.advance(2_000)
    expect([gone, clock.pending]).toEqual([['b'], 0])
  })

  it('are not tried again under a session that is over: others take them over', async () => {
    const { leave, clock, state, engine, calls } = setUp()
    state.locked.add('a')
    leave('a')
    await clock.advance(0)
    engine.session = 'another'
    await clock.advance(60_000)
    expect([calls, clock.pending]).toEqual([[['a']], 0])
  })
})
