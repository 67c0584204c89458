// A child whose input has to be checked, or put elsewhere, before it can be started: what the body made is started all the same,
// once, whatever the body does meanwhile.

import { describe, expect, it } from 'vitest'
import type { NewRun } from '../../../src/core/model/new-run.ts'
import type { Body } from '../../../src/functions/api/workflow.ts'
import { workflow } from '../../../src/functions/api/workflow.ts'
import { FunctionRig, unhandledIn, type Held, type RigOptions } from '../../support/function-rig.ts'

const child = workflow('child', (_ctx, value: number) => value)

interface Nursery {
  readonly rig: FunctionRig
  /** Lets the oldest child that is being prepared be ready. */
  ready(): Promise<void>
  refuse(error: unknown): Promise<void>
  begin(body: Body<number, unknown>): Promise<Held>
  /** How many children were started. */
  readonly started: number
}

/** Children that are prepared when the test says so. What starts them is in the transitions. */
function nursery(options: RigOptions = {}): Nursery {
  const waiting: { readonly resolve: (run: NewRun) => void; readonly reject: (error: unknown) => void }[] = []
  let made = 0
  const prepare = (): Promise<NewRun> => new Promise((resolve, reject) => waiting.push({ resolve, reject }))
  const rig = new FunctionRig({ ...options, prepare })
  return {
    rig,
    ready: async () => {
      const id = `01900000-0000-7000-9000-${String((made += 1)).padStart(12, '0')}`
      waiting.shift()?.resolve({ id, type: 'child', version: 1, first: { data: null } } as NewRun)
      await rig.quiet()
    },
    refuse: async (error) => {
      waiting.shift()?.reject(error)
      await rig.quiet()
    },
    begin: async (body) => (await rig.start(workflow('parent', { retry: 'none' }, body), 1)).begin(),
    get started() {
      return rig.commits.reduce((sum, { outbound }) => sum + (outbound?.starts.length ?? 0), 0)
    },
  }
}

