// Runs that start other runs: each once, whatever crashes; how the end of one reaches the other, and what happens to children
// whose parent ends first.

import { describe, expect, test } from 'vitest'
import { isHoldfastError, topic, workflow, type Holdfast } from 'holdfast'
import { dyingStore } from './dying-store.ts'
import { until } from './gate.ts'
import { everyStore } from './stores.ts'
import { kindsOf, virtualWorld } from './virtual-world.ts'

const stays = [
  { how: 'parked in memory', cachedRuns: 100 },
  { how: 'replayed', cachedRuns: 0 },
]

const double = workflow('double', async (ctx, value: number) => {
  await ctx.sleep('1 s')
  return value * 2
})

const failing = workflow('failing', { retry: 'none' }, async (ctx, text: string): Promise<string> => {
  await ctx.sleep('1 s')
  throw new RangeError(text)
})

const waiting = workflow('waiting', async (ctx) => ctx.receive('end'))

async function childrenOf(holdfast: Holdfast, run: { readonly id: string }): Promise<readonly string[]> {
  const { runs } = await holdfast.find({ parent: run })
  return runs.map(({ id }) => id)
}

async function statusOf(holdfast: Holdfast, run: string | { readonly id: string }): Promise<string> {
  return (await holdfast.get(run)).status
}

