// Decisions that ask for what cannot be had: the input alone fails, before anything is written, and harms no other.

import { describe, expect, it } from 'vitest'
import { decider, decision, workflow, type HoldfastError, type Schema } from 'holdfast'
import { everyStore } from '../stores.ts'
import { until } from '../../support/until.ts'

type Input = { readonly type: string; readonly id: string }

const numbers: Schema<unknown, number> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => (typeof value === 'number' ? { value } : { issues: [{ message: 'a number' }] }),
  },
}

const slowNumbers: Schema<unknown, number> = {
  '~standard': { version: 1, vendor: 'test', validate: async (value) => ({ value: value as number }) },
}

function world() {
  const counted = workflow('counted', { input: numbers }, async (_ctx, count) => count)
  const slow = workflow('slow', { input: slowNumbers }, async (_ctx, count) => count)
  const asked = decision({ type: 'Asked' })
  const requests: Record<string, () => unknown> = {
    'does not fit the schema': () => asked.start<unknown>(counted, 'not a number'),
    'is not registered here': () => asked.start('nowhere', 1),
    'has a misspelt option': () => asked.start(counted, 1, { prioritty: 1 } as never),
    'cannot be stored': () => asked.start('plain', { call: () => 1 }),
    'is no workflow': () => asked.start(null as never, 1),
    'has a schema that takes time': () => asked.start(slow, 1),
    'signals what cannot be stored': () => asked.signal('01890a5d-ac96-774b-bcce-b302099a8057', 'go', () => 1),
    'signals nobody': () => asked.signal(null as never, 'go', 1),
    'signals an unusable key': () => asked.signal({ workflow: counted, key: 5 as never }, 'go', 1),
    'has a timer without a time': () => asked.timer(null as never, { type: 'Ok' }),
    'has a timer with two times': () => asked.timer({ at: new Date(0), after: 1 } as never, { type: 'Ok' }),
  }
  let decisions = 0
  const asking = decider('asking', {
    initial: () => 0,
    evolve: (count) => count + 1,
    decide: (_count, { type }: Input) => {
      decisions += 1
      if (type === 'Later') return asked.timer({ after: 0 }, { type: 'does not fit the schema', id: '1' })
      return (requests[type]?.() ?? asked) as typeof asked
    },
    id: 'id',
    retry: 'none',
  })
  const plain = workflow('plain', async () => null)
  return {
    asking,
    workflows: [asking, counted, slow, plain],
    unusable: Object.keys(requests),
    decided: () => decisions,
  }
}

describe.each(everyStore)('on $name, an input whose decision', ({ make }) => {
  it.each(world().unusable)('%s fails alone among those that are decided with it', async (type) => {
    const { open } = await make()
    const { asking, workflows } = world()
    const holdfast = await open({ workflows })
    await holdfast.execute(asking, { type: 'Ok', id: '1' })
    const inputs = ['Ok', type, 'Ok'].map((type) => holdfast.execute(asking, { type, id: '1' }))
    const answers = await Promise.allSettled(inputs)
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((answers[1] as PromiseRejectedResult).reason).toMatchObject({
      code: 'DECIDE_FAILED',
    } satisfies Partial<HoldfastError>)
    expect(await holdfast.state(asking, '1')).toBe(3)
    expect((await holdfast.find({ type: 'counted' })).runs).toEqual([])
  })

  it('is unusable fails alone among the first inputs of an instance', async () => {
    const { open } = await make()
    const { asking, workflows } = world()
    const holdfast = await open({ workflows })
    const inputs = ['is not registered here', 'Ok'].map((type) => holdfast.execute(asking, { type, id: '1' }))
    const [failed, accepted] = await Promise.allSettled(inputs)
    expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'DECIDE_FAILED' } })
    expect(accepted).toMatchObject({ status: 'fulfilled', value: { outcome: 'accepted' } })
  })

  it('has no unique key fails alone among the first inputs of an instance', async () => {
    const { open } = await make()
    const keyed = decider('keyed', {
      initial: () => 0,
      evolve: (count, _event: { type: 'Asked' }) => count + 1,
      decide: (_count, _input: Input) => decision({ type: 'Asked' }),
      id: 'id',
      uniqueKey: ({ type }) => type,
    })
    const holdfast = await open({ workflows: [keyed] })
    const inputs = ['', 'Ok'].map((type) => holdfast.execute(keyed, { type, id: '1' }))
    const [failed, accepted] = await Promise.allSettled(inputs)
    expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'INVALID_INPUT' } })
    expect(accepted).toMatchObject({ status: 'fulfilled', value: { outcome: 'accepted', state: 1 } })
  })

  it('is unusable leaves the mailbox as failed, once, and those behind it are decided', async () => {
    const { open } = await make()
    const { asking, workflows, decided } = world()
    const holdfast = await open({ workflows })
    await holdfast.execute(asking, { type: 'Ok', id: '1' })
    await holdfast.enqueue(asking, { type: 'does not fit the schema', id: '1' })
    await holdfast.enqueue(asking, { type: 'Ok', id: '1' })
    await holdfast.work()
    await until('both have left', async () => (await holdfast.state(asking, '1')) === 2)
    expect(decided()).toBe(3)
  })

  it('is unusable and comes by a timer harms no other input', async () => {
    const { open } = await make()
    const { asking, workflows } = world()
    const holdfast = await open({ workflows })
    await holdfast.execute(asking, { type: 'Later', id: '1' })
    await holdfast.work()
    const innocent = await holdfast.execute(asking, { type: 'Ok', id: '1' })
    expect(innocent).toMatchObject({ outcome: 'accepted', state: 2 })
    expect(await holdfast.execute(asking, { type: 'Ok', id: '1' })).toMatchObject({ state: 3 })
  })
})