describe('a child that is still being prepared', () => {
  it.each(['in memory', 'replayed'] as const)('when its run could park is started before that, %s', async (how) => {
    const t = nursery()
    const seen: string[] = []
    const held = await t.begin(async (ctx) => {
      const made = ctx.child(child, 1)
      await ctx.sleep(400)
      seen.push('slept')
      await made
    })
    expect([await held.status(), t.started]).toEqual(['running', 0])
    await t.ready()
    expect([await held.status(), t.started]).toEqual(['waiting', 1])
    await held.goOn(how)
    // It waits for the child now, and is not lost.
    expect([await held.status(), t.started, held.departure?.kind]).toEqual(['waiting', 1, 'parked'])
    expect(await held.story()).toEqual(['started', 'waiting sleep', 'waiting child', 'woken sleep'])
  })

  it.each<[string, Body<number, unknown>]>([
    ['ctx.child', (ctx) => void ctx.child(child, 1)],
    ['ctx.start', (ctx) => void ctx.start(child, 1)],
  ])('when the body returns without awaiting its %s is started before the run ends', async (_, body) => {
    const t = nursery()
    const held = await t.begin(async (ctx, input) => {
      await body(ctx, input)
      return 'done'
    })
    expect([await held.status(), t.started]).toEqual(['running', 0])
    await t.ready()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'done' })
    expect(t.started).toBe(1)
  })

  it('and that its run must outlast is outlasted, also if the body has returned by then', async () => {
    const t = nursery()
    const held = await t.begin((ctx) => void ctx.child(child, 1, { onParentEnd: 'wait' }))
    await t.ready()
    expect([await held.status(), t.started]).toEqual(['waiting', 1])
  })

  it('when the run begins anew is started before', async () => {
    const t = nursery()
    const held = await t.begin(async (ctx) => {
      void ctx.child(child, 1)
      return ctx.continueAsNew(2)
    })
    expect(await held.story()).toEqual(['started'])
    await t.ready()
    expect(await held.story()).toEqual(['started', 'waiting child', 'continued'])
    expect(t.started).toBe(1)
  })

  it('and that its run must outlast keeps it from beginning anew, also if both were asked for in one turn', async () => {
    const t = nursery()
    const held = await t.begin(async (ctx) => {
      void ctx.child(child, 1, { onParentEnd: 'wait' })
      return ctx.continueAsNew(2)
    })
    await t.ready()
    expect([await held.status(), t.started]).toEqual(['waiting', 1])
    expect(await held.story()).not.toContain('continued')
  })

  it.each(['pause', 'shutdown'] as const)(
    'when a %s is wanted keeps nobody waiting, and is started later',
    async (way) => {
      const t = nursery()
      const held = await t.begin(async (ctx) => {
        const made = ctx.child(child, 1)
        await ctx.sleep(400)
        await made
      })
      if (way === 'pause') await held.pause()
      else held.frame.giveBack()
      await t.rig.quiet()
      expect(held.departure?.kind).toBe(way === 'pause' ? 'released' : 'given-back')
      await t.ready()
      expect(t.started).toBe(0)
      if (way === 'pause') await held.revive('resume')
      else t.rig.store.release(held.runId)
      await held.goOn('replayed')
      await t.ready()
      expect([await held.status(), t.started]).toEqual(['waiting', 1])
    },
  )

  it.each(['in a wait', 'at its end'] as const)(
    'when a pause %s is taken back, having been ready meanwhile, is started all the same',
    async (where) => {
      let onCommit: () => void = () => undefined
      const t = nursery({ onCommit: () => onCommit() })
      const held = await t.begin(async (ctx) => {
        void ctx.child(child, 1)
        if (where === 'in a wait') await ctx.sleep(400)
      })
      onCommit = () => {
        onCommit = () => undefined
        void t.ready()
        void held.revive('resume')
      }
      await held.pause()
      expect(t.started).toBe(1)
      expect(await held.status()).toBe(where === 'in a wait' ? 'waiting' : 'succeeded')
    },
  )

  it('when its process dies is prepared and started by the next one', async () => {
    const t = nursery()
    const held = await t.begin(async (ctx) => {
      void ctx.child(child, 1)
      await ctx.sleep(400)
    })
    await held.crash()
    await t.ready()
    expect(t.started).toBe(0)
    await held.goOn('replayed')
    await t.ready()
    expect([await held.status(), t.started]).toEqual(['waiting', 1])
  })

  it('when the run is cancelled is not started any more, and does not keep it from ending', async () => {
    const t = nursery()
    const held = await t.begin((ctx) => void ctx.child(child, 1))
    await held.cancel()
    expect(await held.status()).toBe('cancelled')
    await t.ready()
    expect([(await held.story()).at(-1), t.started]).toEqual(['cancelled', 0])
  })

  it('and is refused after the body has returned is reported, and the run ends', async () => {
    const t = nursery()
    const held = await t.begin((ctx) => void ctx.child(child, 1))
    const unhandled = await unhandledIn(() => t.refuse(new Error('No number')))
    expect([await held.status(), unhandled]).toEqual(['succeeded', []])
    expect(t.rig.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/did not await a child that could not be started: No number/),
    )
  })
})

describe('a child that is raced while it is being prepared', () => {
  const racing: Body<number, unknown> = async (ctx) => {
    const made = ctx.child(child, 1)
    await ctx.step('work', () => 1)
    await ctx.race({ made, late: ctx.sleep('1h') }).then(undefined, () => 'refused')
    await ctx.sleep('2h')
    return 'went on'
  }

  it('and refused then leaves the calls of the body in order: the run parks and ends', async () => {
    const t = nursery()
    const held = await t.begin(racing)
    await t.refuse(new Error('No number'))
    expect([await held.status(), held.departure?.kind]).toEqual(['waiting', 'parked'])
    await held.goOn()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: 'went on' })
  })

  it('is awaited by the race alone: the run parks, and goes on when the race is over', async () => {
    const t = nursery()
    const held = await t.begin(racing)
    await t.ready()
    expect([await held.status(), held.departure?.kind, t.started]).toEqual(['waiting', 'parked', 1])
    await held.goOn()
    expect((await held.story()).slice(-2)).toEqual(['woken race', 'waiting sleep#2'])
    expect(await held.status()).toBe('waiting')
  })
})
