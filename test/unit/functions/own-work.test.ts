// A body that awaits something of its own while it is replayed, however long that takes, is no body whose code has changed: it is
// logged in one line, again every hour. Only a call that it cannot have made then says that the code is another.

import { describe, expect, it } from 'vitest'
import { workflow } from '../../../src/functions/api/workflow.ts'
import type { Context } from '../../../src/functions/api/context.ts'
import { FunctionRig, type Held } from '../../support/function-rig.ts'

interface Slow {
  readonly rig: FunctionRig
  /** What the body awaits of its own: over at once, until it is slow. */
  readonly own: () => Promise<void>
  isSlow: boolean
  /** Ends what the body awaits of its own. */
  end(): Promise<void>
}

function slow(): Slow {
  const rig = new FunctionRig()
  let over: () => void = () => undefined
  const self: Slow = {
    rig,
    isSlow: false,
    own: () => (self.isSlow ? new Promise((resolve) => (over = resolve)) : Promise.resolve()),
    end: async () => {
      over()
      await rig.quiet()
    },
  }
  return self
}

const warnings = ({ lines }: FunctionRig): readonly string[] =>
  lines.filter(({ level }) => level === 'warn').map(({ message }) => message)

const begin = async (rig: FunctionRig, body: (ctx: Context) => unknown): Promise<Held> =>
  (await rig.start(workflow('test.own', body))).begin()

/** The run is replayed, and its body is silent for a minute. */
async function silence(t: Slow, held: Held): Promise<void> {
  t.isSlow = true
  await held.goOn('replayed')
  await t.rig.pass(60_000)
  expect([await held.status(), held.departure]).toEqual(['running', null])
  expect(warnings(t.rig)).toEqual([expect.stringMatching(/has not asked for entry \d+ .* something of its own/)])
  await t.end()
}

describe('a body that awaits something of its own for long is not said to have changed', () => {
  it('beside a wait that it had made before', async () => {
    const t = slow()
    const held = await begin(t.rig, async (ctx) => {
      const nap = ctx.sleep('1 day')
      const b = t.own().then(() => ctx.step('b', () => 'B'))
      return Promise.all([b, nap.then(() => 'slept')])
    })
    await silence(t, held)
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['B', 'slept'] })
  })

  it('beside a step that was under way then, and ended later', async () => {
    const t = slow()
    const held = await begin(t.rig, async (ctx) => {
      const long = ctx.step('long', t.rig.gated)
      await Promise.all([long, t.own().then(() => ctx.step('b', t.rig.gated))])
      await ctx.sleep('1 day')
    })
    await t.rig.pass(100)
    await t.rig.succeed('b')
    await t.rig.pass(100)
    await t.rig.succeed('long')
    await silence(t, held)
    expect(await held.status()).toBe('succeeded')
  })

  it('beside a step that was under way when its process died', async () => {
    const t = slow()
    const held = await begin(t.rig, async (ctx) => {
      const long = ctx.step('long', t.rig.gated)
      await Promise.all([long, t.own().then(() => ctx.step('b', () => 1))])
    })
    await t.rig.pass(100)
    await held.crash()
    await silence(t, held)
    await t.rig.succeed('long')
    expect(await held.status()).toBe('succeeded')
  })

  it('when it has no call open at all, however long that takes', async () => {
    const t = slow()
    const held = await begin(t.rig, async (ctx) => {
      await t.own()
      await ctx.step('b', () => 1)
      await ctx.sleep('1 day')
    })
    t.isSlow = true
    await held.goOn('replayed')
    await t.rig.pass(3_599_000)
    expect([await held.status(), warnings(t.rig).length]).toEqual(['running', 1])
    await t.rig.pass(1_000)
    expect([await held.status(), warnings(t.rig).length]).toEqual(['running', 2])
    expect(warnings(t.rig)).toEqual([expect.stringContaining('for 1 s.'), expect.stringContaining('for 1 h.')])
    await t.end()
    expect(await held.status()).toBe('succeeded')
  })
})

describe('a call that was made beside others and has been removed looks like one that may still come', () => {
  it('so its run is logged again and again, and can be paused, until its body ends or makes another call', async () => {
    const first = new FunctionRig()
    const asleep = await begin(first, (ctx) => Promise.all([ctx.sleep('1 day'), ctx.step('removed', first.gated)]))
    await first.succeed('removed')
    const rig = new FunctionRig()
    const after = workflow('test.own', (ctx) => ctx.sleep('1 day'))
    const held = await (await rig.adopt(after, await asleep.journal())).begin()
    await rig.pass(24 * 3_600_000 - 1_000)
    expect([await held.status(), warnings(rig).length]).toEqual(['running', 24])
    expect(warnings(rig).at(-1)).toMatch(/has not asked for entry \d+ .*"removed".* for 23 h\./)
    await held.pause()
    await rig.pass(29_000)
    expect(await held.status()).toBe('running')
    await rig.pass(1_000)
    expect(await held.status()).toBe('paused')
  })

  it('and a pause that is withdrawn before it takes effect lets the next holder replay it', async () => {
    const t = slow()
    const held = await begin(t.rig, async (ctx) => {
      await t.own()
      await ctx.step('b', () => 1)
      await ctx.sleep('1 day')
    })
    t.isSlow = true
    await held.goOn('replayed')
    await t.rig.pass(60_000)
    const request = { kind: 'pause', reason: 'operator', note: null, at: 0 } as const
    held.frame.applyControl(request)
    await t.rig.quiet()
    await t.rig.pass(30_000)
    expect([await held.status(), held.departure?.kind]).toEqual(['running', 'given-back'])
  })

  it('also if the body awaits something of its own beside a call that it made before for hours', async () => {
    const t = slow()
    const held = await begin(t.rig, (ctx) => {
      const nap = ctx.sleep('1 day')
      return Promise.all([t.own().then(() => ctx.step('b', () => 'B')), nap.then(() => 'slept')])
    })
    t.isSlow = true
    await held.goOn('replayed')
    await t.rig.pass(2 * 3_600_000)
    expect([await held.status(), held.departure]).toEqual(['running', null])
    await t.end()
    expect(await held.outcome()).toEqual({ status: 'succeeded', value: ['B', 'slept'] })
  })
})
