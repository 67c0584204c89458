// A body ends by returning or by beginning anew. Both are one way out: each call that the body has made takes place, also one
// that it does not await, is retried to its end and recorded, and a warning names it.

import { describe, expect, it } from 'vitest'
import type { Transact } from '../../../../src/core/definition/definition.ts'
import type { NewRun } from '../../../../src/core/model/new-run.ts'
import type { Context } from '../../../../src/functions/api/context.ts'
import { fatal } from '../../../../src/core/definition/retry-mark.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig, type Held } from '../../../support/function-rig.ts'

const child = workflow('child', (_ctx, value: number) => value)
const other = workflow('other', (_ctx, value: number) => value)
const newRun = {
  id: '01900000-0000-7000-9000-000000000001',
  type: 'child',
  version: 1,
  first: { data: null },
} as NewRun
const soon = { maxAttempts: 3, initial: 100, kind: 'constant', jitter: { mode: 'none' } } as const

interface End {
  readonly how: string
  readonly last: string
  readonly end: (ctx: Context<number>) => unknown
}

const ends: readonly End[] = [
  { how: 'returns', last: 'succeeded', end: () => 'done' },
  { how: 'begins anew', last: 'continued', end: (ctx) => ctx.continueAsNew(2) },
  { how: 'goes on as another workflow', last: 'continued', end: (ctx) => ctx.continueAs(other, 2) },
]

/** A store that lends transactions of nothing but the entry that they carry, and prepares children later. */
function makeRig(): FunctionRig {
  const transact: Transact = async (work) => {
    try {
      await work(null, (transition) => rig.host.commit(transition))
      return { outcome: 'committed' }
    } catch (error) {
      return { outcome: 'rolled-back', error }
    }
  }
  let children = 0
  const rig: FunctionRig = new FunctionRig({
    transact,
    prepare: async () => ({ ...newRun, id: `${newRun.id.slice(0, -1)}${(children += 1)}` }),
  })
  return rig
}

function begin(
  rig: FunctionRig,
  { end }: End,
  calls: (ctx: Context<number>) => unknown,
  options: { readonly parallel?: number } = {},
): Promise<Held> {
  const flow = workflow('unawaited', { retry: soon, ...options }, async (ctx, _round: number) => {
    await calls(ctx)
    return end(ctx) as never
  })
  return rig.start(flow, 1).then((held) => held.begin())
}

const warnings = ({ lines }: FunctionRig): string =>
  lines
    .filter(({ level }) => level === 'warn')
    .map(({ message }) => message)
    .join('\n')

