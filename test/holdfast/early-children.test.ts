// Children, sleeps and receives that a body makes before it awaits them: children run at once, time counts, and mail is left
// alone.

import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { isHoldfastError, workflow, type Holdfast } from 'holdfast'
import { crashEverywhere } from 'holdfast/testing'
import { z } from 'zod'
import { kindsOf, virtualWorld } from './virtual-world.ts'

const hour = 3_600_000

async function childrenOf(
  holdfast: Holdfast,
  run: { readonly id: string },
): Promise<readonly { id: string; status: string }[]> {
  const { runs } = await holdfast.find({ parent: run })
  return runs.map(({ id, status }) => ({ id, status }))
}

const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

it('a child that is watched again after a retry is unawaited in the journal until the body awaits it', async () => {
  const { open, after } = virtualWorld()
  let isReady = false
  const nap = workflow('nap', async (ctx) => void (await ctx.sleep('1h')))
  const parent = workflow('parent', { retry: 'none' }, async (ctx) => {
    const early = ctx.child(nap, undefined, { onParentEnd: 'abandon' })
    await ctx.step('gate', () => assert.ok(isReady), { retry: 'none' })
    await ctx.sleep('1 min')
    await early
    return 'woken'
  })
  const holdfast = await open({ workflows: [parent, nap] })
  await holdfast.work()
  const run = await holdfast.start(parent)
  await expect(after(run.result())).rejects.toMatchObject({ code: 'RUN_FAILED' })
  isReady = true
  await holdfast.retry(run)
  await expect(after(run.result())).resolves.toBe('woken')
  const waits = (await holdfast.journal(run)).filter(({ kind, name }) => kind === 'waiting' && name === 'nap')
  expect(waits.map(({ meta }) => meta)).toMatchObject([{ unawaited: true }, { unawaited: true }])
})

