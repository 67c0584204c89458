import { describe, expect, it } from 'vitest'
import { workflow, type Body } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

const type = 'test.patched'

const before: Body<unknown, unknown> = async (ctx) => {
  await ctx.step('a', () => 'A')
  await ctx.sleep('1 day')
  return ctx.step('c', () => 'C')
}

/** Has a new step after `a`, and another before the end. */
const after: Body<unknown, unknown> = async (ctx) => {
  await ctx.step('a', () => 'A')
  const early = ctx.patched('early')
  if (early) await ctx.step('b', () => 'B')
  await ctx.sleep('1 day')
  const late = ctx.patched('late')
  if (late) await ctx.step('b2', () => 'B2')
  return [early, late, await ctx.step('c', () => 'C'), ctx.patched('early'), ctx.patched('late')]
}

async function adopted(from: Held, body: Body<unknown, unknown>, length?: number): Promise<Held> {
  const rig = new FunctionRig()
  return (await rig.adopt(workflow(type, body), (await from.journal()).slice(0, length))).begin()
}

describe('a change of the code with ctx.patched', () => {
  it('PQ-V1 is in effect in a run that began with it, and recorded once', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow(type, after))).begin()
    await held.goOn('replayed')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: [true, true, 'C', true, true] })
    expect(await held.story()).toEqual([
      'started',
      'step-succeeded a',
      'patched early',
      'step-succeeded b',
      'waiting sleep',
      'woken sleep',
      'patched late',
      'step-succeeded b2',
      'step-succeeded c',
      'succeeded',
    ])
  })

  it('is not in effect where a run had already gone the old way, and is after that', async () => {
    const rig = new FunctionRig()
    const asleep = await (await rig.start(workflow(type, before))).begin()
    rig.clock.moveTo((await rig.run(asleep.runId)).due ?? 0)
    const whole = await asleep.goOn()
    // With the end of the sleep recorded, and the step that came after it not.
    const held = await adopted(whole, after, 4)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: [false, true, 'C', false, true] })
    expect((await held.story()).slice(4)).toEqual([
      'patched late',
      'step-succeeded b2',
      'step-succeeded c',
      'succeeded',
    ])
  })

  it('what a run answered once it answers for ever, at whichever entry it is taken over', async () => {
    const rig = new FunctionRig()
    const held = await (await rig.start(workflow(type, after))).begin()
    await held.goOn()
    const journal = await held.journal()
    for (let length = 1; length < journal.length; length += 1) {
      const other = await adopted(held, after, length)
      if (other.departure?.kind === 'parked') await other.goOn()
      expect(await other.outcome()).toEqual(await held.outcome())
      expect(await other.story()).toEqual(await held.story())
    }
  })

  it('is durable before anything that it led to begins', async () => {
    const rig = new FunctionRig()
    let durable = 0
    let runId = ''
    const flow = workflow(type, async (ctx) => {
      if (ctx.patched('x')) await ctx.step('a', () => (durable = rig.committedSeq(runId)))
    })
    const held = await rig.start(flow)
    runId = held.runId
    await held.begin()
    expect(durable).toBe(2)
  })

  it('needs a name, and stands in the body', async () => {
    const rig = new FunctionRig()
    const nameless = await (await rig.start(workflow(type, { retry: 'none' }, (ctx) => ctx.patched('')))).begin()
    expect(await nameless.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_NAME' } })
    const inside = await (await rig.start(workflow(type, (ctx) => ctx.step('a', () => ctx.patched('x'))))).begin()
    expect(await inside.outcome()).toMatchObject({ status: 'failed', value: { code: 'INVALID_OPTION' } })
  })
})