describe.each(stays)('a parent that is $how', ({ cachedRuns }) => {
  test('gets what its child returns (WC-A9)', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      const one = await ctx.child(double, 1)
      const [two, three] = await ctx.all([ctx.child(double, one), ctx.child(double, 10)])
      return [one, two, three]
    })
    const holdfast = await open({ workflows: [parent, double] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toEqual([2, 4, 20])
    expect(await childrenOf(holdfast, run)).toHaveLength(3)
  })

  test('that failed and is retried hears of the child that ended meanwhile', async () => {
    const { open, after, clock } = virtualWorld()
    let isWell = false
    const parent = workflow('parent', { retry: 'none' }, async (ctx) => {
      const child = ctx.child(double, 4, { onParentEnd: 'abandon' })
      const [value] = await Promise.all([
        child,
        ctx.step('fragile', () => (isWell ? 'well' : Promise.reject(new Error('not yet')))),
      ])
      return value
    })
    const holdfast = await open({ workflows: [parent, double] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await after(run.result().catch(() => undefined))
    expect(await statusOf(holdfast, run)).toBe('failed')
    const [child = ''] = await childrenOf(holdfast, run)
    await after(holdfast.run(child).result())
    await clock.advance(10)
    isWell = true
    await holdfast.retry(run)
    expect(await after(holdfast.run(run.id).result())).toBe(8)
  })

  test('and its child do not block each other with one slot', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => ctx.child(double, 21))
    const holdfast = await open({ workflows: [parent, double] })
    await holdfast.work({ cachedRuns, concurrency: 1 })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toBe(42)
  })

  test('catches the failure of its child as an error with a cause, and a replay gives it the same (WC-A9)', async () => {
    const { open, after } = virtualWorld()
    const seen: unknown[] = []
    const parent = workflow('parent', async (ctx) => {
      try {
        return await ctx.child(failing, 'too far')
      } catch (error) {
        if (!isHoldfastError(error, 'CHILD_FAILED')) throw error
        const failure = [error.details['type'], error.details['status'], (error.cause as Error).message]
        seen.push(failure, error.cause instanceof RangeError)
        await ctx.sleep('1 s')
        return failure
      }
    })
    const holdfast = await open({ workflows: [parent, failing] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    const failure = ['failing', 'failed', 'too far']
    expect(await after(run.result())).toEqual(failure)
    for (let at = 0; at < seen.length; at += 2) expect(seen.slice(at, at + 2)).toEqual([failure, true])
    expect(seen).toHaveLength(cachedRuns === 0 ? 4 : 2)
  })

  test('fails with its child if nobody catches that, without starting another', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => ctx.child(failing, 'too far'))
    const holdfast = await open({ workflows: [parent, failing] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await expect(after(run.result())).rejects.toMatchObject({
      code: 'RUN_FAILED',
      cause: { code: 'CHILD_FAILED', cause: { message: 'too far' } },
    })
    expect(await childrenOf(holdfast, run)).toHaveLength(1)
    expect(await kindsOf(holdfast, run)).toEqual(['started', 'waiting', 'woken', 'failed'])
  })

  test('learns that its child was cancelled, and by whom it was refused', async () => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      const cancelled = await ctx.child(waiting, undefined, { key: 'mine' }).then(null, (error: unknown) => error)
      const refused = await ctx.child(waiting, undefined, { key: 'taken' }).then(null, (error: unknown) => error)
      const alsoRefused = await ctx.start(waiting, undefined, { key: 'taken' }).then(null, (error: unknown) => error)
      return [cancelled, refused, alsoRefused].map((error) =>
        isHoldfastError(error) ? [error.code, error.details['reason'] ?? error.details['by']] : error,
      )
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work({ cachedRuns })
    const other = await holdfast.start(waiting, undefined, { key: 'taken' })
    const run = await holdfast.start(parent)
    await clock.advance('1 s')
    const [child] = await childrenOf(holdfast, run)
    await holdfast.cancel(child as string, { reason: 'not needed' })
    expect(await after(run.result())).toEqual([
      ['CHILD_CANCELLED', 'not needed'],
      ['CHILD_REFUSED', other.id],
      ['CHILD_REFUSED', other.id],
    ])
  })

  test('waits for any run, and gets its end as data, however often it asks', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx, ids: readonly string[]) => {
      const ends = await ctx.all(ids.map((id) => ctx.waitFor(id)))
      const again = await ctx.all([ctx.waitFor(ids[0] as string), ctx.waitFor(ids[0] as string)])
      const nobody = await ctx.waitFor('01900000-0000-7000-8000-000000000000').then(null, (error: unknown) => error)
      return [ends, again, isHoldfastError(nobody, 'RUN_NOT_FOUND')]
    })
    const holdfast = await open({ workflows: [parent, double, failing, waiting] })
    await holdfast.work({ cachedRuns })
    const [good, bad, stopped] = [
      await holdfast.start(double, 2),
      await holdfast.start(failing, 'no'),
      await holdfast.start(waiting),
    ]
    const run = await holdfast.start(parent, [good.id, bad.id, stopped.id])
    await after(good.result())
    await holdfast.cancel(stopped, { reason: 'why not' })
    const succeeded = { status: 'succeeded', output: 4 }
    expect(await after(run.result())).toEqual([
      [succeeded, { status: 'failed', error: new RangeError('no') }, { status: 'cancelled', reason: 'why not' }],
      [succeeded, succeeded],
      true,
    ])
  })

  test('races a child against time, and may still wait for that very child', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      const child = ctx.child(double, 4)
      const { tag } = await ctx.race({ child, late: ctx.sleep('10 ms') })
      return [tag, await child]
    })
    const holdfast = await open({ workflows: [parent, double] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    expect(await after(run.result())).toEqual(['late', 8])
    expect(await childrenOf(holdfast, run)).toHaveLength(1)
  })

  test('starts a run that goes on without it', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => (await ctx.start(double, 4)).id)
    const holdfast = await open({ workflows: [parent, double] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    const id = await after(run.result())
    expect(await after(holdfast.run(id).result())).toBe(8)
    expect(await childrenOf(holdfast, run)).toEqual([id])
  })

  test('does not end before a child that it must outlast', async () => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      const { id } = await ctx.start(waiting, undefined, { onParentEnd: 'wait' })
      const child = ctx.child(waiting, undefined, { onParentEnd: 'wait' })
      await ctx.race({ child, late: ctx.sleep('1 s') })
      return id
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await clock.advance('1 min')
    expect(await statusOf(holdfast, run)).toBe('waiting')
    const children = await childrenOf(holdfast, run)
    expect(children).toHaveLength(2)
    for (const child of children) await holdfast.signal(child, 'end')
    expect(children).toContain(await after(run.result()))
    expect(await Promise.all(children.map((child) => statusOf(holdfast, child)))).toEqual(['succeeded', 'succeeded'])
  })

  test('that is cancelled waits for a child that it must outlast, too', async () => {
    const { open, after, clock } = virtualWorld()
    const parent = workflow('parent', async (ctx) => ctx.child(waiting, undefined, { onParentEnd: 'wait' }))
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await clock.advance('1 s')
    const [child] = (await childrenOf(holdfast, run)) as [string]
    await holdfast.cancel(run)
    await clock.advance('5 min')
    expect(await statusOf(holdfast, run)).toBe('cancelling')
    expect(await statusOf(holdfast, child)).toBe('waiting')
    await holdfast.signal(child, 'end')
    await after(until(async () => (await statusOf(holdfast, run)) === 'cancelled'))
  })

  test('takes its children with it, or leaves them alone, as they say', async () => {
    const { open, after } = virtualWorld()
    const parent = workflow('parent', async (ctx) => {
      const left = ctx.child(waiting, undefined, { onParentEnd: 'abandon', tags: ['left'] })
      await ctx.race({ taken: ctx.child(waiting), left, late: ctx.sleep('1 s') })
    })
    const holdfast = await open({ workflows: [parent, waiting] })
    await holdfast.work({ cachedRuns })
    const run = await holdfast.start(parent)
    await after(run.result())
    const children = await childrenOf(holdfast, run)
    await after(
      until(async () => {
        const statuses = await Promise.all(children.map((child) => statusOf(holdfast, child)))
        return statuses.toSorted().join() === 'cancelled,waiting'
      }),
    )
  })
})

