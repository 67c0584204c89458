// Attempts of which nobody knows what became: they outlived their bound, or their process died. A step that can be undone is
// then undone all the same. And what a body that is tried again keeps.

import { describe, expect, it } from 'vitest'
import { fatal } from '../../../src/core/definition/retry-mark.ts'
import { workflow, type Workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const grace = 5_000
const soon = { maxAttempts: 3, initial: 10, kind: 'constant', jitter: { mode: 'none' } } as const

/** A flight that can be undone, beside a hotel that fails when the test says so. */
function trip(rig: FunctionRig, undone: unknown[]): Workflow<unknown, unknown> {
  return workflow('trip', async (ctx) => {
    const flight = ctx.step('flight', rig.gated, { retry: 'none', undo: (booked) => void undone.push(booked) })
    await Promise.all([flight, ctx.step('hotel', rig.gated, { retry: 'none' })])
  })
}

/** The process dies when it is on record that the hotel has failed, and the flight is under way. Another goes on. */
async function dead(rig: FunctionRig, undone: unknown[]): Promise<Held> {
  const held = await (await rig.start(trip(rig, undone))).begin()
  await rig.fail('hotel', fatal('No room'))
  expect(await held.story()).toEqual(['started', 'begun flight', 'step-failed hotel'])
  await held.crash()
  await held.goOn('replayed')
  return held
}

describe('a process that dies with a parallel step under way', () => {
  it('leaves a note of it, so that the next one attempts it once more and undoes what it gets', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await dead(rig, undone)
    expect(rig.gates.map(({ step }) => step)).toEqual(['flight'])
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect((await held.story()).slice(4)).toEqual(['failing', 'step-succeeded flight', 'undone flight', 'failed'])
  })

  it('and whose second attempt throws is undone without a result: the first one may have happened', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await dead(rig, undone)
    await rig.fail('flight', fatal('Sold out'))
    expect(undone).toEqual([undefined])
    expect((await held.story()).slice(4)).toEqual(['failing', 'abandoned flight', 'undone flight', 'failed'])
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'No room' } })
  })

  it('and whose second attempt never ends is abandoned after the grace', async () => {
    const rig = new FunctionRig({ abortGraceMs: grace })
    const undone: unknown[] = []
    const held = await dead(rig, undone)
    await rig.pass(grace)
    expect(undone).toEqual([undefined])
    expect((await held.story()).at(-1)).toBe('failed')
  })

  it('and dies again during the second attempt attempts it a third time, and undoes it once', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await dead(rig, undone)
    await held.crash()
    await held.goOn('replayed')
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect(await held.status()).toBe('failed')
  })

  it('and is cancelled by then undoes it, too', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(trip(rig, undone))).begin()
    await held.cancel()
    expect(await held.story()).toEqual(['started', 'begun flight'])
    await held.crash()
    await held.goOn('replayed')
    await rig.succeed('flight', 'flight 1')
    expect(undone).toEqual(['flight 1'])
    expect(await held.status()).toBe('cancelled')
  })

  it('dies with the last commit of the drain and undoes what was abandoned, once', async () => {
    const rig = new FunctionRig({ abortGraceMs: grace })
    const undone: unknown[] = []
    const held = await (await rig.start(trip(rig, undone))).begin()
    await held.cancel()
    rig.dies = { hasLanded: true, how: () => held.die() }
    await rig.pass(grace)
    expect([undone, (await held.story()).includes('abandoned flight')]).toEqual([[], true])
    await held.goOn('replayed')
    expect([undone, rig.gates]).toEqual([[undefined], []])
    expect(await held.status()).toBe('cancelled')
  })
})

