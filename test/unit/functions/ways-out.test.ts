// The ways out of a frame, each with a step under way: what is asked to stop, what is recorded, what is undone, and in which
// order. Nothing that happened in the world is dropped.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../src/core/errors/error.ts'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const grace = 5_000
const soon = { maxAttempts: 3, initial: 10, kind: 'constant', jitter: { mode: 'none' } } as const
const outOfTime = (): HoldfastError => new HoldfastError('RUN_TIMEOUT', 'The time was over.')

interface Trip {
  readonly rig: FunctionRig
  readonly held: Held
  /** What was undone, and with which result. */
  readonly undone: unknown[]
  /** Ends the body, which has one step under way. */
  readonly end: (how: () => unknown) => Promise<void>
}

/** A run with a step done and another, the flight, under way, both of which can be undone. */
async function trip(): Promise<Trip> {
  const rig = new FunctionRig({ abortGraceMs: grace })
  const undone: unknown[] = []
  let end: (how: () => unknown) => void = () => undefined
  const flow = workflow('trip', { retry: soon }, async (ctx) => {
    await ctx.step('car', () => 'car 1', { undo: (booked) => void undone.push(booked) })
    void ctx.step('flight', rig.gated, { undo: (booked) => void undone.push(booked) })
    const how = await new Promise<() => unknown>((resolve) => (end = resolve))
    return how()
  })
  const held = await (await rig.start(flow)).begin()
  return {
    rig,
    held,
    undone,
    end: async (how) => {
      end(how)
      await rig.quiet()
    },
  }
}

/** The journal of a trip before it ends. */
const soFar = ['started', 'begun car', 'step-succeeded car', 'begun flight']

const throws = (error: unknown) => (): never => {
  throw error
}

/** Whether the flight, which is under way, was asked to stop. */
function isHeldBySession({ rig }: Trip): boolean {
  return rig.gates.find(({ step }) => step === 'flight')?.tools.abortSignal.aborted === true
}