test('WC-P5 a crash at every commit of parent and child leads to the same end, and to one child', async () => {
  const dead: boolean[] = []
  for (let deadAt = 1; deadAt <= 12; deadAt += 1) {
    const { open, after, store, clock } = virtualWorld()
    const dying = dyingStore(store, deadAt)
    const parent = workflow('parent', async (ctx) => {
      const failed = await ctx.child(failing, 'no').then(null, (error: unknown) => String(error).includes('no'))
      const { id } = await ctx.start(double, 3, { onParentEnd: 'wait' })
      return [failed, (await ctx.waitFor(id)).status]
    })
    const workflows = [parent, failing, double]
    const first = await open({ store: dying.store, workflows })
    const run = await first.start(parent)
    await first.work()
    await clock.advance('20 s')
    dead.push(dying.isDead())
    const second = await open({ workflows })
    await second.work()
    expect(await after(second.run(run).result())).toEqual([true, 'succeeded'])
    expect(await childrenOf(second, run)).toHaveLength(2)
  }
  expect(dead.slice(0, 6)).toEqual([true, true, true, true, true, true])
  expect(dead.at(-1)).toBe(false)
})

test('a run that begins anew outlasts its children first, and learns of none of them later', async () => {
  const { open, after } = virtualWorld()
  const parent = workflow('parent', async (ctx, round: number): Promise<string> => {
    if (round === 2) return (await ctx.race({ late: ctx.sleep('1 min'), go: ctx.receive('go') })).tag
    await ctx.start(double, 1, { onParentEnd: 'wait' })
    await ctx.race({ other: ctx.child(double, 2, { onParentEnd: 'abandon' }), soon: ctx.sleep('1 ms') })
    return ctx.continueAsNew(2)
  })
  const holdfast = await open({ workflows: [parent, double] })
  await holdfast.work()
  const run = await holdfast.start(parent, 1)
  expect(await after(run.result())).toBe('late')
  expect(await Promise.all((await childrenOf(holdfast, run)).map((child) => statusOf(holdfast, child)))).toEqual([
    'succeeded',
    'succeeded',
  ])
})