describe.each(ends)('a body that $how without awaiting', (way) => {
  it.each([
    ['a step', {}, ['step-succeeded late']],
    ['a step with undo', { undo: () => undefined }, ['begun late', 'step-succeeded late']],
  ])('%s performs and records it, and warns', async (_what, options, entries) => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => void ctx.step('late', rig.gated, options))
    expect(held.departure).toBeNull()
    await rig.succeed('late', 1)
    expect(await held.story()).toEqual(['started', ...entries, way.last])
    expect(warnings(rig)).toContain('ended without awaiting step "late" at ')
  })

  it.each([
    ['a transaction', {}],
    ['a transaction with undo', { undo: () => undefined }],
  ])('%s performs and records it, and warns', async (_what, options) => {
    const rig = makeRig()
    let calls = 0
    const held = await begin(rig, way, (ctx) => void ctx.transaction('late', () => (calls += 1), options))
    expect(calls).toBe(1)
    expect(await held.story()).toEqual(['started', 'step-succeeded late', way.last])
    expect(warnings(rig)).toContain('ended without awaiting step "late" at ')
  })

  it.each([
    ['plain', {}],
    ['with undo', { undo: () => undefined }],
  ])('a step that is to be retried retries it to its end (%s)', async (_what, options) => {
    const rig = makeRig()
    const held = await begin(rig, way, async (ctx) => {
      void ctx.step('late', rig.gated, options)
      await ctx.step('a', () => 1)
    })
    await rig.fail('late', new Error('once'))
    await rig.pass(100)
    await rig.fail('late', new Error('twice'))
    await rig.pass(100)
    await rig.succeed('late')
    const story = await held.story()
    expect(story.filter((line) => line === 'attempt-failed late')).toHaveLength(2)
    expect(story.slice(-2)).toEqual(['step-succeeded late', way.last])
  })

  it('a step whose retry is far away is parked, and retries it in another process', async () => {
    const rig = makeRig()
    const retry = { ...soon, initial: '1h' } as const
    const held = await begin(
      rig,
      way,
      async (ctx) => void ctx.step('late', rig.gated, { retry, undo: () => undefined }),
    )
    await rig.fail('late', new Error('once'))
    expect(held.departure).toEqual({ kind: 'parked' })
    await held.goOn('replayed')
    await rig.succeed('late')
    expect((await held.story()).slice(-2)).toEqual(['step-succeeded late', way.last])
  })

  it('more steps than may run at once performs all of them', async () => {
    const rig = makeRig()
    const call = (ctx: Context<number>): void => {
      for (const name of ['one', 'two', 'three']) void ctx.step(name, () => 1, { undo: () => undefined })
    }
    const held = await begin(rig, way, call, { parallel: 1 })
    const done = (await held.story()).filter((line) => line.startsWith('step-succeeded'))
    expect(done).toEqual(['step-succeeded one', 'step-succeeded two', 'step-succeeded three'])
    expect((await held.story()).at(-1)).toBe(way.last)
  })

  it('a child, or a run that it starts, starts both', async () => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => {
      void ctx.child(child, 1)
      void ctx.start(child, 2)
    })
    const started = rig.commits.flatMap(({ outbound }) => outbound?.starts ?? [])
    expect(started).toHaveLength(2)
    expect((await held.story()).at(-1)).toBe(way.last)
    expect(warnings(rig)).toContain('ended without awaiting wait "child"')
  })

  it('anything, after notes, records the notes', async () => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => {
      ctx.log('line')
      ctx.progress(0.5)
      ctx.expose('shown', () => 1)
    })
    const story = await held.story()
    expect(story.some((line) => line.startsWith('logged'))).toBe(true)
    expect(story.some((line) => line.startsWith('progressed'))).toBe(true)
    expect(story.at(-1)).toBe(way.last)
  })

  it('a step that fails goes on all the same, and warns of the error', async () => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => void ctx.step('late', () => Promise.reject(fatal('No'))))
    expect(await held.story()).toEqual(['started', 'step-failed late', way.last])
    const verb = way.last === 'succeeded' ? 'returned' : 'began anew'
    expect(warnings(rig)).toContain(`its body ${verb} without awaiting them: step "late" at `)
  })

  it('a chain of steps performs the call that was made, and warns of the code that goes on', async () => {
    const rig = makeRig()
    const held = await begin(
      rig,
      way,
      (ctx) => void ctx.step('first', rig.gated).then(() => ctx.step('second', () => 1)),
    )
    await rig.succeed('first')
    expect(await held.story()).toEqual(['started', 'step-succeeded first', way.last])
    expect(warnings(rig)).toContain('went on after')
  })

  it('a step is still cancelled, and undoes it', async () => {
    const rig = makeRig()
    const undone: unknown[] = []
    const undo = (result: unknown): void => void undone.push(result)
    const held = await begin(rig, way, (ctx) => void ctx.step('late', rig.gated, { undo }))
    await held.cancel('no')
    await rig.succeed('late', 'late 1')
    expect(undone).toEqual(['late 1'])
    expect((await held.story()).at(-1)).toBe('cancelled')
  })

  it('a step is still paused, and performs it when it is resumed', async () => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => void ctx.step('late', rig.gated))
    await rig.fail('late', new Error('once'))
    await held.pause()
    expect(await held.status()).toBe('paused')
    await held.revive('resume')
    await held.goOn()
    await rig.pass(100)
    await rig.succeed('late')
    expect((await held.story()).slice(-2)).toEqual(['step-succeeded late', way.last])
  })

  it('a step dies with its process, and performs it elsewhere', async () => {
    const rig = makeRig()
    const held = await begin(rig, way, (ctx) => void ctx.step('late', rig.gated, { undo: () => undefined }))
    await held.crash()
    await held.goOn()
    await rig.succeed('late')
    expect((await held.story()).slice(-2)).toEqual(['step-succeeded late', way.last])
  })
})

describe('beside a step in Promise.all, beginning anew', () => {
  const all = (rig: FunctionRig): Promise<Held> =>
    begin(rig, { how: '', last: '', end: () => 'not reached' }, (ctx) =>
      Promise.all([ctx.step('beside', rig.gated, { retry: 'none', undo: () => undefined }), ctx.continueAsNew(2)]),
    )

  it('comes when the step has ended, without a warning', async () => {
    const rig = makeRig()
    const held = await all(rig)
    await rig.succeed('beside')
    expect(await held.story()).toEqual(['started', 'begun beside', 'step-succeeded beside', 'continued'])
    expect(warnings(rig)).toBe('')
  })

  it('gives way to the error of the step, which the body throws', async () => {
    const rig = makeRig()
    const held = await all(rig)
    await rig.fail('beside', new Error('No'))
    expect(await held.story()).toEqual(['started', 'begun beside', 'step-failed beside', 'failed'])
  })

  it('gives way to that error also if the process dies before the run has failed', async () => {
    const rig = makeRig()
    const held = await all(rig)
    const journal = [...(await held.journal())]
    await rig.fail('beside', new Error('No'))
    const failed = (await held.journal()).filter(({ kind }) => kind === 'step-failed')
    const next = makeRig()
    const adopted = await next.adopt(
      workflow('unawaited', (ctx, _round: number) =>
        Promise.all([ctx.step('beside', next.gated, { retry: 'none' }), ctx.continueAsNew(2)]),
      ),
      [...journal, ...failed],
    )
    await adopted.begin()
    expect((await adopted.story()).at(-1)).toBe('failed')
  })
})

describe('a run that begins anew', () => {
  it('twice does so once, with the input that was accepted first', async () => {
    const rig = makeRig()
    const held = await begin(rig, { how: '', last: '', end: () => 'not reached' }, (ctx) => {
      void ctx.step('late', rig.gated)
      return Promise.all([ctx.continueAsNew(2), ctx.continueAsNew(3)])
    })
    await rig.succeed('late')
    expect(held.departure).toMatchObject({ kind: 'continued', input: { data: '2' } })
  })

  it('by code beside a body that has returned does not: the run succeeds', async () => {
    const rig = makeRig()
    const held = await begin(rig, { how: '', last: '', end: () => 'done' }, (ctx) => {
      void ctx.step('late', rig.gated)
      void ctx.step('other', rig.gated).then(() => ctx.continueAsNew(2))
    })
    await rig.succeed('other')
    await rig.succeed('late')
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
  })
})