describe.each(stays)('a parent that is $how', ({ cachedRuns }) => {
  it('runs two children at once, though it awaits one after the other', async () => {
    const { open, after, clock } = virtualWorld()
    const nap = workflow('nap', async (ctx, name: string) => {
      await ctx.sleep('1h')
      return name
    })
    const parent = workflow('parent', async (ctx) => {
      const a = ctx.child(nap, 'a')
      const b = ctx.child(nap, 'b')
      return [await a, await b]
    })
    const holdfast = await open({ workflows: [parent, nap] })
    await holdfast.work({ cachedRuns })
    const began = clock.now()
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toEqual(['a', 'b'])
    expect(clock.now() - began).toBeLessThan(1.5 * hour)
    expect(await childrenOf(holdfast, run)).toHaveLength(2)
  })

  it('gets what a child returned that had ended long before it was awaited', async () => {
    const { open, after } = virtualWorld()
    const quick = workflow('quick', (_ctx, value: number) => value * 2)
    const parent = workflow('parent', async (ctx) => {
      const made = ctx.child(quick, 21)
      await ctx.sleep('1h')
      return made
    })
    const holdfast = await open({ workflows: [parent, quick] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toBe(42)
  })

  it('catches the failure of a child that had failed long before it was awaited', async () => {
    const { open, after } = virtualWorld()
    const bad = workflow('bad', { retry: 'none' }, () => Promise.reject(new Error('Bad')))
    const parent = workflow('parent', async (ctx) => {
      const made = ctx.child(bad)
      await ctx.sleep('1h')
      return made.then(String, (error: unknown) => (isHoldfastError(error, 'CHILD_FAILED') ? 'caught' : 'other'))
    })
    const holdfast = await open({ workflows: [parent, bad] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toBe('caught')
  })

  it('leaves mail alone that it does not await yet, and gets it then', async () => {
    const { open, after, until } = virtualWorld()
    let isWorking = false
    const parent = workflow('parent', async (ctx) => {
      const mail = ctx.receive<string>('mail')
      isWorking = true
      await ctx.sleep('1 min')
      const other = await ctx.race({ other: ctx.receive<string>('mail'), late: ctx.sleep('1 min') })
      return [other.tag, await ctx.race({ mail, late: ctx.sleep('1s') })]
    })
    const holdfast = await open({ workflows: [parent] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await until(() => isWorking)
    await run.signal('mail', 'one')
    expect(await after(run.result())).toEqual(['other', expect.objectContaining({ tag: 'late' })])
  })

  it('whose time is over does not end before a child that it must outlast', async () => {
    const { open, after, clock } = virtualWorld()
    const slow = workflow('slow', async (ctx) => {
      await ctx.sleep('10 min')
    })
    const parent = workflow('parent', async (ctx) => {
      void ctx.child(slow, undefined, { onParentEnd: 'wait' })
      await ctx.step('work', () => 1)
      await ctx.sleep('1h')
    })
    const holdfast = await open({ workflows: [parent, slow] })
    await holdfast.work({ cachedRuns })
    const began = clock.now()
    const run = await holdfast.start(parent, undefined, { timeout: '1 min' })
    const error: unknown = await after(run.result().catch((reason: unknown) => reason))
    expect(error).toMatchObject({ code: 'RUN_FAILED', cause: { code: 'RUN_TIMEOUT' } })
    expect(await childrenOf(holdfast, run)).toMatchObject([{ status: 'succeeded' }])
    expect(clock.now() - began).toBeGreaterThanOrEqual(hour / 6)
  })
})

describe('a parent whose body throws while it must outlast a child', () => {
  it('begins nothing more, and asks what is under way to stop', async () => {
    const { open, after } = virtualWorld()
    const slow = workflow('slow', async (ctx) => void (await ctx.sleep('10 min')))
    const begun: number[] = []
    const aborted: unknown[] = []
    const parent = workflow('parent', { parallel: 2, retry: 'none' }, async (ctx) => {
      void ctx.child(slow, undefined, { onParentEnd: 'wait' })
      const bad = ctx.step('bad', () => Promise.reject(new Error('No room')), { retry: 'none' })
      const work = [1, 2, 3, 4].map((at) =>
        ctx.step('work', ({ abortSignal }) => {
          begun.push(at)
          return new Promise((resolve) => abortSignal.addEventListener('abort', () => resolve(aborted.push(at))))
        }),
      )
      await Promise.all([bad, ...work])
    })
    const holdfast = await open({ workflows: [parent, slow] })
    await holdfast.work()
    const run = await holdfast.start(parent)
    const error: unknown = await after(run.result().catch((reason: unknown) => reason))
    expect(error).toMatchObject({ code: 'RUN_FAILED', cause: { message: 'No room' } })
    expect([begun, aborted]).toEqual([[1], [1]])
    expect(await childrenOf(holdfast, run)).toMatchObject([{ status: 'succeeded' }])
  })
})

describe('a child that nobody awaits', () => {
  const waiting = workflow('waiting', async (ctx) => ctx.receive('end'))

  it.each([
    ['cancel', 'cancelled'],
    ['abandon', 'waiting'],
  ] as const)('is treated by onParentEnd when its parent returns: %s', async (onParentEnd, status) => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      void ctx.child(waiting, undefined, { onParentEnd })
      await ctx.step('work', () => 1)
      await ctx.sleep('1 min')
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work()
    const run = await holdfast.start(parent)
    await after(run.result())
    await clock.advance('1 min')
    expect(await childrenOf(holdfast, run)).toMatchObject([{ status }])
  })

  it('keeps its parent from ending with onParentEnd "wait"', async () => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      void ctx.child(waiting, undefined, { onParentEnd: 'wait' })
      return ctx.step('work', () => 'done')
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work()
    const run = await holdfast.start(parent)
    await clock.advance('1 min')
    expect(await run.status()).toBe('waiting')
    const [child] = await childrenOf(holdfast, run)
    await holdfast.run(child?.id ?? '').signal('end')
    expect(await after(run.result())).toBe('done')
  })

  it('keeps its parent from ending also if the parent returns in the turn in which it made it', async () => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      void ctx.child(waiting, undefined, { onParentEnd: 'wait' })
      return 'done'
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work()
    const run = await holdfast.start(parent)
    await clock.advance('1 min')
    expect(await run.status()).toBe('waiting')
    const [child] = await childrenOf(holdfast, run)
    await holdfast.run(child?.id ?? '').signal('end')
    expect(await after(run.result())).toBe('done')
  })

  it('is started exactly once, wherever the process dies', async () => {
    const done: string[] = []
    const ship = workflow('ship', {}, async (ctx, what: string) =>
      ctx.step('send', ({ idempotencyKey }) => {
        const line = `${what} ${idempotencyKey}`
        if (!done.includes(line)) done.push(line)
      }),
    )
    const order = workflow('order', {}, async (ctx) => {
      void ctx.child(ship, 'forgotten', { onParentEnd: 'wait' })
      const made = ctx.child(ship, 'awaited')
      await ctx.step('pay', () => 1)
      await made
    })
    const report = await crashEverywhere(order, undefined, {
      workflows: [ship],
      services: () => {
        done.splice(0)
        return {}
      },
      check: ({ story }) => {
        const sent = done.map((line) => line.replace(/ .*/, ''))
        assert.deepEqual(sent.toSorted(), ['awaited', 'forgotten'], story)
      },
    })
    expect(report.cut).toBe(null)
  })

  it('and whose input is refused rejects when it is awaited, and the worker lives on', async () => {
    const { open, after } = virtualWorld()
    const strict = workflow('strict', { input: z.object({ amount: z.number() }) }, (_ctx, { amount }) => amount)
    const parent = workflow('parent', async (ctx, isAwaited: boolean) => {
      const made = ctx.child(strict, { amount: 'much' } as never)
      await ctx.step('work', () => 1)
      await ctx.sleep('1 min')
      return isAwaited ? made.then(String, (error: unknown) => (error as { code: string }).code) : 'forgotten'
    })
    const holdfast = await open({ workflows: [parent, strict] })
    await holdfast.work()
    expect(await after((await holdfast.start(parent, true)).result())).toBe('INVALID_INPUT')
    const run = await holdfast.start(parent, false)
    expect(await after(run.result())).toBe('forgotten')
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'step-succeeded', 'waiting', 'woken', 'succeeded'])
  })
})
