// While a transaction is open nothing else of its run is committed. So what the body makes in the same turn comes first: a child
// is started and time counts from the call, however long the transaction takes.

import { describe, expect, it } from 'vitest'
import type { Transact } from '../../../src/core/definition/definition.ts'
import type { NewRun } from '../../../src/core/model/new-run.ts'
import { HoldfastError } from '../../../src/core/errors/error.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type RigOptions } from '../../support/function-rig.ts'

const child = workflow('child', (_ctx, value: number) => value)
const newRun = {
  id: '01900000-0000-7000-9000-000000000001',
  type: 'child',
  version: 1,
  first: { data: null },
} as NewRun

/** Transactions of nothing but the entry that they carry. */
function transactionStep(options: RigOptions = {}): FunctionRig {
  const transact: Transact = async (work) => {
    try {
      await work(null, (transition) => rig.host.commit(transition))
      return { outcome: 'committed' }
    } catch (error) {
      return { outcome: 'rolled-back', error }
    }
  }
  const rig: FunctionRig = new FunctionRig({ ...options, transact })
  return rig
}

describe('a sleep made beside a transaction', () => {
  it.each(['before', 'after'] as const)(
    'in one turn, %s it, counts from the call and not from COMMIT',
    async (when) => {
      const rig = transactionStep()
      const began = rig.clock.now()
      const flow = workflow('slow.transaction', async (ctx) => {
        const early = when === 'before' ? ctx.sleep(1_000) : null
        const slow = ctx.transaction('slow', (_tx, tools) => rig.gated(tools))
        const nap = early ?? ctx.sleep(1_000)
        await slow
        await nap
      })
      const held = await (await rig.start(flow)).begin()
      expect(await held.story()).toEqual(['started', 'waiting sleep'])
      await rig.pass(800)
      await rig.succeed('slow')
      expect((await rig.run(held.runId)).due).toBe(began + 1_000)
    },
  )

  it('counts from the call also if the answer to an earlier commit comes before that turn is over', async () => {
    let onCommit: () => void = () => undefined
    const rig = transactionStep({ onCommit: () => onCommit() })
    const committing = new Promise<void>((resolve) => (onCommit = resolve))
    const flow = workflow('crossing', async (ctx) => {
      void committing.then(() => void ctx.sleep(1_000))
      await ctx.step('a', () => 1)
      await ctx.transaction('slow', (_tx, tools) => rig.gated(tools))
    })
    const held = await (await rig.start(flow)).begin()
    expect(rig.gates.map(({ step }) => step)).toEqual(['slow'])
    expect(await held.story()).toEqual(['started', 'step-succeeded a', 'waiting sleep'])
  })
})

describe('a child made before a transaction', () => {
  it.each(['at once', 'later'] as const)('is started before it begins, prepared %s', async (when) => {
    let ready: () => void = () => undefined
    const later = new Promise<NewRun>((resolve) => (ready = () => resolve(newRun)))
    const rig = transactionStep({ prepare: () => (when === 'later' ? later : newRun) })
    const flow = workflow('child.first', async (ctx) => {
      void ctx.child(child, 1)
      await ctx.transaction('slow', (_tx, tools) => rig.gated(tools))
    })
    const held = await (await rig.start(flow)).begin()
    if (when === 'later') expect(rig.gates).toEqual([])
    ready()
    await rig.quiet()
    expect(rig.commits.map(({ outbound }) => outbound?.starts.length ?? 0)).toEqual([1])
    expect(rig.gates.map(({ step }) => step)).toEqual(['slow'])
    await rig.succeed('slow')
    expect(await held.story()).toEqual(['started', 'waiting child', 'step-succeeded slow', 'succeeded'])
  })
})

describe('transactions', () => {
  it('that met others are not counted against the policy, also after their process died', async () => {
    const conflict = new HoldfastError('STORE_UNAVAILABLE', 'Locked.', { details: { sqlState: '55P03' } })
    const errors = [conflict, conflict, conflict, new Error('One'), new Error('Two')]
    const rig: FunctionRig = new FunctionRig({
      transact: async () => ({ outcome: 'rolled-back', error: errors.shift() }),
      inlineRetryMs: 0,
    })
    const retry = { maxAttempts: 2, initial: '1 s' } as const
    const flow = workflow('counted', { retry: 'none' }, (ctx) => ctx.transaction('write', () => 1, { retry }))
    const held = await (await rig.start(flow)).begin()
    while (held.departure?.kind === 'released' || held.departure?.kind === 'parked') await held.goOn('replayed')
    expect(errors).toEqual([])
    expect((await held.story()).filter((one) => one.endsWith(' write'))).toEqual([
      ...Array.from({ length: 4 }, () => 'attempt-failed write'),
      'step-failed write',
    ])
  })

  it('are begun one at a time in the order of the calls, each after what was made with it', async () => {
    const rig = transactionStep()
    const flow = workflow('several', (ctx) =>
      Promise.all(['a', 'b', 'c'].map((name) => ctx.transaction(name, (_tx, tools) => rig.gated(tools)))),
    )
    const held = await (await rig.start(flow)).begin()
    for (const name of ['a', 'b', 'c']) {
      expect(rig.gates.map(({ step }) => step)).toEqual([name])
      await rig.succeed(name, name)
    }
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['a', 'b', 'c'] })
  })
})