test('an operator who retries a parent whose child failed gets another child', async () => {
  const { open, after } = virtualWorld()
  let isMended = false
  const fragile = workflow('fragile', { retry: 'none' }, async () => {
    if (!isMended) throw new Error('broken')
    return 'mended'
  })
  const parent = workflow('parent', async (ctx) => ctx.child(fragile))
  const holdfast = await open({ workflows: [parent, fragile] })
  await holdfast.work()
  const run = await holdfast.start(parent)
  await expect(after(run.result())).rejects.toMatchObject({ code: 'RUN_FAILED' })
  isMended = true
  await holdfast.retry(run)
  expect(await after(holdfast.run(run).result())).toBe('mended')
  expect(await childrenOf(holdfast, run)).toHaveLength(2)
})

test('an input that does not fit fails where the child is asked for', async () => {
  const { open, after } = virtualWorld()
  const schema = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: async (value: unknown) =>
        typeof value === 'number' ? { value } : { issues: [{ message: 'is not a number' }] },
    },
  }
  const strict = workflow('strict', { input: schema }, async (_, value) => value)
  const parent = workflow('parent', async (ctx) => {
    const wrong = await ctx.child(strict, 'one').then(null, (error: unknown) => error)
    return [isHoldfastError(wrong, 'INVALID_INPUT'), await ctx.child(strict, 1)]
  })
  const holdfast = await open({ workflows: [parent, strict] })
  await holdfast.work()
  const run = await holdfast.start(parent)
  expect(await after(run.result())).toEqual([true, 1])
})

test('a parent that must outlast its child does so after a crash at every commit, too', async () => {
  const dead: boolean[] = []
  for (let deadAt = 1; deadAt <= 9; deadAt += 1) {
    const { open, after, store, clock } = virtualWorld()
    const dying = dyingStore(store, deadAt)
    const parent = workflow('parent', { retry: 'none' }, async (ctx) => {
      await ctx.start(double, 3, { onParentEnd: 'wait' })
      await ctx.start(failing, 'no', { onParentEnd: 'wait' })
      throw new Error('It fails with children that move')
    })
    const workflows = [parent, failing, double]
    const first = await open({ store: dying.store, workflows })
    const run = await first.start(parent)
    await first.work()
    await clock.advance('20 s')
    dead.push(dying.isDead())
    const second = await open({ workflows })
    await second.work()
    await expect(after(second.run(run).result())).rejects.toMatchObject({ code: 'RUN_FAILED' })
    const statuses = await Promise.all((await childrenOf(second, run)).map((child) => statusOf(second, child)))
    expect(statuses.toSorted()).toEqual(['failed', 'succeeded'])
  }
  expect(dead.slice(0, 4)).toEqual([true, true, true, true])
})

describe.each(everyStore)('on $name', ({ make }) => {
  test('parents, children, races and topics mean the same', async () => {
    const { open } = await make()
    const news = topic('news', { retain: '1 h' })
    const parent = workflow('parent', async (ctx) => {
      const child = ctx.child(double, 2, { onParentEnd: 'wait' })
      const { tag } = await ctx.race({ child, never: ctx.receive('never') })
      const failed = await ctx
        .child(failing, 'no')
        .then(null, (error: unknown) => isHoldfastError(error, 'CHILD_FAILED'))
      const { id } = await ctx.start(double, 5)
      const refused = await ctx
        .child(waiting, undefined, { key: 'taken' })
        .then(null, (error: unknown) => (isHoldfastError(error) ? error.code : error))
      return [tag, failed, await ctx.waitFor(id), refused, await ctx.receive(news)]
    })
    const holdfast = await open({ workflows: [parent, double, failing, waiting] })
    await holdfast.work()
    const taken = await holdfast.start(waiting, undefined, { key: 'taken' })
    await holdfast.broadcast(news, 'hello')
    const run = await holdfast.start(parent)
    const succeeded = { status: 'succeeded', output: 10 }
    expect(await run.result()).toEqual(['child', true, succeeded, 'CHILD_REFUSED', 'hello'])
    await holdfast.signal(taken, 'end', 1)
    expect(await taken.result()).toBe(1)
    expect(await childrenOf(holdfast, run)).toHaveLength(3)
    expect((await holdfast.doctor()).filter(({ offenders }) => offenders.length > 0)).toEqual([])
  })
})
