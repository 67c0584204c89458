// Whatever a programmer gets wrong is said where it is wrong, in words that lead to the right spelling.

import { describe, expect, it } from 'vitest'
import {
  createHoldfast,
  HoldfastError,
  workflow,
  type Context,
  type Holdfast,
  type HoldfastOptions,
  type StartOptions,
  type WorkOptions,
} from 'holdfast'
import { openPostgresStore } from 'holdfast/postgres'
import { z } from 'zod'
import { gate } from './gate.ts'
import { open, openWorking } from './open.ts'

const picky = workflow('picky', { input: z.strictObject({ name: z.string() }) }, (_ctx, { name }) => name)
const greet = workflow('greet', (_ctx, name: string) => name)

describe('an id of a run that is no text', () => {
  it.each([Symbol('id'), 7, { toString: () => '01a1ecba-fe18-7000-91be-b23395b49c36' }])(
    'is refused with what an id is: %s',
    async (id) => {
      const holdfast = await open({ workflows: [greet] })
      for (const options of [{ id }, { parent: id }] as unknown as StartOptions[]) {
        await expect(holdfast.start(greet, 'Ada', options)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
      }
      expect((await holdfast.count({})).count).toBe(0)
    },
  )
})

describe('a misspelt option', () => {
  it('of createHoldfast is refused with the right spelling', async () => {
    const options = { store: 'memory:', workflow: [greet] } as HoldfastOptions
    await expect(createHoldfast(options)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('Did you mean "workflows"?') as string,
    })
  })

  it('of workflow is refused when the module is loaded', () => {
    expect(() => workflow('misspelt', { retrys: 3 } as never, () => 1)).toThrow(/"retrys".*Did you mean "retry"\?/)
  })

  it('of a workflow’s retry policy is refused when the module is loaded, not when a run has failed', () => {
    const retry = { maxAttempt: 3 } as never
    expect(() => workflow('misspelt', { retry }, () => 1)).toThrow(/"maxAttempt".*Did you mean "maxAttempts"\?/)
  })

  it('of start is refused and names the workflow', async () => {
    const holdfast = await open({ workflows: [greet] })
    const options = { priorty: 1 } as StartOptions
    await expect(holdfast.start(greet, 'Ada', options)).rejects.toThrow(/"greet".*Did you mean "priority"\?/)
  })

  it('of work is refused, and working is still possible', async () => {
    const holdfast = await open({ workflows: [greet] })
    await expect(holdfast.work({ concurency: 5 } as WorkOptions)).rejects.toThrow(/Did you mean "concurrency"\?/)
    await holdfast.work({ concurrency: 5 })
    expect(await (await holdfast.start(greet, 'Ada')).result()).toBe('Ada')
  })

  it('of result is refused', async () => {
    const holdfast = await openWorking([greet])
    const run = await holdfast.start(greet, 'Ada')
    await expect(run.result({ timeOut: 1 } as never)).rejects.toThrow(/Did you mean "timeout"\?/)
  })

  it('of a step reaches the body as an error of that step’s call', async () => {
    const careless = workflow('careless', { retry: 'none' }, (ctx) =>
      ctx.step('pay', () => 1, { timout: '1s' } as never),
    )
    const holdfast = await openWorking([careless])
    await expect((await holdfast.start(careless)).result()).rejects.toMatchObject({
      cause: {
        code: 'INVALID_OPTION',
        message: expect.stringMatching(/step "pay".*Did you mean "timeout"\?/) as string,
      },
    })
  })
})

