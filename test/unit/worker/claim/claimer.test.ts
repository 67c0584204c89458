// When the claimer asks the store, and when it does not. Time and turns belong to the test.

import { describe, expect, it } from 'vitest'
import { jsonCodec } from '../../../../src/core/payload/codec.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { Payloads } from '../../../../src/core/payload/payload.ts'
import type { Cancel, Ports } from '../../../../src/core/runtime/ports.ts'
import type { Run } from '../../../../src/core/model/run.ts'
import type { Engine } from '../../../../src/engine/engine.ts'
import type { Claimed, ClaimRequest } from '../../../../src/store.ts'
import { Claimer } from '../../../../src/worker/claim/claimer.ts'
import { KnownKeys } from '../../../../src/worker/claim/known-keys.ts'
import type { Performer } from '../../../../src/worker/perform/performer.ts'
import { Slots } from '../../../../src/worker/perform/slots.ts'
import { systemDigest } from '../../../../src/system.ts'

const nobody: Claimed = { runs: [], more: false, nextDue: null, now: 0 }
let made = 0
const some = (count: number): Claimed => ({
  ...nobody,
  runs: Array.from({ length: count }, () => ({ id: `run ${(made += 1)}`, keyId: null }) as never),
})

function setUp(slotCount: number, leaseMs: number | null = null, types: readonly string[] = ['order']) {
  const asked: number[] = []
  const named: string[] = []
  const answers: (Claimed | Error)[] = []
  const timers = new Map<() => void, number>()
  const turns: (() => void)[] = []
  let time = 0
  const begun: string[] = []
  const givenBack: string[] = []
  const ports: Ports = {
    clock: {
      now: () => 0,
      monotonic: () => time,
      after(ms, wake): Cancel {
        timers.set(wake, ms)
        return () => timers.delete(wake)
      },
    },
    turns: { next: (call) => void turns.push(call) },
    // A half, at which jitter changes nothing.
    random: { uint32: () => 2 ** 31 },
    digest: systemDigest,
    logger: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  }
  const store = {
    capabilities: { notifies: true, multiProcess: false },
    claim: ({ limit, selectors }: ClaimRequest) => {
      asked.push(limit)
      named.push(selectors.map(({ type }) => type).join(' '))
      const answer = answers.shift() ?? nobody
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
  }
  const payloads = new Payloads(jsonCodec())
  const engine = {
    store,
    ports,
    session: 'session',
    clock: { observe: () => undefined },
    payloads,
  } as unknown as Engine
  const claimable: Performer['claimable'] = (selectors) => selectors
  const performer = {
    claimable,
    beginAll: (runs: readonly Run[]) => Promise.resolve(void begun.push(...runs.map(({ id }) => id))),
    decline: ({ id }: Run) => void givenBack.push(id),
  } as unknown as Performer
  const slots: Slots = new Slots(slotCount, { freed: () => claimer.slotFreed(), left: () => undefined })
  const refusals: HoldfastError[] = []
  const claimer = new Claimer(engine, slots, performer, {
    selectors: types.map((type) => ({ type, version: 1, leaseMs })),
    pollMs: 1_000,
    keys: new KnownKeys(engine),
    refused: (reason) => void refusals.push(reason),
    rested: () => undefined,
    unanswered: () => undefined,
  })
  return {
    begun: () => begun.splice(0),
    givenBack: () => givenBack.splice(0),
    pass: (ms: number) => void (time += ms),
    refusals,
    asked,
    named,
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

  it('names the types last that were served last, and so lets them take turns with one slot, too', async () => {
    const { claimer, answers, named, slots, turn } = setUp(1, null, ['a', 'b', 'c'])
    const of = (...served: string[]): Claimed => {
      const runs = served.map((type) => ({ id: `run ${(made += 1)}`, type, keyId: null }) as never)
      return { ...nobody, runs, more: true }
    }
    answers.push(of('a'), of('c'), of('a'), new Error('Gone'), of())
    claimer.start()
    for (let claim = 0; claim < 3; claim += 1) {
      await turn()
      slots.give(1)
    }
    await turn()
    expect(named).toEqual(['a b c', 'b c a', 'b a c', 'b c a'])
  })

  it('names the types in the order in which they were last served by a claim of many', async () => {
    const { claimer, answers, named, turn } = setUp(8, null, ['a', 'b', 'c', 'd'])
    const runs = ['b', 'a', 'c', 'b'].map((type) => ({ id: `run ${(made += 1)}`, type, keyId: null }) as never)
    answers.push({ ...nobody, runs, more: true })
    claimer.start()
    await turn()
    expect(named).toEqual(['a b c d', 'd a c b'])
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

  it('pauses longer and longer while others hold all that is ready, whatever slots are freed meanwhile', async () => {
    const { claimer, answers, asked, slots, delays, fire, turn } = setUp(2)
    const held: Claimed = { ...nobody, more: true }
    answers.push(...Array.from({ length: 10 }, () => held))
    slots.take(1)
    claimer.start()
    await turn()
    expect([asked, delays(), claimer.hasBacklog]).toEqual([[1], [5], true])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
    // What holds one run up is no reason for those to wait who are to be performed alone.
    expect(claimer.isResting).toBe(true)
    const pauses: number[] = []
    for (let count = 0; count < 9; count += 1) {
      fire()
      await turn()
      pauses.push(...delays())
    }
    expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 500, 500, 500])
    answers.push({ ...some(1), more: true })
    claimer.wake()
    await turn()
    // Once it got something it asks for the rest at once, and the next pause is short again.
    expect(asked.slice(-2)).toEqual([2, 1])
    expect(claimer.hasBacklog).toBe(false)
  })

  it('pauses longer and longer while others hold what has come due, too, but not past what comes due next', async () => {
    const { claimer, answers, asked, delays, fire, turn } = setUp(2)
    const now = 10_000
    const late: Claimed = { ...nobody, nextDue: now - 3, now }
    answers.push(...Array.from({ length: 9 }, () => late), { ...late, more: true })
    answers.push({ ...late, more: true, nextDue: now + 7 })
    claimer.start()
    const pauses: number[] = []
    for (let count = 0; count < 11; count += 1) {
      await turn()
      pauses.push(...delays())
      fire()
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 500, 500, 500, 7])
    await turn()
    // Nothing is left, and so the next pause is short again.
    expect([asked.length, delays(), claimer.hasBacklog]).toEqual([12, [1_000], false])
    answers.push(late)
    fire()
    await turn()
    expect(delays()).toEqual([5])
  })

  it('asks at once for more that has come due as long as it gets some', async () => {
    const { claimer, answers, asked, turn, fire, delays } = setUp(8)
    answers.push({ ...some(1), nextDue: 7, now: 9 }, { ...nobody, nextDue: 7, now: 9 })
    claimer.start()
    await turn()
    expect(delays()).toEqual([0])
    fire()
    await turn()
    expect([asked.length, delays()]).toEqual([2, [5]])
  })

  it('with one slot asks for one run at a time, and for the next as soon as the slot is free', async () => {
    const { claimer, answers, asked, slots, turn } = setUp(1)
    answers.push({ ...some(1), more: true }, { ...some(1), more: true }, nobody)
    claimer.start()
    await turn()
    expect(asked).toEqual([1])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1, 1])
    slots.give(1)
    await turn()
    expect(asked).toEqual([1, 1, 1])
    expect(claimer.hasBacklog).toBe(false)
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

/** A worker of two slots through which ten runs went in the last tenth of a second, while more wait. */
async function busy(leaseMs: number | null = null) {
  const world = setUp(2, leaseMs)
  const { answers, claimer, slots, pass, turn } = world
  answers.push({ ...some(1), more: true })
  slots.take(1)
  claimer.start()
  await turn()
  for (let count = 0; count < 10; count += 1) {
    answers.push({ ...some(1), more: true })
    slots.give(1)
    await turn()
  }
  pass(100)
  world.asked.splice(0)
  world.begun()
  return world
}

describe('a claimer that has more than its slots', () => {
  it('claims ahead three times what it got through in a tenth of a second, and begins it as slots are freed', async () => {
    const { answers, asked, begun, claimer, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    expect(asked).toEqual([31])
    expect(begun()).toHaveLength(1)
    for (let count = 0; count < 14; count += 1) {
      slots.give(1)
      await turn()
    }
    // More than half of them are there still: that is no time to ask again.
    expect([begun().length, asked, claimer.isResting]).toEqual([14, [31], false])
    slots.give(1)
    await turn()
    expect([begun().length, asked]).toEqual([1, [31, 15]])
  })

  it('keeps nothing for itself that it does not get to', async () => {
    const { answers, begun, claimer, fire, givenBack, slots, pass, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    expect(begun()).toHaveLength(1)
    pass(1_000)
    fire()
    await turn()
    expect([givenBack().length, begun()]).toEqual([30, []])
    // A second without a freed slot: it has become slow, and claims for its slots only.
    expect(claimer.holds('run 1')).toBe(false)
    slots.give(1)
    await turn()
    expect(begun()).toEqual([])
  })

  it.each(['pause', 'stop'] as const)('gives back what it claimed ahead: %s', async (how) => {
    const { answers, asked, begun, claimer, givenBack, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    await turn()
    begun()
    void claimer[how]()
    expect(givenBack()).toHaveLength(30)
    slots.give(1)
    await turn()
    expect([begun(), asked]).toEqual([[], [31]])
  })

  it('gives back what comes after it was stopped', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    answers.push({ ...some(31), more: true })
    slots.give(1)
    const turning = turn()
    const stopped = claimer.stop()
    await turning
    await stopped
    expect([givenBack().length, begun().length]).toEqual([30, 1])
  })

  it.each(['controlRequested', 'drop'] as const)('gives back a run that may not begin: %s', async (how) => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    const claimed = { ...some(4), more: true }
    answers.push(claimed)
    slots.give(1)
    await turn()
    const [first, , third] = claimed.runs.map(({ id }) => id) as [string, string, string]
    expect(claimer.claims().map(({ runId }) => runId)).toContain(third)
    // One that has begun is none of its business, and one that it never had neither.
    for (const id of [third, third, first, 'unknown']) claimer[how](id)
    expect([givenBack(), claimer.holds(third)]).toEqual([[third], false])
    begun()
    for (let count = 0; count < 3; count += 1) slots.give(1)
    await turn()
    expect(begun()).toEqual(claimed.runs.map(({ id }) => id).filter((id) => id !== first && id !== third))
  })

  it('gives back a run that was controlled before the answer of its claim came, and begins the next one in its slot', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = setUp(1)
    const claimed = some(1)
    const [controlled] = claimed.runs.map(({ id }) => id) as [string]
    answers.push(claimed, some(1))
    claimer.start()
    const turning = turn()
    claimer.controlRequested(controlled)
    await turning
    expect([begun(), givenBack(), slots.free]).toEqual([[], [controlled], 1])
    claimer.wake()
    await turn()
    expect(begun()).toHaveLength(1)
    // The next claim of the same run is made after the request was withdrawn.
    answers.push(claimed)
    slots.give(1)
    claimer.wake()
    await turn()
    expect(begun()).toEqual([controlled])
  })

  it('keeps a run that was being cancelled when it was claimed: only a holder can undo its steps', async () => {
    const { answers, begun, claimer, givenBack, slots, turn } = await busy()
    const { runs } = some(2)
    const ahead: Run = { ...(runs[1] as Run), status: 'cancelling' }
    answers.push({ ...nobody, runs: [runs[0] as Run, ahead], more: true })
    slots.give(1)
    await turn()
    begun()
    claimer.controlRequested(ahead.id)
    expect([givenBack(), claimer.holds(ahead.id)]).toEqual([[], true])
  })

  it('keeps a run whose earlier claim is lost', async () => {
    const { answers, claimer, givenBack, slots, turn } = await busy()
    const { runs } = some(2)
    const ahead = { ...(runs[1] as Run), token: 7 }
    answers.push({ ...nobody, runs: [runs[0] as Run, ahead], more: true })
    slots.give(1)
    await turn()
    expect([claimer.drop(ahead.id, 6), claimer.drop(ahead.id, 7), givenBack()]).toEqual([false, true, [ahead.id]])
  })

  it('claims nothing ahead if claims have a deadline of their own, which would pass meanwhile', async () => {
    const { answers, asked, slots, turn } = await busy(5_000)
    answers.push({ ...some(1), more: true })
    slots.give(1)
    await turn()
    expect(asked).toEqual([1])
  })
})
