// What people write by mistake: each is refused at the call, by an error that names the argument and says what to do.

import { describe, expect, it } from 'vitest'
import { createHoldfast, HoldfastError, workflow, type Context } from 'holdfast'
import { memoryStore, open, openWorking } from './open.ts'

/** As `const { step } = ctx` would take it. */
function taken(ctx: Context, method: 'step' | 'sleep'): (...given: readonly unknown[]) => unknown {
  return Reflect.get(ctx, method) as (...given: readonly unknown[]) => unknown
}

/** What the body gets to catch when it does that. */
async function caught(mistake: (ctx: Context) => unknown): Promise<unknown> {
  const flow = workflow('mistaken', { retry: 'none' }, async (ctx) => {
    try {
      await mistake(ctx)
      return 'nothing was refused'
    } catch (error) {
      if (!(error instanceof HoldfastError)) return String(error)
      return { code: error.code, message: error.message }
    }
  })
  const holdfast = await openWorking([flow])
  return (await holdfast.start(flow)).result()
}

describe('a mistake in a body is told at the call', () => {
  it.each<[string, (ctx: Context) => unknown, RegExp]>([
    [
      'a step taken out of ctx',
      (ctx) => taken(ctx, 'step')('a', () => 1),
      /step\(\) was called without its context.*ctx\.step/,
    ],
    [
      'a sleep taken out of ctx',
      (ctx) => taken(ctx, 'sleep')(1),
      /sleep\(\) was called without its context.*ctx\.sleep/,
    ],
    [
      'a text as a time',
      (ctx) => ctx.sleepUntil('tomorrow' as never),
      /ctx\.sleepUntil needs .* Got "tomorrow".*new Date/,
    ],
    ['no time', (ctx) => ctx.sleepUntil(undefined as never), /ctx\.sleepUntil needs .* Got undefined/],
    ['a race of nothing', (ctx) => ctx.race(undefined as never), /ctx\.race needs waits.* Got undefined/],
    ['a race without waits', (ctx) => ctx.race({}), /ctx\.race needs at least one wait/],
    ['all of nothing', (ctx) => ctx.all(undefined as never), /ctx\.all needs waits.* Got undefined/],
  ])('%s', async (_what, mistake, message) => {
    expect(await caught(mistake)).toEqual({
      code: expect.stringMatching(/^INVALID_(OPTION|DURATION)$/) as string,
      message: expect.stringMatching(message) as string,
    })
  })

  it('but an empty list of waits is over at once: it may have been made', async () => {
    expect(await caught(async (ctx) => expect(await ctx.all([])).toEqual([]))).toBe('nothing was refused')
  })
})

describe('a mistake outside of a run is told at the call', () => {
  const flow = workflow('fine', () => 1)
  const usage = (message: RegExp): unknown =>
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringMatching(message) as string })

  it.each([null, undefined, 7, {}, () => 1])('a start of %s', async (nothing) => {
    const holdfast = await open({ workflows: [flow] })
    const start = holdfast.start(nothing as never, undefined)
    await expect(start).rejects.toEqual(usage(/A start needs a workflow/))
    await expect(holdfast.start(nothing as never, 1, { key: 'a' })).rejects.toEqual(usage(/A start needs a workflow/))
  })

  it('a list as metadata, which would become an object', async () => {
    const holdfast = await open({ workflows: [flow] })
    const start = holdfast.start(flow, undefined, { metadata: [1, 2] as never })
    await expect(start).rejects.toEqual(usage(/The metadata of a run must be an object/))
    await expect(holdfast.start(flow, undefined, { metadata: 'ab' as never })).rejects.toEqual(
      usage(/must be an object/),
    )
  })

  it('a workflow instead of a list of them, which would register nothing', async () => {
    const create = createHoldfast({ store: memoryStore(), workflows: flow as never })
    await expect(create).rejects.toEqual(usage(/workflows: \[a, b\].*Got the workflow "fine" itself/))
    await expect(createHoldfast({ store: memoryStore(), workflows: 'fine' as never })).rejects.toEqual(
      usage(/Got "fine"/),
    )
  })
})

describe('what has a million members', () => {
  it('is refused before it is looked through, in an error that names some of them', async () => {
    const holdfast = await open()
    const letters = 'x'.repeat(1_000_000)
    const members = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`m${n}`.padEnd(100, 'x'), n]))
    const answers = await holdfast.startMany([letters as never])
    const sent = await holdfast.signals([letters as never])
    for (const answer of [...answers, ...sent])
      expect(answer).toMatchObject({ ok: false, error: { code: 'INVALID_OPTION' } })
    const found = (await holdfast.find(members as never).catch((error: unknown) => error)) as HoldfastError
    expect(found.code).toBe('INVALID_OPTION')
    expect(JSON.stringify(found).length).toBeLessThan(5_000)
    await expect(holdfast.discardDeadLetter(letters as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('what is neither true nor false, and what is no repair', () => {
  it.each(['x', 0, '', 1n])('find({ deleted: %o }) is refused', async (deleted) => {
    const holdfast = await open()
    await expect(holdfast.find({ deleted: deleted as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([5, {}, [null]])('resume({ amend: %o }) is refused', async (amend) => {
    const flow = workflow('paused', (ctx) => ctx.receive('never'))
    const holdfast = await open({ workflows: [flow] })
    const run = await holdfast.start(flow)
    await holdfast.pause(run)
    await expect(holdfast.resume(run, { amend: amend as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
