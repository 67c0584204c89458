// A run whose row another transaction has locked can be controlled as soon as that is over, for about as long as a store may take.
// Time belongs to the test; the store is scripted.

import { describe, expect, it } from 'vitest'
import { cancelRuns } from '../../../../src/client/control/bulk-control.ts'
import { cancelRun, pauseRun } from '../../../../src/client/control/run-control.ts'
import { jsonCodec } from '../../../../src/core/payload/codec.ts'
import type { HoldfastError } from '../../../../src/core/errors/error.ts'
import { defaultLimits } from '../../../../src/core/definition/limits.ts'
import { Payloads } from '../../../../src/core/payload/payload.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import type { ControlCommand } from '../../../../src/core/rules/control.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'

const storageMs = 15_000

/** A store in which some runs are locked until a time. */
function setUp(lockedMs: Readonly<Record<string, number>>, runs = Object.keys(lockedMs)) {
  const clock = createVirtualClock()
  const began = clock.monotonic()
  const since = (): number => clock.monotonic() - began
  const calls: string[][] = []
  const found = [runs]
  const store = {
    count: () => Promise.resolve(0),
    find: () => Promise.resolve((found.shift() ?? []).map((id) => ({ id, status: 'waiting' }))),
    control: (requests: readonly ControlCommand[]) => {
      calls.push(requests.map(({ runId }) => runId))
      const answers = requests.map(({ runId }) => {
        if (since() < (lockedMs[runId] ?? 0)) return { outcome: 'busy' }
        return { outcome: 'done', run: { id: runId, status: 'cancelled', readiness: 'idle', deletedAt: null } as Run }
      })
      return Promise.resolve(answers)
    },
  }
  const engine = {
    store,
    storageMs,
    limits: defaultLimits,
    payloads: new Payloads(jsonCodec()),
    ports: { clock, random: { uint32: () => 2 ** 31 } },
    assertOpen: () => undefined,
    transitionId: () => 'id',
    localWorker: null,
    runEnds: { hinted: () => undefined },
    onReady: () => undefined,
  } as unknown as Engine
  /** What comes of it, and when. */
  const outcomeOf = async (controlled: Promise<unknown>): Promise<unknown> => {
    let outcome: unknown
    controlled.then(
      (answer) => (outcome = { answer, at: since() }),
      (error: unknown) => (outcome = { error, at: since() }),
    )
    await clock.advance(2 * storageMs)
    return outcome
  }
  return { engine, calls, clock, outcomeOf }
}

describe('steering a run that another transaction has locked', () => {
  it('waits as long as a store may take, and happens when the lock is gone', async () => {
    const { engine, outcomeOf } = setUp({ a: 0.8 * storageMs })
    expect(await outcomeOf(cancelRun(engine, 'a'))).toMatchObject({ answer: { outcome: 'cancelled' } })
  })

  it('rejects when that time is almost over, and knows that nothing has happened', async () => {
    const { engine, outcomeOf, clock } = setUp({ a: Infinity })
    const outcome = await outcomeOf(pauseRun(engine, 'a'))
    const { error, at } = outcome as { readonly error: HoldfastError; readonly at: number }
    expect([error.code, error.details]).toEqual(['STORE_UNAVAILABLE', { runId: 'a' }])
    expect(error.message).toContain('Another transaction has locked run a')
    expect([at >= 0.8 * storageMs, at < storageMs, clock.pending]).toEqual([true, true, 0])
  })

  it('is not asked for more than a few times a second', async () => {
    const { engine, calls, outcomeOf } = setUp({ a: Infinity })
    await outcomeOf(cancelRun(engine, 'a'))
    expect(calls.length).toBeLessThan((5 * storageMs) / 1_000)
  })

  it('in bulk comes last, and those that stay locked are skipped when the time is over', async () => {
    const { engine, calls, outcomeOf } = setUp({ never: Infinity, soon: 5_000, free: 0 })
    const cancelled = await outcomeOf(cancelRuns(engine, {}, { all: true }))
    expect(cancelled).toMatchObject({ answer: { matched: 3, changed: 2, skipped: 1 } })
    expect(calls.slice(0, 2)).toEqual([
      ['never', 'soon', 'free'],
      ['never', 'soon'],
    ])
    expect(calls.at(-1)).toEqual(['never'])
  })
})
