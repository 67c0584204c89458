// A wait begins when it is made: a child is started and time counts, whether the body awaits it at once, later or never.

import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import type { NewRun } from '../../../../src/core/model/new-run.ts'
import { workflow } from '../../../../src/functions/api/workflow.ts'
import { FunctionRig, unhandledIn, type RigOptions } from '../../../support/function-rig.ts'

const hour = 3_600_000
const half = hour / 2
const child = workflow('child', (_ctx, value: number) => value)

/** Children that are never performed: what starts them is in the transitions. */
function nursery(): Required<Pick<RigOptions, 'prepare'>> {
  let children = 0
  return {
    prepare: () => {
      children += 1
      return {
        id: `01900000-0000-7000-9000-${String(children).padStart(12, '0')}`,
        type: 'child',
        version: 1,
        first: { data: null },
      } as NewRun
    },
  }
}

const startsOf = (rig: FunctionRig): readonly number[] =>
  rig.commits.map(({ outbound }) => outbound?.starts.length ?? 0)

describe('a child that was made', () => {
  it('is started at once with another that is awaited later: one commit starts both', async () => {
    const rig = new FunctionRig(nursery())
    const flow = workflow('both', async (ctx) => {
      const a = ctx.child(child, 1)
      const b = ctx.child(child, 2)
      await a
      await b
    })
    const held = await (await rig.start(flow)).begin()
    expect(startsOf(rig).filter((count) => count > 0)).toEqual([2])
    expect(await held.story()).toEqual(['started', 'waiting child', 'waiting child#2'])
    expect(await held.status()).toBe('waiting')
  })

  it('is started at the end of its turn: after a step of that turn has begun, and before the step that comes next', async () => {
    const order: string[] = []
    const rig = new FunctionRig({
      ...nursery(),
      onCommit: ({ outbound }) => void (outbound !== null && outbound !== undefined && order.push('child')),
    })
    const flow = workflow('first', async (ctx) => {
      const a = ctx.child(child, 1)
      const work = ctx.step('work', (tools) => (order.push('work'), rig.gated(tools)))
      await ctx.step('quick', () => void order.push('quick'))
      await ctx.step('next', () => void order.push('next'))
      await work
      await a
    })
    const held = await (await rig.start(flow)).begin()
    expect(order).toEqual(['work', 'quick', 'child', 'next'])
    expect((await held.journal()).find(({ kind }) => kind === 'waiting')).toMatchObject({ meta: { unawaited: true } })
    expect(await held.status()).toBe('running')
  })

  it('is started while a step that comes after it is under way, and not when that has ended', async () => {
    const rig = new FunctionRig(nursery())
    const flow = workflow('first', async (ctx) => {
      const a = ctx.child(child, 1)
      await ctx.step('work', rig.gated)
      await a
    })
    const held = await (await rig.start(flow)).begin()
    expect([await held.story(), startsOf(rig)]).toEqual([['started', 'waiting child'], [1]])
    expect(rig.gates.map(({ step }) => step)).toEqual(['work'])
    await rig.succeed('work')
    expect(await held.story()).toEqual(['started', 'waiting child', 'step-succeeded work'])
    expect(await held.status()).toBe('waiting')
  })

  it('is started once, whether nobody awaits it, and whatever is replayed', async () => {
    const rig = new FunctionRig(nursery())
    const flow = workflow('never', async (ctx) => {
      void ctx.child(child, 1)
      await ctx.step('work', rig.gated)
      await ctx.sleep('1h')
    })
    const held = await (await rig.start(flow)).begin()
    await held.crash()
    await held.goOn('replayed')
    await rig.succeed('work')
    await held.goOn('replayed')
    expect(startsOf(rig).filter((count) => count > 0)).toEqual([1])
    expect(await held.status()).toBe('succeeded')
  })

  it('is started once if the process dies with the commit that starts it, landed or not', async () => {
    for (const hasLanded of [true, false]) {
      const rig = new FunctionRig(nursery())
      const flow = workflow('never', async (ctx) => {
        void ctx.child(child, 1)
        await ctx.step('work', rig.gated)
      })
      const held = await rig.start(flow)
      rig.dies = { hasLanded, how: () => held.die() }
      await held.begin()
      await held.goOn('replayed')
      await rig.succeed('work')
      expect(startsOf(rig).filter((count) => count > 0)).toEqual([1])
      expect(await held.status()).toBe('succeeded')
    }
  })

  it('is started by a body that returns in the same turn', async () => {
    const rig = new FunctionRig(nursery())
    const flow = workflow('last', (ctx) => {
      void ctx.child(child, 1)
      return 'done'
    })
    const held = await (await rig.start(flow)).begin()
    expect(startsOf(rig).filter((count) => count > 0)).toEqual([1])
    expect(await held.status()).toBe('succeeded')
  })

  it.each(['at once', 'later'] as const)(
    'and whose input is refused %s rejects when it is awaited, and does not end the process before',
    async (when) => {
      const no = new HoldfastError('INVALID_INPUT', 'No number')
      const prepare = (): Promise<NewRun> => {
        if (when === 'at once') throw no
        return Promise.reject(no)
      }
      const rig = new FunctionRig({ prepare })
      const seen: unknown[] = []
      const flow = workflow('refused', async (ctx) => {
        const made = ctx.child(child, 1)
        await ctx.step('work', rig.gated)
        await made.then(
          () => seen.push('nothing'),
          (error: unknown) => seen.push(error),
        )
      })
      const unhandled = await unhandledIn(async () => {
        const held = await (await rig.start(flow)).begin()
        await rig.succeed('work')
        expect(await held.status()).toBe('succeeded')
      })
      expect(seen).toEqual([no])
      expect(unhandled).toEqual([])
    },
  )

  it('and whose input is refused does not end the process if nobody awaits it', async () => {
    const prepare = (): Promise<NewRun> => Promise.reject(new Error('No number'))
    const rig = new FunctionRig({ prepare })
    const flow = workflow('refused', async (ctx) => {
      void ctx.child(child, 1)
      await ctx.step('work', () => 1)
    })
    const unhandled = await unhandledIn(async () => {
      const held = await (await rig.start(flow)).begin()
      expect(await held.status()).toBe('succeeded')
    })
    expect(unhandled).toEqual([])
  })
})