describe('a value that is out of range', () => {
  it.each([{ concurrency: 0 }, { concurrency: 1.5 }, { cachedRuns: -1 }, { concurrency: '5' as never }])(
    'work(%j) is refused',
    async (options) => {
      const holdfast = await open()
      await expect(holdfast.work(options)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    },
  )

  it.each([{ inlineRetry: -1 }, { shutdownTimeout: 'soon' as never }])(
    'work(%j) is refused as a duration',
    async (options) => {
      const holdfast = await open()
      await expect(holdfast.work(options)).rejects.toMatchObject({ code: 'INVALID_DURATION' })
    },
  )

  it.each<[WorkOptions, string]>([
    [{ lease: 0 }, 'work({ lease }) must be from 50 ms to 365 days. Got 0 ms.'],
    [{ lease: '400 days' }, 'work({ lease }) must be from 50 ms to 365 days. Got "400 days".'],
    [{ heartbeat: 0 }, 'work({ heartbeat }) must be from 1 ms to 100 years. Got 0 ms.'],
    [{ inlineRetry: '2 days' }, 'work({ inlineRetry }) must be from 0 ms to 1 day. Got "2 days".'],
    [{ abortGrace: '2 days' }, 'work({ abortGrace }) must be from 0 ms to 1 day. Got "2 days".'],
    [{ shutdownTimeout: '2 days' }, 'work({ shutdownTimeout }) must be from 0 ms to 1 day. Got "2 days".'],
  ])(
    'work(%j) is refused before a single run can suffer from it, with the option and what it allows',
    async (options, message) => {
      const holdfast = await open()
      await expect(holdfast.work(options)).rejects.toMatchObject({ code: 'INVALID_DURATION', message })
    },
  )

  it.each([
    [{ poll: 0 }, 'createHoldfast({ poll }) must be from 1 ms to 1 day. Got 0 ms.'],
    [{ untilInterval: 0 }, 'createHoldfast({ untilInterval }) must be from 1 ms to 100 years. Got 0 ms.'],
  ])('createHoldfast(%j) is refused, or it would look again without a pause', async (options, message) => {
    const opening = createHoldfast({ store: 'memory:', ...options })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_DURATION', message })
  })

  it.each(['timeout', 'expiresIn'])(
    'start with a %s of no time is refused: nobody could perform that run',
    async (name) => {
      const holdfast = await open({ workflows: [greet] })
      const starting = holdfast.start(greet, 'Ada', { [name]: 0 })
      const message = `start(…, { ${name} }) must be from 1 ms to 100 years. Got 0 ms.`
      await expect(starting).rejects.toMatchObject({ code: 'INVALID_DURATION', message })
    },
  )

  it('a lease, a timeout of a step and an interval of no time are refused where they are declared', async () => {
    expect(() => workflow('hasty', { lease: 0 }, () => 1)).toThrow(/lease of workflow "hasty" must be from 50 ms/)
    const hasty = workflow('hasty', { retry: 'none' }, (ctx, kind: string) =>
      kind === 'step' ? ctx.step('pay', () => 1, { timeout: 0 }) : ctx.until('paid', () => true, { every: 0 }),
    )
    const holdfast = await openWorking([hasty])
    const failure = async (kind: string): Promise<unknown> =>
      (await holdfast.start(hasty, kind)).result().catch((error: Error) => (error.cause as Error).message)
    expect(await failure('step')).toMatch(/timeout of step "pay" must be from 1 ms to 100 years\. Got 0 ms/)
    expect(await failure('until')).toMatch(/every of .* must be from 1 ms/)
  })

  it.each([0.5, Number.NaN, 2 ** 40])('start with priority %d is refused', async (priority) => {
    const holdfast = await open({ workflows: [greet] })
    await expect(holdfast.start(greet, 'Ada', { priority })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each(['', ' ', 'two words', '.hidden', 'a'.repeat(201), 'ümlaut', 42 as never])(
    'workflow(%j) is refused as a name, with an example of a good one',
    (type) => {
      expect(() => workflow(type, () => 1)).toThrow(/billing\.charge/)
    },
  )

  it.each([0, -1, 1.5])('version %d is refused', (version) => {
    expect(() => workflow('versioned', { version }, () => 1)).toThrow(/whole number/)
  })

  it('a workflow without a body is refused', () => {
    expect(() => workflow('bodiless', {} as never)).toThrow(/body/)
  })

  it.each([
    ['a fortnight', /number/],
    ['5 fortnights', /unknown unit/],
    ['5', /no unit.*"5 ms"/],
    [-1, /negative/],
    [Number.POSITIVE_INFINITY, /100 years/],
  ])('ctx.sleep(%j) fails the run and says why', async (duration, why) => {
    const sleepy = workflow('sleepy', { retry: 'none' }, async (ctx) => void (await ctx.sleep(duration as never)))
    const holdfast = await openWorking([sleepy])
    const error: unknown = await (await holdfast.start(sleepy)).result().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      cause: { code: 'INVALID_DURATION', message: expect.stringMatching(why) as string },
    })
  })
})

describe('ten kilobytes where a name is expected', () => {
  const long = 'x'.repeat(10_000)

  it.each<[string, (holdfast: Holdfast) => unknown]>([
    ['an option of start', (holdfast) => holdfast.start(greet, 'Ada', { [long]: 1 })],
    ['an option of a start by name', (holdfast) => holdfast.start(long, 'Ada', { [long]: 1 })],
    ['the type of a start', (holdfast) => holdfast.start(long)],
    ['the id of a start', (holdfast) => holdfast.start(greet, 'Ada', { id: long })],
    ['a key', (holdfast) => holdfast.start(greet, 'Ada', { key: long })],
    ['a tag', (holdfast) => holdfast.start(greet, 'Ada', { tags: [long] })],
    ['a scope', (holdfast) => holdfast.start(greet, 'Ada', { scope: long as never })],
    ['a timeout', (holdfast) => holdfast.start(greet, 'Ada', { timeout: long as never })],
    ['the id of a run', (holdfast) => holdfast.get(long)],
    ['the name of a signal', (holdfast) => holdfast.signal(long, long)],
    ['an operation', (holdfast) => holdfast.submit({ kind: long } as never)],
    ['an input', (holdfast) => holdfast.start(picky, { [long]: long } as never)],
    ['a value that cannot be stored', (holdfast) => holdfast.start(greet, { [long]: () => 1 } as never)],
    ['a workflow', () => workflow(long, () => 1)],
  ])('as %s is not echoed whole: the error stays one that can be logged', async (_what, call) => {
    const holdfast = await open({ workflows: [greet, picky] })
    const error: unknown = await (async () => call(holdfast))().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(HoldfastError)
    const { message, details } = error as HoldfastError
    expect(message.length + JSON.stringify(details).length).toBeLessThan(3_000)
  })
})

describe('something that is no run', () => {
  it.each([undefined, null, 5, {}])('%j is refused', async (reference) => {
    const holdfast = await open()
    await expect(holdfast.get(reference as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(holdfast.journal(reference as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(() => holdfast.run(reference as never)).toThrow('id')
  })
})

describe('createHoldfast', () => {
  it.each([
    ['memry:', 'memory:'],
    ['Memory:', 'memory:'],
  ])('suggests a store for %j', async (store, meant) => {
    await expect(createHoldfast({ store })).rejects.toMatchObject({
      code: 'STORE_UNKNOWN',
      message: expect.stringContaining(`Did you mean "${meant}"?`) as string,
    })
  })

  it('never shows the password of a store’s address', async () => {
    const error: unknown = await createHoldfast({ store: 'mysql://app:s3cret@db/app' }).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ code: 'STORE_UNKNOWN' })
    expect(JSON.stringify([error, String(error)])).not.toContain('s3cret')
  })

  it('says what is wrong with the address "memory"', async () => {
    await expect(createHoldfast({ store: 'memory' })).rejects.toThrow(
      /no store for "memory"\. Did you mean "memory:"\?/,
    )
  })

  it.each([undefined, null, 5, {}])('says that %j is no store', async (store) => {
    await expect(createHoldfast({ store } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('refuses something that is no workflow, and says which of the list', async () => {
    const workflows = [greet, () => 1] as never
    await expect(createHoldfast({ store: 'memory:', workflows })).rejects.toThrow(/number 2/)
  })

  it('keeps nothing of a failed attempt to open it', async () => {
    await expect(
      createHoldfast({ store: 'memory:', workflows: [greet, workflow('greet', () => 'another')] }),
    ).rejects.toThrow('greet')
    const holdfast = await openWorking([greet])
    expect(await (await holdfast.start(greet, 'Ada')).result()).toBe('Ada')
  })
})

describe('a failing logger', () => {
  const fail = (): never => {
    throw new Error('The log is full')
  }
  const logger = { debug: fail, info: fail, warn: fail, error: fail }

  it('harms no run that logs', async () => {
    const chatty = workflow('chatty', { retry: 'none' }, (ctx) => {
      ctx.log('Hello')
      return 'done'
    })
    const holdfast = await openWorking([chatty], { logger })
    expect(await (await holdfast.start(chatty)).result()).toBe('done')
  })

  it('harms no run whose resource cannot be released', async () => {
    const sticky = workflow('sticky', { retry: 'none' }, (ctx) =>
      ctx.withResource(
        () => 'glue',
        () => Promise.reject(new Error('Stuck')),
        () => Promise.resolve('done'),
      ),
    )
    const holdfast = await openWorking([sticky], { logger })
    expect(await (await holdfast.start(sticky)).result()).toBe('done')
  })

  it('does not keep a worker from stopping', async () => {
    const { passed, open: letGo } = gate()
    const stuck = workflow('stuck', (ctx) => ctx.step('stuck', () => passed))
    const holdfast = await open({ workflows: [stuck], logger })
    const worker = await holdfast.work({ shutdownTimeout: 0 })
    const run = await holdfast.start(stuck)
    await worker.stop().finally(letGo)
    expect(await run.status()).toBe('pending')
  })
})

describe('an option of the wrong kind', () => {
  const wrong = (option: string, got: string) => ({
    code: 'INVALID_OPTION',
    message: expect.stringMatching(
      new RegExp(`${option.replaceAll(/[(){}]/g, '\\$&')}.* must be .*Got ${got}\\.`),
    ) as string,
  })

  it.each([
    ['migrate', 'false', 'createHoldfast({ migrate })', '"false"'],
    ['codec', 'json', 'createHoldfast({ codec })', '"json"'],
    ['versionFor', 5, 'createHoldfast({ versionFor })', '5'],
    ['ports', { clock: {} }, 'createHoldfast({ ports: { clock } })', 'an object'],
    ['offload', {}, 'createHoldfast({ offload })', 'an object'],
    [
      'offload',
      { put: () => '', get: () => '', thresholdBytes: '1' },
      'createHoldfast({ offload: { thresholdBytes } })',
      '"1"',
    ],
    ['logger', 5, 'createHoldfast({ logger })', '5'],
    ['logger', null, 'createHoldfast({ logger })', 'null'],
  ])('of createHoldfast is refused: %s %j', async (name, value, option, got) => {
    const options = { store: 'memory:', [name]: value } as unknown as HoldfastOptions
    await expect(createHoldfast(options)).rejects.toMatchObject(wrong(option, got))
  })

  it('of createHoldfast is refused if it is a port that does not exist', async () => {
    const options = { store: 'memory:', ports: { clok: {} } } as unknown as HoldfastOptions
    await expect(createHoldfast(options)).rejects.toThrow('Did you mean "clock"?')
  })

  it('of work is refused, and nothing listens to the signals of the process', async () => {
    const holdfast = await open()
    const before = process.listenerCount('SIGTERM')
    const options = { signals: 'false' } as unknown as WorkOptions
    await expect(holdfast.work(options)).rejects.toMatchObject(wrong('work({ signals })', '"false"'))
    expect(process.listenerCount('SIGTERM')).toBe(before)
  })

  it.each([
    ['listen', 5],
    ['logger', 5],
    ['distributed', 5],
    ['onStatement', 5],
  ])('of openPostgresStore is refused before it connects: %s', async (name, value) => {
    const options = { url: 'postgres://127.0.0.1:1/nowhere', [name]: value }
    await expect(openPostgresStore(options)).rejects.toMatchObject(wrong(`openPostgresStore({ ${name} })`, '5'))
  })

  it('of workflow is refused, also a symbol', () => {
    expect(() => workflow('symbolic', { version: Symbol('v') as never }, () => 1)).toThrow(
      expect.objectContaining(wrong('The version of workflow "symbolic"', 'a symbol')),
    )
  })

  it.each<readonly [string, (ctx: Context) => unknown, string, string]>([
    ['child', (ctx) => ctx.child(greet, 'Ada', 5 as never), 'The last argument of ctx.child', '5'],
    ['child', (ctx) => ctx.child(greet, 'Ada', (() => 1) as never), 'The last argument of ctx.child', 'a function'],
    ['start', (ctx) => ctx.start(greet, 'Ada', 5 as never), 'The last argument of ctx.start', '5'],
    ['progress', (ctx) => ctx.progress('' as never), 'The fraction of ctx.progress', '""'],
    ['progress', (ctx) => ctx.progress(null as never), 'The fraction of ctx.progress', 'null'],
    ['progress', (ctx) => ctx.progress(true as never), 'The fraction of ctx.progress', 'true'],
    ['progress', (ctx) => ctx.progress(Symbol('p') as never), 'The fraction of ctx.progress', 'a symbol'],
    [
      'withResource',
      (ctx) =>
        ctx.withResource(
          'text' as never,
          () => 1,
          async () => 1,
        ),
      'The acquire of ctx.withResource',
      '"text"',
    ],
  ])('of ctx.%s is refused', async (_name, call, option, got) => {
    const flow = workflow('flow', { retry: 'none' }, async (ctx) => void (await call(ctx)))
    const holdfast = await openWorking([flow, greet])
    await expect((await holdfast.start(flow)).result()).rejects.toMatchObject({ cause: wrong(option, got) })
  })

  it('of ctx.until is refused as every name is', async () => {
    const flow = workflow('flow', { retry: 'none' }, (ctx) => ctx.until(Symbol('u') as never, () => true))
    const holdfast = await openWorking([flow])
    await expect((await holdfast.start(flow)).result()).rejects.toMatchObject({
      cause: { code: 'INVALID_NAME', message: expect.stringContaining('ctx.until needs a name') as string },
    })
  })
})