describe('a step under way when', () => {
  it('the body returns is awaited, recorded and not signalled', async () => {
    const t = await trip()
    await t.end(() => 'done')
    expect([await t.held.status(), isHeldBySession(t)]).toEqual(['running', false])
    await t.rig.succeed('flight', 'flight 1')
    expect(await t.held.story()).toEqual([...soFar, 'step-succeeded flight', 'succeeded'])
    expect(t.undone).toEqual([])
  })

  it('the run fails is asked to stop, recorded all the same, and undone first', async () => {
    const t = await trip()
    await t.end(throws(fatal('No hotel')))
    expect([await t.held.status(), isHeldBySession(t), t.undone]).toEqual(['running', true, []])
    await t.rig.succeed('flight', 'flight 1')
    expect((await t.held.story()).slice(soFar.length)).toEqual([
      'step-succeeded flight',
      'failing',
      'undone flight',
      'undone car',
      'failed',
    ])
    expect(t.undone).toEqual(['flight 1', 'car 1'])
    expect(await t.held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No hotel' } })
  })

  it('the body is to be tried again is not signalled, and is not attempted again', async () => {
    const t = await trip()
    await t.end(throws(new Error('Once more')))
    expect([await t.held.status(), isHeldBySession(t)]).toEqual(['running', false])
    await t.rig.succeed('flight', 'flight 1')
    expect((await t.held.story()).slice(soFar.length)).toEqual(['step-succeeded flight', 'attempt-failed'])
    await t.held.goOn()
    expect(t.rig.gates).toEqual([])
    await t.end(() => 'done')
    expect((await t.held.story()).at(-1)).toBe('succeeded')
    expect(t.undone).toEqual([])
  })

  it('the time of the run is over is signalled with the reason, recorded and undone', async () => {
    const t = await trip()
    t.held.frame.fail(outOfTime())
    await t.rig.quiet()
    expect(t.rig.gates[0]?.tools.abortSignal.reason).toMatchObject({ code: 'RUN_TIMEOUT' })
    await t.rig.succeed('flight', 'flight 1')
    expect(t.undone).toEqual(['flight 1', 'car 1'])
    expect(await t.held.outcome()).toMatchObject({ status: 'failed', value: { code: 'RUN_TIMEOUT' } })
  })

  it('the run is cancelled is signalled with the reason, recorded and undone', async () => {
    const t = await trip()
    await t.held.cancel('not wanted')
    expect(t.rig.gates[0]?.tools.abortSignal.reason).toMatchObject({ code: 'RUN_CANCELLED' })
    await t.rig.succeed('flight', 'flight 1')
    expect((await t.held.story()).slice(soFar.length)).toEqual([
      'step-succeeded flight',
      'undone flight',
      'undone car',
      'cancelled',
    ])
    expect(t.undone).toEqual(['flight 1', 'car 1'])
  })

  it.each(['pause', 'shutdown'] as const)(
    'a %s is wanted is awaited, recorded and not signalled; a body that needs no more ends here',
    async (way) => {
      const rig = new FunctionRig({ abortGraceMs: grace })
      const undone: unknown[] = []
      const flow = workflow('trip', async (ctx) => {
        const flight = ctx.step('flight', rig.gated, { undo: (booked) => void undone.push(booked) })
        await ctx.step('hotel', rig.gated)
        await flight
      })
      const held = await (await rig.start(flow)).begin()
      const signals = rig.gates.map(({ tools }) => tools.abortSignal)
      if (way === 'pause') await held.pause()
      else held.frame.giveBack()
      await rig.pass(10 * grace)
      await rig.succeed('flight', 'flight 1')
      expect([held.departure, signals.map(({ aborted }) => aborted)]).toEqual([null, [false, false]])
      await rig.succeed('hotel')
      expect(await held.story()).toEqual([
        'started',
        'begun flight',
        'step-succeeded flight',
        'step-succeeded hotel',
        'succeeded',
      ])
      expect(undone).toEqual([])
    },
  )
})

describe('nothing new begins once', () => {
  it.each(['pause', 'shutdown'] as const)('a %s is wanted, also if the body goes on', async (way) => {
    const rig = new FunctionRig()
    const flow = workflow('next', async (ctx) => {
      await ctx.step('a', rig.gated)
      await ctx.step('b', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    if (way === 'pause') await held.pause()
    else held.frame.giveBack()
    await rig.succeed('a')
    expect(rig.gates).toEqual([])
    expect(held.departure?.kind).toBe(way === 'pause' ? 'released' : 'given-back')
    expect((await held.story()).slice(0, 2)).toEqual(['started', 'step-succeeded a'])
  })

  it('the run fails: code that goes on beside the body gets nothing done', async () => {
    const rig = new FunctionRig()
    const done: string[] = []
    const flow = workflow('beside', { retry: 'none' }, async (ctx) => {
      void ctx.step('first', rig.gated).then(() => ctx.step('second', () => done.push('second')))
      await ctx.step('bad', () => Promise.reject(new Error('Bad')))
    })
    const held = await (await rig.start(flow)).begin()
    await rig.succeed('first')
    expect(done).toEqual([])
    expect(await held.story()).toEqual(['started', 'step-failed bad', 'step-succeeded first', 'failed'])
  })
})

describe('a later way out takes the place of an earlier one', () => {
  it('a run whose body has returned can be cancelled while a step is awaited', async () => {
    const t = await trip()
    await t.end(() => 'done')
    await t.held.cancel()
    expect(isHeldBySession(t)).toBe(true)
    await t.rig.succeed('flight', 'flight 1')
    expect(t.undone).toEqual(['flight 1', 'car 1'])
    expect(await t.held.status()).toBe('cancelled')
  })

  it('a run that is about to be tried again can run out of time, and then it is not tried again', async () => {
    const t = await trip()
    await t.end(throws(new Error('Once more')))
    t.held.frame.fail(outOfTime())
    await t.rig.succeed('flight', 'flight 1')
    expect(await t.held.outcome()).toMatchObject({ status: 'failed', value: { code: 'RUN_TIMEOUT' } })
    expect(await t.held.story()).not.toContain('attempt-failed')
  })

  it('a run that is about to fail can be cancelled: it ends as cancelled', async () => {
    const t = await trip()
    await t.end(throws(fatal('No hotel')))
    await t.held.cancel()
    await t.rig.succeed('flight', 'flight 1')
    expect([await t.held.status(), t.undone]).toEqual(['cancelled', ['flight 1', 'car 1']])
  })

  it('a run that is about to be given back can be cancelled', async () => {
    const t = await trip()
    t.held.frame.giveBack()
    await t.held.cancel()
    expect(isHeldBySession(t)).toBe(true)
    await t.rig.succeed('flight', 'flight 1')
    expect(t.held.departure?.kind).toBe('given-back')
    t.rig.store.release(t.held.runId)
    await t.held.goOn('replayed')
    expect([await t.held.status(), t.undone]).toEqual(['cancelled', ['flight 1', 'car 1']])
  })
})

describe('a step that ignores its abort signal', () => {
  const cases: readonly [string, string, (t: Trip) => unknown][] = [
    ['cancelled', 'is cancelled', ({ held }) => held.cancel()],
    ['failed', 'fails', ({ end }) => end(throws(fatal('No hotel')))],
    ['failed', 'is out of time', ({ held }) => held.frame.fail(outOfTime())],
  ]

  it.each(cases)(
    'is abandoned after the grace and undone without a result: ends %s, when its run %s',
    async (...way) => {
      const [status, , leave] = way
      const t = await trip()
      await leave(t)
      const { tools } = t.rig.gate('flight')
      await t.rig.pass(grace - 1)
      expect([await t.held.status(), t.undone, tools.abortSignal.aborted]).not.toContain(status)
      await t.rig.pass(1)
      expect(t.undone).toEqual([undefined, 'car 1'])
      expect((await t.held.story())[soFar.length]).toBe('abandoned flight')
      expect((await t.held.journal())[soFar.length]).toMatchObject({ meta: { attempt: 1, undo: true }, data: null })
      expect(await t.held.status()).toBe(status)
    },
  )

  it('and returns long after it was abandoned changes nothing', async () => {
    const t = await trip()
    const gate = t.rig.gate('flight')
    await t.held.cancel()
    await t.rig.pass(grace)
    const story = await t.held.story()
    gate.succeed('too late')
    await t.rig.quiet()
    expect([await t.held.story(), t.undone]).toEqual([story, [undefined, 'car 1']])
  })

  it('is abandoned when the worker waits no longer, and the run is given back', async () => {
    const t = await trip()
    const gate = t.rig.gate('flight')
    t.held.frame.giveBack()
    t.held.frame.abandon()
    await t.rig.quiet()
    expect(gate.tools.abortSignal.aborted).toBe(true)
    expect(t.held.departure).toEqual({ kind: 'given-back' })
    expect((await t.held.story()).slice(soFar.length)).toEqual(['abandoned flight'])
    t.rig.store.release(t.held.runId)
    await t.held.goOn('replayed')
    expect(t.rig.gates.map(({ step }) => step)).toEqual(['flight'])
    await t.rig.succeed('flight', 'flight 2')
    await t.end(throws(fatal('No hotel')))
    expect(t.undone).toEqual(['flight 2', 'car 1'])
  })
})
