import { describe, expect, it } from 'vitest'
import { jsonCodec } from '../../../src/core/payload/codec.ts'
import { isHoldfastError } from '../../../src/core/errors/error.ts'
import { fatal, retryAfter } from '../../../src/core/definition/retry-mark.ts'
import type { StepTools } from '../../../src/core/runtime/attempt.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../support/function-rig.ts'

const constant = (maxAttempts: number, initial: number) =>
  ({ maxAttempts, initial, kind: 'constant', jitter: { mode: 'none' } }) as const

describe('a step', () => {
  it('PQ-E3 that is recorded is not executed again', async () => {
    const rig = new FunctionRig()
    let executed = 0
    const flow = workflow('test.once', async (ctx) => {
      const value = await ctx.step('a', () => ({ executed: ++executed }))
      await ctx.sleep('1 day')
      return value
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: { executed: 1 } })
    expect(executed).toBe(1)
  })

  it('WC-A2 that is started now and awaited later runs beside the others', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.later', async (ctx) => {
      const a = ctx.step('a', rig.gated)
      const b = ctx.step('b', rig.gated)
      return [await a, await b]
    })
    const held = await (await rig.start(flow)).begin()
    expect(rig.gates.map(({ step }) => step)).toEqual(['a', 'b'])
    await rig.succeed('b', 2)
    await rig.succeed('a', 1)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: [1, 2] })
    expect(await held.story()).toEqual(['started', 'step-succeeded b', 'step-succeeded a', 'succeeded'])
  })

  it('WC-A7 that failed throws an error of the same class, live and replayed', async () => {
    class Declined extends Error {
      override readonly name = 'Declined'
      readonly code = 51
    }
    const rig = new FunctionRig({ codec: jsonCodec({ errors: [Declined] }) })
    const caught: unknown[] = []
    const flow = workflow('test.class', { retry: 'none' }, async (ctx) => {
      try {
        await ctx.step('charge', () => {
          throw new Declined('no funds')
        })
      } catch (error) {
        caught.push(error)
      }
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(caught).toHaveLength(2)
    for (const error of caught) {
      expect(error).toBeInstanceOf(Declined)
      expect(error).toMatchObject({ message: 'no funds', code: 51, name: 'Declined' })
    }
  })

  it('gives the body what a replay will give it, not the object that it returned', async () => {
    const rig = new FunctionRig()
    const returned = { at: new Date(0), list: new Set([1]) }
    const seen: unknown[] = []
    const flow = workflow('test.copy', async (ctx) => {
      seen.push(await ctx.step('a', () => returned))
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(seen[0]).not.toBe(returned)
    expect(seen).toEqual([returned, returned])
  })

  it('whose result cannot be stored fails with a clear error, is not repeated, and harms nothing else', async () => {
    const rig = new FunctionRig()
    let executed = 0
    const flow = workflow('test.storable', async (ctx) => {
      const results: unknown[] = []
      const cyclic: unknown[] = []
      cyclic.push(cyclic)
      for (const value of [cyclic, () => 1, 'x'.repeat(2 ** 21), Symbol('s')]) {
        try {
          await ctx.step('a', () => (executed++, value), { retry: constant(3, 0) })
        } catch (error) {
          results.push(isHoldfastError(error, 'NOT_STORABLE') && error.message.includes('The result of step "a'))
        }
      }
      return results
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: [true, true, true, true] })
    expect(executed).toBe(4)
  })

  it('WC-R1 is repeated after short delays in memory, keeping its lease', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.inline', (ctx) => ctx.step('a', rig.gated, { retry: constant(3, 500) }))
    const held = await (await rig.start(flow)).begin()
    await rig.fail('a', new Error('1'))
    expect(held.departure).toBeNull()
    expect((await rig.run(held.runId)).status).toBe('running')
    await rig.pass(499)
    expect(rig.gates).toEqual([])
    await rig.pass(1)
    expect(rig.gate('a')).toMatchObject({ attempt: 2, tools: { isRetry: true } })
  })

  it('PQ-R3 is repeated after a long delay by a run that held no lease meanwhile, and gives up after its attempts', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.long', (ctx) => ctx.step('a', rig.gated, { retry: constant(2, 60_000) }))
    const held = await (await rig.start(flow)).begin()
    const failedAt = rig.clock.now()
    await rig.fail('a', new Error('first'))
    expect(held.departure).toEqual({ kind: 'parked' })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'waiting', session: null, due: failedAt + 60_000 })
    await held.goOn('replayed')
    expect(rig.gates).toMatchObject([{ step: 'a', attempt: 2 }])
    await rig.fail('a', new Error('second'))
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'second' } })
    expect(await held.story()).toEqual(['started', 'attempt-failed a', 'step-failed a', 'failed'])
  })

  it('with a long delay beside one that runs is repeated in time', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.beside', (ctx) =>
      Promise.all([ctx.step('a', rig.gated, { retry: constant(2, 60_000) }), ctx.step('b', rig.gated)]),
    )
    const held = await (await rig.start(flow)).begin()
    await rig.fail('a', new Error('first'))
    await rig.pass(60_000)
    expect(rig.gates.map(({ step, attempt }) => `${step}@${attempt}`)).toEqual(['b@1', 'a@2'])
    await rig.succeed('b', 'B')
    await rig.succeed('a', 'A')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['A', 'B'] })
  })

  it('PQ-E7 that says fatal is not repeated; retryAfter sets the delay', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.outcome', async (ctx) => {
      const retry = constant(5, 10)
      await ctx.step('later', rig.gated, { retry })
      await ctx.step('never', rig.gated, { retry })
    })
    const held = await (await rig.start(flow)).begin()
    await rig.fail('later', retryAfter('700ms'))
    await rig.pass(699)
    expect(rig.gates).toEqual([])
    await rig.pass(1)
    await rig.succeed('later')
    await rig.fail('never', fatal('it is over'))
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { message: 'it is over' } })
  })

  it('that times out is aborted, repeated, and its late result is ignored', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.timeout', (ctx) => ctx.step('a', rig.gated, { timeout: '10s', retry: constant(2, 0) }))
    const held = await (await rig.start(flow)).begin()
    const first = rig.gate('a')
    const aborted: unknown[] = []
    first.tools.abortSignal.addEventListener('abort', () => aborted.push(first.tools.abortSignal.reason))
    await rig.pass(10_000)
    expect(aborted).toMatchObject([{ code: 'STEP_TIMEOUT' }])
    expect(() => first.tools.heartbeat()).toThrow(/took longer than 10/)
    first.succeed('too late')
    await rig.quiet()
    await rig.pass(1)
    await rig.succeed('a', 'in time')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'in time' })
    expect(await held.story()).toEqual(['started', 'attempt-failed a', 'step-succeeded a', 'succeeded'])
  })

  it('that gives signs of life does not time out', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.alive', (ctx) => ctx.step('a', rig.gated, { timeout: '10s' }))
    const held = await (await rig.start(flow)).begin()
    const { tools } = rig.gates[0] as { tools: StepTools }
    for (let beat = 0; beat < 5; beat += 1) {
      await rig.pass(9_999)
      tools.heartbeat()
    }
    await rig.succeed('a', 'alive')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'alive' })
    await rig.pass(60_000)
    expect(tools.abortSignal.aborted).toBe(false)
  })

  it('that nobody awaits when the body returns is awaited and recorded before the run ends', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.unawaited', async (ctx) => {
      void ctx.step('unawaited', rig.gated)
      return ctx.step('a', rig.gated)
    })
    const held = await (await rig.start(flow)).begin()
    const optional = rig.gate('unawaited')
    await rig.succeed('a', 1)
    expect([optional.tools.abortSignal.aborted, await held.status()]).toEqual([false, 'running'])
    optional.succeed('late')
    await rig.quiet()
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'step-succeeded unawaited', 'succeeded'])
  })
})

