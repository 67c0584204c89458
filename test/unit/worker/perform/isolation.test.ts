// Poison harms only itself: a suspect is performed alone, and nobody else waits for that.

import { describe, expect, it } from 'vitest'
import type { Run } from '../../../../src/core/model/run.ts'
import { leaseMs, setUp, suspect } from './isolated-worker.ts'

/** A suspect is performed alone. */
async function alone() {
  const world = setUp()
  world.answers.push({ runs: [suspect] })
  world.isolation.onSuspects(0)
  await world.clock.advance(0)
  expect(world.happened()).toEqual(['pause', 'begins suspect'])
  return world
}

describe('a suspect that is due', () => {
  it('is claimed apart where nothing moves, and begins once the mark is written', async () => {
    const { claims, beats, watched } = await alone()
    expect(claims).toEqual([{ limit: 1, isolated: true }])
    expect(watched).toEqual(['suspect'])
    const held = [{ runId: 'suspect', token: 7, extendMs: null, begun: 3 }]
    expect(beats).toEqual([{ session: 'me', leaseMs, opens: false, held, seeksUnknownLeases: false }])
  })

  it('does not begin before the runs that left for its sake are given back: its death would count against them', async () => {
    const { isolation, clock, answers, state, beats, happened } = setUp()
    let gaveBack = (): void => undefined
    state.gaveBack = new Promise((resolve) => (gaveBack = resolve))
    answers.push({ runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(100)
    expect([happened(), beats]).toEqual([['pause'], []])
    gaveBack()
    await clock.advance(0)
    expect([happened(), beats.length]).toEqual([['begins suspect'], 1])
  })

  it('is not asked for before it is due', async () => {
    const { isolation, clock, claims } = setUp()
    isolation.onSuspects(500)
    await clock.advance(499)
    isolation.look()
    expect(claims).toEqual([])
    await clock.advance(1)
    expect(claims).toHaveLength(1)
  })

  it('waits while something moves, or others wait to be claimed, and has its turn then', async () => {
    const { isolation, slots, clock, claims, state } = setUp()
    slots.take(2)
    isolation.onSuspects(0)
    await clock.advance(700)
    slots.give(1)
    state.isFree = false
    slots.give(1)
    await clock.advance(700)
    expect(claims).toEqual([])
    state.isFree = true
    isolation.look()
    expect(claims).toHaveLength(1)
  })

  it('is not claimed under a session that has not opened: others would take it away at once', async () => {
    const { isolation, slots, clock, claims, answers, state, happened } = setUp()
    slots.take(1)
    answers.push({ more: true })
    isolation.onSuspects(0)
    await clock.advance(leaseMs)
    expect([claims, happened()]).toEqual([[{ limit: 0, isolated: true }], ['pause']])
    state.mayLease = false
    slots.give(1)
    isolation.look()
    await clock.advance(0)
    expect(claims).toHaveLength(1)
    state.mayLease = true
    answers.push({ runs: [suspect] })
    isolation.look()
    await clock.advance(0)
    expect([claims.at(-1), happened()]).toEqual([{ limit: 1, isolated: true }, ['begins suspect']])
  })

  it('that another worker took leaves everything as it was', async () => {
    const { isolation, slots, clock, claims, happened } = setUp()
    isolation.onSuspects(0)
    await clock.advance(0)
    expect([happened(), slots.inUse, claims.length]).toEqual([['pause', 'resume'], 0, 1])
    isolation.look()
    await clock.advance(100_000)
    expect(claims).toHaveLength(1)
  })

  it.each([
    ['cannot be marked', { beatFails: true }, ['pause', 'goes back suspect', 'resume']],
    ['is locked by another transaction', { isBusy: true }, ['pause', 'goes back suspect', 'resume']],
    ['was lost', { isLost: true }, ['pause', 'resume']],
    ['came to a session that is over', { isAlive: false }, ['pause', 'resume']],
  ])('and %s does not begin', async (_, how, expected) => {
    const { isolation, slots, clock, answers, state, happened } = setUp()
    Object.assign(state, how)
    answers.push({ runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(0)
    expect([happened(), slots.inUse]).toEqual([expected, 0])
  })

  it('whose row others hold is asked for after longer and longer pauses, whichever rescuer looks meanwhile', async () => {
    const { isolation, clock, claims, answers, happened } = setUp(2 * leaseMs, leaseMs, 0.5)
    answers.push(...Array.from({ length: 20 }, () => ({ more: true })))
    isolation.onSuspects(-100)
    await clock.advance(0)
    const counts = [claims.length]
    for (const ms of [5, 10, 20, 40, 80, 160, 320, 500, 500]) {
      await clock.advance(ms - 1)
      // The slot that its own question took, the claimer that rests, and who looks after dead holders.
      isolation.look()
      isolation.onSuspects(-100)
      await clock.advance(0)
      counts.push(claims.length)
      await clock.advance(1)
    }
    expect(counts).toEqual([1, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    answers.splice(0, answers.length, { runs: [suspect] })
    await clock.advance(500)
    expect(happened().at(-1)).toBe('begins suspect')
  })

  it('is asked for again after an error of the store, when a hint names it again', async () => {
    const { isolation, clock, answers, happened } = setUp()
    answers.push(new Error('Gone'), { runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(0)
    expect(happened()).toEqual(['pause', 'resume'])
    isolation.onSuspects(0)
    await clock.advance(0)
    expect(happened()).toEqual(['pause', 'begins suspect'])
  })
})

describe('a process that is young', () => {
  it('leaves a suspect to others until it is old, and then counts', async () => {
    const { isolation, clock, beats, claims, answers } = setUp(leaseMs)
    answers.push({ runs: [suspect] })
    isolation.onSuspects(0)
    await clock.advance(leaseMs - 1)
    expect(claims).toEqual([])
    await clock.advance(1)
    expect([claims.length, beats.length]).toEqual([1, 1])
  })

  it('leaves one alone that has waited for long, too: where all die young, nobody would ever be blamed', async () => {
    const { isolation, clock, beats, answers, happened } = setUp(0)
    answers.push({ runs: [suspect] })
    isolation.onSuspects(-100 * leaseMs)
    await clock.advance(2 * leaseMs - 1)
    expect([happened(), beats]).toEqual([[], []])
    await clock.advance(1)
    expect([happened(), beats.length]).toEqual([['pause', 'begins suspect'], 1])
  })
})

describe('a suspect that is performed alone', () => {
  it('lets others in when it has left', async () => {
    const { slots, happened } = await alone()
    slots.give(1)
    expect(happened()).toEqual(['resume'])
  })

  it('lets others in once it has committed something: it is innocent', async () => {
    const { isolation, happened, slots } = await alone()
    isolation.sent('another', Promise.resolve())
    isolation.sent('suspect', Promise.reject(new Error('Refused')))
    await Promise.resolve()
    await Promise.resolve()
    expect(happened()).toEqual([])
    isolation.sent('suspect', Promise.resolve())
    await Promise.resolve()
    await Promise.resolve()
    expect(happened()).toEqual(['resume'])
    slots.give(1)
    expect(happened()).toEqual([])
  })

  it('does not keep others out for ever: its first step may take an hour', async () => {
    const { clock, happened } = await alone()
    await clock.advance(29_999)
    expect(happened()).toEqual([])
    await clock.advance(1)
    expect(happened()).toEqual(['resume'])
  })

  it('loses its mark when others go on beside it: a death says nothing about it any more', async () => {
    const { clock, beats } = await alone()
    await clock.advance(30_000)
    expect(beats.map(({ held }) => held?.map(({ begun }) => begun))).toEqual([[3], [2]])
  })

  it('keeps others out no longer while it commits, and nothing is written of it that its commit would make wrong', async () => {
    const { isolation, clock, beats, happened } = await alone()
    isolation.sent('suspect', Promise.reject(new Error('Refused')))
    isolation.sent('suspect', new Promise(() => undefined))
    await clock.advance(30_000)
    expect([beats.length, happened()]).toEqual([1, ['resume']])
  })

  it('loses its mark also after a commit of it was refused', async () => {
    const { isolation, clock, beats } = await alone()
    isolation.sent('suspect', Promise.reject(new Error('Refused')))
    await clock.advance(30_000)
    expect(beats).toHaveLength(2)
  })

  it('has the next one wait until it has left', async () => {
    const { isolation, slots, clock, claims } = await alone()
    isolation.onSuspects(0)
    await clock.advance(1_000)
    expect(claims).toHaveLength(1)
    slots.give(1)
    isolation.look()
    expect(claims).toHaveLength(2)
  })
})

describe('suspects of one death', () => {
  const next = { ...suspect, id: 'next' } as Run

  /** The first of several is performed alone, and all have waited for long. */
  async function firstOfSeveral() {
    const world = setUp()
    world.answers.push({ runs: [suspect], more: true })
    world.isolation.onSuspects(-leaseMs)
    await world.clock.advance(0)
    expect(world.happened()).toEqual(['pause', 'begins suspect'])
    return world
  }

  it('follow one another: none waits anew when the one before is innocent and has left', async () => {
    const { isolation, slots, clock, answers, happened } = await firstOfSeveral()
    isolation.sent('suspect', Promise.resolve())
    await clock.advance(0)
    expect(happened()).toEqual(['suspect is to leave'])
    answers.push({ runs: [next] })
    slots.give(1)
    await clock.advance(0)
    expect(happened()).toEqual(['begins next'])
    isolation.sent('next', Promise.resolve())
    await clock.advance(0)
    expect(happened()).toEqual(['resume'])
  })

  it('let others in if an innocent one stays', async () => {
    const { isolation, clock, happened } = await firstOfSeveral()
    isolation.sent('suspect', Promise.resolve())
    await clock.advance(leaseMs - 1)
    expect(happened()).toEqual(['suspect is to leave'])
    await clock.advance(1)
    expect(happened()).toEqual(['resume'])
  })

  it('let others in when they have had half a minute, however many they are', async () => {
    const { isolation, slots, clock, answers, happened } = await firstOfSeveral()
    for (let turn = 1; turn <= 3; turn += 1) {
      await clock.advance(10_000)
      answers.push({ runs: [{ ...suspect, id: `${turn}` }], more: true })
      slots.give(1)
      await clock.advance(0)
      expect(happened()).toEqual([`begins ${turn}`])
    }
    await clock.advance(1)
    slots.give(1)
    expect(happened()).toEqual(['resume'])
    isolation.onSuspects(-10 * leaseMs)
    slots.take(1)
    // Four times as long as nothing else was taken.
    await clock.advance(4 * 30_001 - 1)
    expect(happened()).toEqual([])
    answers.push({ more: true })
    await clock.advance(1)
    expect(happened()).toEqual(['pause'])
  })
})

describe('a worker that stops', () => {
  it('gives a suspect back that it was just claiming, and leaves no timer', async () => {
    const { isolation, slots, clock, answers, state, happened } = setUp()
    state.isFree = false
    isolation.onSuspects(0)
    await clock.advance(0)
    state.isFree = true
    answers.push({ runs: [suspect] })
    isolation.look()
    await isolation.stop()
    isolation.onSuspects(0)
    expect([happened(), slots.inUse, clock.pending]).toEqual([['pause', 'goes back suspect', 'resume'], 0, 0])
  })
})