describe('a step that outlives its own timeout', () => {
  const late = (rig: FunctionRig, undone: unknown[], attempts: number): Workflow<unknown, unknown> =>
    workflow('late', async (ctx) => {
      await ctx.step('flight', rig.gated, {
        timeout: '5s',
        retry: { ...soon, maxAttempts: attempts },
        undo: (booked) => void undone.push(booked),
      })
    })

  it('has failed, and is undone without a result, because it may have happened', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 1))).begin()
    await rig.pass(5_000)
    expect(undone).toEqual([undefined])
    expect(await held.story()).toEqual([
      'started',
      'begun flight',
      'step-failed flight',
      'failing',
      'undone flight',
      'failed',
    ])
    expect((await held.journal())[2]).toMatchObject({ meta: { undo: true } })
  })

  it('is undone also if its process dies in between', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 1))).begin()
    rig.dies = { hasLanded: true, how: () => held.die() }
    await rig.pass(5_000)
    expect(undone).toEqual([])
    await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'failed'])
  })

  it('and fails for another reason the next time is undone: the first attempt may have happened', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 2))).begin()
    await rig.pass(5_010)
    await rig.fail('flight', fatal('Sold out'))
    expect([undone, await held.status()]).toEqual([[undefined], 'failed'])
  })

  it('and fails for another reason the next time is undone also after a replay', async () => {
    const rig = new FunctionRig({ inlineRetryMs: 0 })
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 2))).begin()
    await rig.pass(5_000)
    expect(await held.story()).toEqual(['started', 'begun flight', 'abandoned flight', 'attempt-failed flight'])
    await held.goOn('replayed')
    rig.dies = { hasLanded: true, how: () => held.die() }
    await rig.fail('flight', fatal('Sold out'))
    expect(undone).toEqual([])
    await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'failed'])
  })

  it('and waits for its next attempt when the run is cancelled is undone', async () => {
    const rig = new FunctionRig({ inlineRetryMs: 0 })
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 2))).begin()
    await rig.pass(5_000)
    await held.cancel()
    await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'cancelled'])
  })

  it('and is noted as begun again, and fails that time, is still undone after a replay', async () => {
    const rig = new FunctionRig({ inlineRetryMs: 0 })
    const undone: unknown[] = []
    const flow = workflow('late', async (ctx) => {
      const undo = (booked: unknown): void => void undone.push(booked)
      const flight = ctx.step('flight', rig.gated, { timeout: '5s', retry: soon, undo })
      await Promise.all([flight, ctx.step('hotel', rig.gated)])
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(5_000)
    await rig.pass(10)
    await rig.succeed('hotel', 'hotel 1')
    await rig.fail('flight', new Error('Busy'))
    const first = ['begun flight', 'abandoned flight', 'attempt-failed flight']
    const second = ['begun flight', 'step-succeeded hotel', 'attempt-failed flight']
    expect(await held.story()).toEqual(['started', ...first, ...second])
    await held.cancel()
    await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'cancelled'])
  })

  it('is undone with the result of the attempt that succeeded', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(late(rig, undone, 2))).begin()
    await rig.pass(5_010)
    const succeeding = rig.gate('flight')
    await held.cancel()
    succeeding.succeed('flight 2')
    await rig.quiet()
    expect([undone, await held.status()]).toEqual([['flight 2'], 'cancelled'])
  })
})

describe('a step whose result cannot be stored', () => {
  it('has happened, and is undone without a result', async () => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const pay = workflow('pay', async (ctx) => {
      await ctx.step('charge', () => ({ id: 1, close: () => 0 }), { undo: (charged) => void undone.push([charged]) })
    })
    const held = await (await rig.start(pay)).begin()
    expect(undone).toEqual([[undefined]])
    expect(await held.story()).toEqual([
      'started',
      'begun charge',
      'step-failed charge',
      'failing',
      'undone charge',
      'failed',
    ])
  })
})

describe('a step that was abandoned when its worker stopped', () => {
  it.each([false, true])('and then fails for good is undone, also if the process dies then: %s', async (dies) => {
    const rig = new FunctionRig()
    const undone: unknown[] = []
    const held = await (await rig.start(trip(rig, undone))).begin()
    await rig.succeed('hotel')
    held.frame.giveBack()
    held.frame.abandon()
    await rig.quiet()
    expect(held.departure).toEqual({ kind: 'given-back' })
    rig.store.release(held.runId)
    await held.goOn('replayed')
    if (dies) rig.dies = { hasLanded: true, how: () => held.die() }
    await rig.fail('flight', fatal('Sold out'))
    if (dies) await held.goOn('replayed')
    expect([undone, await held.status()]).toEqual([[undefined], 'failed'])
  })
})

describe('a body that is tried again', () => {
  it('keeps parallel steps that were under way: each runs once', async () => {
    const rig = new FunctionRig()
    const began: string[] = []
    let isWell = false
    const flow = workflow('again', { retry: soon }, async (ctx) => {
      const steps = ['a', 'b', 'c'].map((name) =>
        ctx.step(name, (step) => {
          began.push(name)
          return rig.gated(step)
        }),
      )
      await ctx.step('first', () => 1)
      if (!isWell) throw new Error('Once more')
      return Promise.all(steps)
    })
    const held = await (await rig.start(flow, null)).begin()
    isWell = true
    for (const name of ['b', 'a', 'c']) await rig.succeed(name, name)
    expect((await held.story()).at(-1)).toBe('attempt-failed')
    await held.goOn()
    expect(began).toEqual(['a', 'b', 'c'])
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['a', 'b', 'c'] })
  })

  it('has its failures counted anew after progress, and only then', async () => {
    const rig = new FunctionRig()
    let progress = 0
    const flow = workflow('progress', { retry: { ...soon, maxAttempts: 2 } }, async (ctx) => {
      for (let at = 1; at <= progress; at += 1) await ctx.step(`step ${at}`, () => at)
      throw new Error('Not well')
    })
    const held = await rig.start(flow)
    progress = 1
    await held.begin()
    for (progress = 2; progress < 5; progress += 1) await held.goOn('replayed')
    expect(await held.status()).toBe('pending')
    progress -= 1
    await held.goOn('replayed')
    expect(await held.status()).toBe('failed')
  })
})
