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

describe('a mistake in a body is reported at the call', () => {
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
    [
      'a signal with a timeout',
      (ctx) => ctx.receive('paid', { timeout: '1h' } as never),
      /no option "timeout".*ctx\.race\(\{ got: ctx\.receive\('paid'\), late: ctx\.sleep\('1h'\) \}\)/,
    ],
    [
      'a token with a timeout',
      (ctx) => ctx.token({ timeout: '1h' } as never),
      /no option "timeout".*ctx\.race\(\{ got: ctx\.token\(\), late/,
    ],
    ['no time', (ctx) => ctx.sleepUntil(undefined as never), /ctx\.sleepUntil needs .* Got undefined/],
    ['a race of nothing', (ctx) => ctx.race(undefined as never), /ctx\.race needs waits.* Got undefined/],
    ['a race without waits', (ctx) => ctx.race({}), /ctx\.race needs at least one wait/],
    [
      'all of a step',
      (ctx) => ctx.all([ctx.step('a', () => 1)] as never),
      /ctx\.all takes waits: .* "0" is a promise\. Await steps and other promises with Promise\.all\./,
    ],
    [
      'a race of a step',
      (ctx) => ctx.race({ a: ctx.step('a', () => 1) } as never),
      /ctx\.race takes waits: .* "a" is a promise\. A step cannot be raced, /,
    ],
    ['a race of a number', (ctx) => ctx.race({ a: 1 } as never), /ctx\.race takes waits: .* "a" is 1\./],
    [
      'a child by its name',
      (ctx) => ctx.child('ship' as never),
      /ctx\.child needs a workflow, .* not its name.* Got "ship"/,
    ],
    [
      'a Date as a duration',
      (ctx) => ctx.sleep(new Date() as never),
      /a Date is a point in time.* Use ctx\.sleepUntil\./,
    ],
    ['all of nothing', (ctx) => ctx.all(undefined as never), /ctx\.all needs waits.* Got undefined/],
    ['all of a Set', (ctx) => ctx.all(new Set([ctx.sleep(1)]) as never), /ctx\.all needs waits.* or a list of them/],
    ['all of an iterator', (ctx) => ctx.all([ctx.sleep(1)].values() as never), /ctx\.all needs waits/],
    ['all of a promise', (ctx) => ctx.all(Promise.resolve([ctx.sleep(1)]) as never), /ctx\.all needs waits/],
    ['a race of a Map', (ctx) => ctx.race(new Map([['a', ctx.sleep(1)]]) as never), /ctx\.race needs waits/],
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

describe('a mistake outside of a run is reported at the call', () => {
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

describe('an option that belongs elsewhere is refused with where it belongs', () => {
  it.each(['timeout', 'delay'])('workflow(…, { %s })', (name) => {
    const define = (): unknown => workflow('late', { [name]: '1h' }, () => 1)
    expect(define).toThrow(`holdfast.start(workflow, input, { ${name} })`)
  })

  it('removeMany({ all: true })', async () => {
    const holdfast = await open()
    await expect(holdfast.removeMany({ all: true } as never)).rejects.toThrow('removeMany({}, { all: true })')
  })

  it.each([
    ['pg://localhost/app', 'postgres:'],
    ['file:app.db', 'sqlite:'],
  ])('the store %s', async (store, meant) => {
    await expect(createHoldfast({ store })).rejects.toThrow(`Did you mean "${meant}"?`)
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

describe('a mistake that the body does not catch', () => {
  it.each<[string, (ctx: Context) => unknown, string]>([
    ['an option', (ctx) => ctx.step('a', () => 1, { retries: 3 } as never), 'INVALID_OPTION'],
    ['a name', (ctx) => ctx.step('', () => 1), 'INVALID_NAME'],
    ['a duration', (ctx) => ctx.sleep('100' as never), 'INVALID_DURATION'],
    ['an input', (ctx) => ctx.continueAsNew(() => 1), 'NOT_STORABLE'],
  ])('fails the run at once, because another attempt would make the same call: %s', async (_what, mistake, code) => {
    let attempts = 0
    const flow = workflow('mistaken', { retry: { maxAttempts: 5, initial: '1 day' } }, async (ctx) => {
      attempts += 1
      await mistake(ctx)
    })
    const holdfast = await openWorking([flow])
    const run = await holdfast.start(flow)
    await expect(run.result()).rejects.toMatchObject({ code: 'RUN_FAILED', cause: { code } })
    expect(attempts).toBe(1)
  })

  it('is retried if it is an error of the application', async () => {
    let attempts = 0
    const flow = workflow('failing', { retry: { maxAttempts: 2, initial: 1 } }, () => {
      attempts += 1
      throw new Error('not now')
    })
    const holdfast = await openWorking([flow])
    await expect((await holdfast.start(flow)).result()).rejects.toThrow('not now')
    expect(attempts).toBe(2)
  })
})

describe('a mistake outside of a body', () => {
  it('is refused with what to write instead', async () => {
    const flow = workflow('flow', () => 1)
    expect(() => workflow('flow', (() => 1) as never, { retry: 'none' } as never)).toThrow(
      /last argument of workflow "flow" must be its body: .* The options come before the body\./,
    )
    expect(() => workflow('flow', undefined as never)).toThrow(/must be its body: a function/)
    const holdfast = await openWorking([flow])
    await expect(holdfast.start(flow, undefined, { id: 'order-1' })).rejects.toThrow(
      /A name of your own is a \{ key \}/,
    )
    await expect(holdfast.start(flow, undefined, { delay: new Date() as never })).rejects.toThrow(/Use \{ runAt \}\./)
    await expect(holdfast.signal({ key: 'a' } as never, 'paid')).rejects.toThrow(/Got an object without a type\./)
    await expect(createHoldfast({ store: './data/app.db' })).rejects.toThrow(
      /Did you mean "sqlite:\.\/data\/app\.db"\?/,
    )
  })

  it('warns of a worker without workflows, and of a signal under another name', async () => {
    const warnings: string[] = []
    const logger = {
      debug: () => {},
      info: () => {},
      error: () => {},
      warn: (line: string) => void warnings.push(line),
    }
    const asking = workflow('asking', async (ctx) => void (await ctx.receive('approved')))
    const store = memoryStore()
    const idle = await createHoldfast({ store, logger })
    await idle.work()
    expect(warnings).toEqual([expect.stringContaining('no workflow is registered here')])
    const holdfast = await openWorking([asking])
    const run = await holdfast.start(asking)
    await expect.poll(() => run.status()).toBe('waiting')
    await run.signal('aproved')
    await expect(run.result({ timeout: 1 })).rejects.toThrow(
      /it is waiting\. It has been sent "aproved", and no wait of it has asked for that: misspelt\?/,
    )
    await idle.close()
  })
})