describe('a body', () => {
  it('PQ-E6 that throws is repeated in the same run and keeps its steps', async () => {
    const rig = new FunctionRig()
    let bodies = 0
    let steps = 0
    const flow = workflow('test.body', { retry: constant(2, 5_000) }, async (ctx) => {
      bodies += 1
      await ctx.step('a', () => (steps += 1))
      if (bodies === 1) throw new Error('once')
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toEqual({ kind: 'released' })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'pending', due: rig.clock.now() + 5_000 })
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
    expect({ bodies, steps }).toEqual({ bodies: 2, steps: 1 })
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'attempt-failed', 'succeeded'])
  })

  it('gives up after its attempts, at once when it says fatal, and after the delay of retryAfter', async () => {
    const rig = new FunctionRig()
    const failing = workflow('test.fails', { retry: constant(2, 1_000) }, () => {
      throw new Error('always')
    })
    const failed = await (await rig.start(failing)).begin()
    await failed.goOn()
    expect(await failed.story()).toEqual(['started', 'attempt-failed', 'failed'])

    const stubborn = workflow('test.fatal', { retry: constant(9, 1_000) }, async () => {
      throw fatal('no')
    })
    expect(await (await (await rig.start(stubborn)).begin()).story()).toEqual(['started', 'failed'])

    const patient = workflow('test.after', { retry: constant(2, 1_000) }, async () => {
      throw retryAfter('1h')
    })
    const waiting = await (await rig.start(patient)).begin()
    expect(await rig.run(waiting.runId)).toMatchObject({ status: 'pending', due: rig.clock.now() + 3_600_000 })
  })

  it('that throws on what a step threw fails at once: a replay would only find the same', async () => {
    const rig = new FunctionRig()
    const flow = workflow('test.rethrow', { retry: constant(5, 1_000) }, (ctx) =>
      ctx.step(
        'a',
        () => {
          throw new Error('bad')
        },
        { retry: 'none' },
      ),
    )
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-failed a', 'failed'])
  })

  it('whose result cannot be stored fails its run with a clear error', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow('test.output', () => () => 1))).begin()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'NOT_STORABLE' } })
  })

  it('WC-E10 gets its input as it was stored, on every replay', async () => {
    const rig = new FunctionRig()
    const inputs: unknown[] = []
    const flow = workflow<{ at: Date }>('test.input', async (ctx, input) => {
      inputs.push(input)
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow, { at: new Date(7) })).begin()
    await held.goOn('replayed')
    expect(inputs).toEqual([{ at: new Date(7) }, { at: new Date(7) }])
  })

  it('WC-A8 finds the time, chance and ids that it found before', async () => {
    const rig = new FunctionRig()
    const seen: unknown[] = []
    const flow = workflow('test.values', async (ctx) => {
      seen.push([ctx.now(), ctx.random(), ctx.uuid(), ctx.now(), ctx.random(), ctx.uuid()])
      ctx.log('once', { a: 1 })
      await ctx.sleep('1 day')
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn('replayed')
    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual(seen[0])
    const [now, random, uuid, , otherRandom, otherUuid] = seen[0] as [Date, number, string, Date, number, string]
    expect(now).toBeInstanceOf(Date)
    expect(random >= 0 && random < 1 && random !== otherRandom).toBe(true)
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(uuid).not.toBe(otherUuid)
    expect(rig.lines.filter(({ level }) => level === 'info')).toEqual([{ level: 'info', message: 'once' }])
  })
})
