import { describe, expect, it } from 'vitest'
import type { Schema } from '../../../../src/core/definition/schema.ts'
import { fatal } from '../../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig } from '../../../support/function-rig.ts'

/** Takes texts and makes numbers of them. */
const digits: Schema<string, number> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) =>
      Number.isNaN(Number(value)) ? { issues: [{ message: 'no digits' }] } : { value: Number(value) },
  },
}

describe('a run that begins anew', () => {
  it('WC-A5 keeps its id and its lease, and has a new input and no history', async () => {
    const rig = new FunctionRig()
    const keys: string[] = []
    const flow = workflow('continue.count', async (ctx, n: number): Promise<string> => {
      const seen = await ctx.step('a', (step) => {
        keys.push(step.idempotencyKey)
        return n * 10
      })
      if (n < 3) await ctx.continueAsNew(n + 1)
      return `${n} ${seen}`
    })
    const held = await (await rig.start(flow, 1)).begin()
    expect(held.departure).toMatchObject({
      kind: 'continued',
      as: { type: 'continue.count', version: 1 },
      input: { kind: 'continued', seq: 3, data: '2', meta: { type: 'continue.count', version: 1 } },
    })
    expect(await rig.run(held.runId)).toMatchObject({ status: 'running', base: 3, seq: 3 })
    await held.continueWith()
    await held.continueWith()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: '3 30' })
    expect(await held.story()).toEqual([
      'started',
      'step-succeeded a',
      'continued',
      'step-succeeded a',
      'continued',
      'step-succeeded a',
      'succeeded',
    ])
    expect(new Set(keys).size).toBe(3)
    expect(rig.commits.map(({ continues }) => continues?.type ?? null)).toEqual([
      'continue.count',
      'continue.count',
      null,
    ])
  })

  it('replays from its last input after a crash', async () => {
    const rig = new FunctionRig()
    const ran: string[] = []
    const flow = workflow('continue.crash', async (ctx, n: number) => {
      await ctx.step('a', () => void ran.push(`a${n}`))
      if (n === 1) return ctx.continueAsNew(2)
      await ctx.step('b', rig.gated)
      return n
    })
    const held = await (await rig.start(flow, 1)).begin()
    await held.continueWith()
    await held.crash()
    await held.goOn()
    await rig.succeed('b')
    expect(ran).toEqual(['a1', 'a2'])
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 2 })
  })

  it('as another workflow gets what that one makes of the input', async () => {
    const rig = new FunctionRig()
    const other = workflow('continue.other', { version: 7, input: digits }, (_ctx, n) => n + 1)
    const flow = workflow('continue.as', (ctx) => ctx.continueAs(other, '41'))
    const held = await (await rig.start(flow)).begin()
    expect(held.departure).toMatchObject({ kind: 'continued', as: { type: 'continue.other', version: 7 } })
    expect(await rig.run(held.runId)).toMatchObject({ type: 'continue.other', version: 7, base: 2 })
    await held.continueWith(other)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 42 })
  })

  it('with an input that does not fit, or cannot be stored, or as no workflow, throws into the body', async () => {
    const rig = new FunctionRig()
    const refusals: unknown[] = []
    const flow = workflow('continue.invalid', { input: digits }, async (ctx) => {
      await ctx.continueAsNew('x').catch((error: unknown) => refusals.push(error))
      await ctx.continueAs(plain, { of: () => 1 }).catch((error: unknown) => refusals.push(error))
      try {
        await ctx.continueAs({} as typeof plain, 1)
      } catch (error) {
        refusals.push(error)
      }
      return 'went on'
    })
    const plain = workflow('continue.plain', (_ctx, input: unknown) => input)
    const held = await (await rig.start(flow, 1)).begin()
    expect(refusals).toMatchObject([{ code: 'INVALID_INPUT' }, { code: 'NOT_STORABLE' }, { code: 'INVALID_OPTION' }])
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'went on' })
  })

  it('awaits what it has outstanding, as a body that returns does', async () => {
    const rig = new FunctionRig()
    const flow = workflow('continue.outstanding', async (ctx, _input: unknown) => {
      void ctx.step('slow', rig.gated)
      await ctx.step('a', () => 1)
      await ctx.continueAsNew(2)
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-succeeded a'])
    await rig.succeed('slow')
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'step-succeeded slow', 'continued'])
  })

  it('where another run has its key fails with that, and undoes what it did', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const other = workflow('continue.taken', () => 1)
    rig.store.takenTypes.add('continue.taken')
    const flow = workflow('continue.key', async (ctx, isUndoable: boolean) => {
      await ctx.step('a', () => 1, isUndoable ? { undo: () => void undone.push('a') } : {})
      await ctx.continueAs(other, undefined)
    })
    const plain = await (await rig.start(flow, false)).begin()
    expect(await plain.outcome()).toMatchObject({ status: 'failed', value: { code: 'RUN_EXISTS' } })
    expect(await plain.story()).toEqual(['started', 'step-succeeded a', 'failed'])
    const held = await (await rig.start(flow, true)).begin()
    expect(undone).toEqual(['a'])
    expect(await held.story()).toEqual(['started', 'begun a', 'step-succeeded a', 'failing', 'undone a', 'failed'])
  })

  it('while it is being cancelled does not: what it did is recorded, and it is cancelled', async () => {
    const rig = new FunctionRig()
    const flow = workflow('continue.cancel', async (ctx, _input: unknown) => {
      await ctx.step('a', rig.gated)
      await ctx.continueAsNew(2)
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('no', 'later')
    await rig.succeed('a')
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'cancelled'])
    expect(held.departure).toMatchObject({ status: 'cancelled', reason: 'no' })
  })

  it('and whose schema refuses that late, when the run is being undone, does not succeed after all', async () => {
    const rig = new FunctionRig()
    let refuse: () => void = () => undefined
    const picky: Schema<unknown, unknown> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: () => new Promise((resolve) => (refuse = () => resolve({ issues: [{ message: 'no' }] }))),
      },
    }
    const other = workflow('continue.picky', { input: picky }, () => 1)
    const flow = workflow('continue.late', async (ctx) => {
      await ctx.step('a', () => 1, { undo: (_, tools) => rig.gated(tools) })
      void ctx.continueAs(other, 2)
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    await held.cancel('no')
    refuse()
    await rig.quiet()
    await rig.succeed('undo a')
    expect(await held.story()).toEqual(['started', 'begun a', 'step-succeeded a', 'undone a', 'cancelled'])
  })

  it('without asking for what was recorded is drift', async () => {
    const rig = new FunctionRig()
    const first = workflow('continue.drift', async (ctx) => {
      await ctx.step('a', () => 1)
      await ctx.sleep('1 day')
    })
    const asleep = await (await rig.start(first)).begin()
    const second = new FunctionRig()
    const held = await second.adopt(
      workflow('continue.drift', (ctx, _input: unknown) => ctx.continueAsNew(2)),
      await asleep.journal(),
    )
    await held.begin()
    expect(await held.status()).toBe('paused')
    expect((await held.journal()).at(-1)).toMatchObject({ kind: 'paused', meta: { reason: 'drift' } })
  })

  it('has nothing to undo of what it did before', async () => {
    const rig = new FunctionRig()
    const undone: string[] = []
    const flow = workflow('continue.undo', async (ctx, n: number) => {
      await ctx.step('a', () => n, { undo: (of) => void undone.push(`a${of}`) })
      if (n === 1) await ctx.continueAsNew(2)
      throw fatal('Enough')
    })
    const held = await (await rig.start(flow, 1)).begin()
    expect((await rig.run(held.runId)).undo).toBe('none')
    await held.continueWith()
    expect(undone).toEqual(['a2'])
  })

  it('cannot do so inside of a step', async () => {
    const rig = new FunctionRig()
    const flow = workflow('continue.inside', (ctx, _input: unknown) => ctx.step('a', () => ctx.continueAsNew(1)))
    const held = await (await rig.start(flow)).begin()
    expect(await held.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_OPTION' } })
  })
})