describe.each(['in memory', 'replayed'] as const)('a sleep that was made, and goes on %s,', (how) => {
  it('counts from then, and not from when it is awaited', async () => {
    const rig = new FunctionRig()
    const began = rig.clock.now()
    const flow = workflow('nap', async (ctx) => {
      const nap = ctx.sleep('1h')
      await ctx.step('work', rig.gated)
      const { scheduledAt } = await nap
      return scheduledAt.getTime()
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(half)
    await rig.succeed('work')
    expect((await rig.run(held.runId)).due).toBe(began + hour)
    await held.goOn(how)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: began + hour })
    expect(rig.clock.now()).toBe(began + hour)
  })

  it('is over at once if it is awaited after its time', async () => {
    const rig = new FunctionRig()
    const flow = workflow('nap', async (ctx) => {
      const nap = ctx.sleep('1h')
      await ctx.step('work', rig.gated)
      await nap
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(2 * hour)
    if (how === 'replayed') {
      await held.crash()
      await held.goOn(how)
    }
    await rig.succeed('work')
    expect([await held.status(), held.departure?.kind]).toEqual(['succeeded', 'ended'])
  })

  it('counts from then also in a race that begins later', async () => {
    const rig = new FunctionRig()
    const began = rig.clock.now()
    const flow = workflow('race', async (ctx) => {
      const nap = ctx.sleep('1h')
      await ctx.step('work', rig.gated)
      const { tag } = await ctx.race({ nap, never: ctx.receive('never') })
      return tag
    })
    const held = await (await rig.start(flow)).begin()
    await rig.pass(half)
    await rig.succeed('work')
    expect((await rig.run(held.runId)).due).toBe(began + hour)
    await held.goOn(how)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'nap' })
  })
})

describe('what is made and taken in the same turn', () => {
  it('makes one entry: a sleep in a race, and one that is awaited', async () => {
    const rig = new FunctionRig()
    const flow = workflow('one', async (ctx) => {
      await ctx.sleep(5)
      await ctx.race({ nap: ctx.sleep('1h'), never: ctx.receive('never') })
    })
    const held = await (await rig.start(flow)).begin()
    await held.goOn()
    expect(await held.story()).toEqual(['started', 'waiting sleep', 'woken sleep', 'waiting race'])
  })

  it('a receive that nobody awaits makes none', async () => {
    const rig = new FunctionRig()
    const flow = workflow('none', async (ctx) => {
      ctx.receive('mail')
      await ctx.step('work', () => 1)
    })
    const held = await (await rig.start(flow)).begin()
    expect(await held.story()).toEqual(['started', 'step-succeeded work', 'succeeded'])
  })
})
