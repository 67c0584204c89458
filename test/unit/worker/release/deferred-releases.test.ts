// Runs that only another worker can perform are given back in time, and those of the same workflow that this one can perform
// have their turn between. Time belongs to the test.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import { createRecordingLogger } from '../../../../src/testing/logger.ts'
import { createVirtualClock } from '../../../../src/testing/virtual-clock.ts'
import { DeferredReleases } from '../../../../src/worker/release/deferred-releases.ts'

const reason = new HoldfastError('INVALID_OPTION', 'There is no offload.')
const selectors = [
  { type: 'a', version: 1 },
  { type: 'b', version: 1 },
] as const

function setUp() {
  const clock = createVirtualClock()
  const logger = createRecordingLogger()
  const released: string[] = []
  const ready: number[] = []
  const began = clock.now()
  const since = (): number => clock.now() - began
  const ports = { clock, logger, random: { uint32: () => 2 ** 31 } }
  const registry = { find: (type: string) => ({ leaseMs: type === 'a' ? 3_000 : null }) }
  const engine = { ports, registry, onReady: () => void ready.push(since()) } as unknown as Engine
  const deferred = new DeferredReleases(engine, ({ id }) => void released.push(`${id} ${since()}`))
  const add = (id: string, type = 'a', token = 1, status: Run['status'] = 'running'): void => {
    deferred.add({ id, type, version: 1, status } as Run, { session: 'me', token }, reason)
  }
  const claimable = (): string =>
    deferred
      .claimable(selectors)
      .map(({ type }) => type)
      .join('')
  return { deferred, clock, logger, released, ready, add, claimable, since }
}

describe('a run that this worker cannot perform', () => {
  it('is given back soon, said once, and its workflow is left to others until all have had the time to look', async () => {
    const { clock, logger, released, ready, add, claimable } = setUp()
    add('one')
    expect(claimable()).toBe('ab')
    await clock.advance(100)
    expect([released, claimable()]).toEqual([['one 100'], 'b'])
    await clock.advance(4_999)
    expect([claimable(), ready]).toEqual(['b', []])
    await clock.advance(1)
    expect([claimable(), ready]).toEqual(['ab', [5_100]])
    add('one')
    expect(logger.messages('error')).toHaveLength(1)
  })

  it('that comes back is kept for longer each time', async () => {
    const { clock, released, add, deferred } = setUp()
    for (let times = 0; times < 9; times += 1) {
      add('one')
      while (deferred.has('one')) await clock.advance(100)
      await clock.advance(20_000)
    }
    const at = released.map((one) => Number(one.split(' ')[1]))
    const kept = at.map((ms, index) => ms - (index === 0 ? 0 : (at[index - 1] ?? 0) + 20_000))
    expect(kept).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
  })

  it('leaves half of the time to those that can be performed, however many like it there are', async () => {
    const { clock, add, claimable, deferred, released, since } = setUp()
    let closedMs = 0
    for (let turn = 0; turn < 6_000; turn += 1) {
      // Claimed again as soon as it may be, and ever more of them.
      if (claimable() === 'ab') for (let id = 0; id < turn / 10; id += 1) if (!deferred.has(`${id}`)) add(`${id}`)
      await clock.advance(100)
      if (claimable() === 'b') closedMs += 100
    }
    expect(closedMs).toBeLessThanOrEqual(since() / 2 + 5_000)
    expect(closedMs).toBeGreaterThan(since() / 4)
    expect(new Set(released.map((one) => one.split(' ')[0])).size).toBeGreaterThan(500)
  })

  it('is given back only when others have the whole time to look', async () => {
    const { clock, add, released } = setUp()
    add('first')
    await clock.advance(900)
    add('soon')
    await clock.advance(200)
    add('late')
    await clock.advance(20_000)
    expect(released).toEqual(['first 100', 'soon 1000', 'late 10100'])
  })

  it('holds up no other workflow', async () => {
    const { clock, add, released } = setUp()
    add('one', 'a')
    await clock.advance(2_000)
    add('two', 'b')
    await clock.advance(100)
    expect(released).toEqual(['one 100', 'two 2100'])
  })

  it('is listed for the heartbeat, which extends its deadline by the lease of its workflow', async () => {
    const { clock, add, deferred } = setUp()
    add('one', 'a', 7)
    add('two', 'b')
    expect(deferred.claims()).toEqual([
      { runId: 'one', token: 7, extendMs: 3_000 },
      { runId: 'two', token: 1, extendMs: null },
    ])
    await clock.advance(100)
    expect(deferred.claims()).toEqual([])
  })

  it('whose claim is lost is not given back, and nothing of that claim remains', async () => {
    const { clock, add, deferred, released } = setUp()
    add('one', 'a', 7)
    deferred.drop('one', 6)
    expect(deferred.has('one')).toBe(true)
    deferred.drop('one', 7)
    expect([deferred.has('one'), clock.pending]).toEqual([false, 0])
    await clock.advance(1_000)
    expect(released).toEqual([])
  })

  it('is given back at once for a control request, but not if it was claimed because of one', async () => {
    const { clock, add, deferred, released } = setUp()
    add('one')
    add('two', 'a', 1, 'cancelling')
    for (const id of ['one', 'two', 'three']) deferred.controlRequested(id)
    expect(released).toEqual(['one 0'])
    await clock.advance(100)
    expect(released).toEqual(['one 0', 'two 100'])
  })

  it('is logged when the worker stops, and leaves no timer', async () => {
    const { clock, add, deferred } = setUp()
    add('one')
    await clock.advance(1_100)
    add('two')
    await clock.advance(1_000)
    expect(deferred.clear()).toEqual([{ session: 'me', token: 1, runId: 'two' }])
    expect(clock.pending).toBe(0)
  })
})

describe('a run whose journal the store does not show', () => {
  it('is kept for longer each time, up to a minute, said once, and its workflow goes on', async () => {
    const { clock, logger, released, claimable, deferred } = setUp()
    const hidden = new HoldfastError('STORE_REFUSED', 'The store shows 0 of 2 entries.')
    const kept: number[] = []
    for (let times = 0; times < 12; times += 1) {
      const since = clock.now()
      deferred.addUnreadable({ id: 'one', type: 'a', version: 1 } as Run, { session: 'me', token: 1 }, hidden)
      while (deferred.has('one')) await clock.advance(100)
      kept.push(clock.now() - since)
      expect(claimable()).toBe('ab')
    }
    expect(kept).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000])
    expect(released).toHaveLength(12)
    expect(logger.messages('error')).toEqual([expect.stringContaining('The store shows 0 of 2 entries.')])
  })
})
