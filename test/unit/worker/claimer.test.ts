// When the claimer asks the store, and when it does not. Time and turns belong to the test.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../src/core/error.ts'
import type { Cancel, Ports } from '../../../src/core/ports.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Claimed } from '../../../src/store.ts'
import { Claimer } from '../../../src/worker/claimer.ts'
import type { Performer } from '../../../src/worker/performer.ts'
import { Slots } from '../../../src/worker/slots.ts'

const nobody: Claimed = { runs: [], more: false, nextDue: null, now: 0 }
const some = (count: number): Claimed => ({ ...nobody, runs: Array.from({ length: count }, () => ({}) as never) })

function setUp(slotCount: number) {
  const asked: number[] = []
  const answers: (Claimed | Error)[] = []
  const timers = new Map<() => void, number>()
  const turns: (() => void)[] = []
  const ports: Ports = {
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after(ms, wake): Cancel {
        timers.set(wake, ms)
        return () => timers.delete(wake)
      },
    },
    turns: { next: (call) => void turns.push(call) },
    // A half, at which jitter changes nothing.
    random: { uint32: () => 2 ** 31 },
    logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  }
  const store = {
    capabilities: { notifies: true, multiProcess: false },
    claim: ({ limit }: { limit: number }) => {
      asked.push(limit)
      const answer = answers.shift() ?? nobody
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
  }
  const engine = { store, ports, session: 'session', clock: { observe: () => undefined } } as unknown as Engine
  const performer = { beginAll: () => Promise.resolve() } as unknown as Performer
  const slots: Slots = new Slots(slotCount, () => claimer.slotFreed())
  const refusals: HoldfastError[] = []
  const claimer = new Claimer(engine, slots, performer, {
    selectors: [],
    pollMs: 1_000,
    refused: (reason) => void refusals.push(reason),
  })
  return {
    refusals,
    asked,
    answers,
    claimer,
    slots,
    /** The delays of the timers that are set. */
    delays: () => [...timers.values()],
    fire: () => {
      const due = [...timers.keys()]
      timers.clear()
      for (const wake of due) wake()
    },
    /** Runs turns, and the microtasks between them, until there are none. */
    turn: async () => {
      do {
        for (const call of turns.splice(0)) call()
        for (let tick = 0; tick < 10; tick += 1) await Promise.resolve()
      } while (turns.length > 0)
    },
  }
}

describe('the claimer', () => {
  it('tells the worker when the store has outgrown this code, and is stopped while it still answers for the claim', async () => {
    const { claimer, answers, asked, refusals, slots, turn, fire } = setUp(4)
    const reason = new HoldfastError('SCHEMA_TOO_NEW', 'Too new')
    answers.push(reason)
    claimer.start()
    await turn()
    expect(refusals).toEqual([reason])
    const stopped = claimer.stop()
    fire()
    await turn()
    await stopped
    expect(slots.free).toBe(4)
    expect(asked).toEqual([2])
  })

  it('asks once for half of the free slots, however often it is woken: a run started here finds one, too', async () => {
    const { claimer, asked, slots, turn } = setUp(5)
    slots.take(2)
    claimer.start()
    claimer.wake()
    claimer.wake()
    await turn()
    expect(asked).toEqual([2])
    expect(slots.free).toBe(3)
  })

  it('asks again at once when it was woken while it was asking', async () => {
    const { claimer, asked, turn } = setUp(1)
    claimer.start()
    const turning = turn()
    claimer.wake()
    await turning
    expect(asked).toEqual([1, 1])
  })

  it('does not ask without a free slot, and does when one becomes free', async () => {
    const { claimer, asked, slots, turn } = setUp(1)
    slots.take(1)
    claimer.start()
    await turn()
    expect(asked).toEqual([])
    expect(claimer.hasBacklog).toBe(false)
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
    expect(claimer.hasBacklog).toBe(false)
  })

  it('sleeps until the next run is due, but never longer than its poll, because hints may be lost', async () => {
    const { claimer, answers, asked, delays, fire, turn } = setUp(1)
    answers.push({ ...nobody, now: 100, nextDue: 350 }, { ...nobody, now: 350, nextDue: 99_999 }, nobody)
    claimer.start()
    await turn()
    expect(delays()).toEqual([250])
    fire()
    await turn()
    expect(delays()).toEqual([1_000])
    fire()
    await turn()
    expect(delays()).toEqual([1_000])
    expect(asked).toEqual([1, 1, 1])
  })

  it('pauses when the store fails, gives the slots back and asks again', async () => {
    const { claimer, answers, asked, slots, delays, fire, turn } = setUp(4)
    answers.push(new Error('Gone'), some(1))
    claimer.start()
    await turn()
    expect(asked).toEqual([2])
    expect(delays()).toHaveLength(1)
    fire()
    await turn()
    expect(asked).toEqual([2, 2])
    expect(slots.free).toBe(3)
  })

  it('asks no more once it is stopped, and stopping waits for the answer that is on its way', async () => {
    const { claimer, asked, delays, turn } = setUp(1)
    claimer.start()
    const turning = turn()
    const stopped = claimer.stop()
    await turning
    await stopped
    claimer.wake()
    await turn()
    expect(asked).toHaveLength(1)
    expect(delays()).toEqual([])
  })

  it('that is stopped before it asked never asks', async () => {
    const { claimer, asked, turn } = setUp(1)
    claimer.start()
    await claimer.stop()
    await turn()
    expect(asked).toEqual([])
  })
})
